/**
 * The program that runs conformance cases with this client. It reads one case per line and writes one result per line.
 *
 * The protocol is described in clients/conformance/README.md.
 */

import { createInterface } from "node:readline";
import { inspect } from "node:util";
import {
  Client,
  Derivative,
  type Dtype,
  GradserveError,
  Graph,
  type GraphSummary,
  Hessian,
  type Model,
  Node,
  Refusal,
  type RegisteredGraph,
  Resident,
  Rows,
  Results,
  type Store,
  type Surroundings,
  Tensor,
} from "./src/index.js";
import { parse, write } from "./src/json.js";
import { JSON_TYPE } from "./src/message.js";
import { toWire } from "./src/requests.js";
import { Response } from "./src/response.js";
import { decode, encode, named } from "./src/safetensors.js";
import { defaultForm, type Form, fromJson, toJson } from "./src/tensor-json.js";
import { SIGNATURES } from "./generated/signatures.js";

/** Any JSON value, as in the cases that the runner sends. */
type Json = any;

/** The members that name the nodes of a result's tensors. */
const NODES = {
  values: ["node"],
  gradients: ["node"],
  tangents: ["node"],
  hvp: ["node"],
  jacobian: ["of", "wrt"],
  hessian: ["row", "column"],
};
const FORMS: Json = { json: "json", binary: "safetensors" };

/** Returns a tensor as the client encodes it. */
function encoded({ tensor: stated, form: asked }: Json): Json {
  const tensor = tensorOf(stated);
  const form: Form = asked === "default" ? defaultForm(tensor.data.byteLength) : asked;
  if (form !== "safetensors") return { wire: write(toJson(tensor, form)) };
  return { file: Buffer.concat(encode(new Map([["t", tensor]]))).toString("hex") };
}

/** Returns a tensor as the client decodes it. */
function decoded({ wire, file }: Json): Json {
  if (wire === undefined) return { tensor: bits(named(decode(unhex(file)).tensors, "t")) };
  const headers = new Headers({ "Content-Type": JSON_TYPE });
  return { tensor: bits(fromJson(new Response(200, headers, new TextEncoder().encode(wire)).json())) };
}

/** Returns the nodes of a graph, and its functions. */
function built(stated: Json): Json {
  const { nodes, functions } = toWire(graphOf(stated));
  return { nodes: write(nodes), functions: functions && write(functions) };
}

/** Builds the graph of some steps. */
function graphOf({ steps, functions = [], opset }: Json): Graph {
  const graph = new Graph(opset);
  for (const { steps, outputs, name } of functions) {
    graph.function((inner) => {
      append(inner, steps, graph);
      return outputs.map((output: Json) => nodeOf(inner, output, graph));
    }, name);
  }
  append(graph, steps, graph);
  return graph;
}

/** Calls the methods of steps on a graph, or on that of a function. */
function append(graph: Graph, steps: Json, outer: Graph): void {
  for (const { op, operands = [], attrs = {}, name } of steps) {
    const nodes = operands.map((operand: Json) => nodeOf(graph, operand, outer));
    const stated = Object.entries(attrs).map(([key, value]) => [key, attribute(value, outer)]);
    written(graph, op, nodes, Object.fromEntries(stated), name);
  }
}

/** Returns a key that equal graphs of a case share. */
function keyOf({ steps, functions, opset }: Json): string {
  return JSON.stringify([steps, functions, opset]);
}

/** Calls the method of an op, or the generic method if there is none. */
function written(graph: Graph, op: string, nodes: Node[], attrs: Json, name: string | undefined): void {
  const signature = SIGNATURES[op];
  if (!signature) {
    graph.op(op, nodes, attrs, name);
    return;
  }
  const left = { ...attrs };
  const taken = signature.map((parameter) => {
    if (parameter.startsWith("...")) return nodes.splice(0);
    if (!parameter.startsWith("=")) return nodes.shift();
    const { [parameter.slice(1)]: value } = left;
    delete left[parameter.slice(1)];
    return value;
  });
  const options = Object.fromEntries(Object.entries(left).map(([key, value]) => [camel(key), value]));
  const isLeaf = op === "input" || op === "parameter";
  const method = graph[camel(op) as "tanh"] as (...parameters: unknown[]) => Node;
  method.apply(graph, isLeaf ? [name, options] : [...taken, { ...options, name }]);
}

function camel(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the node at a position, a node of another graph, or a node of the graph that encloses a function. */
function nodeOf(graph: Graph, place: number | string, outer = graph): Node {
  if (place === "outer") return outer.input();
  return place === "other" ? new Graph().input() : graph.find(place);
}

/** Converts an attribute, including values that JSON cannot represent. Functions can be of another graph. */
function attribute(value: Json, graph: Graph): Json {
  if (Array.isArray(value)) return value.map((each) => attribute(each, graph));
  if (typeof value !== "object") return value;
  if ("dtype" in value) return tensorOf(value);
  if (value.function === "other") return new Graph().function((other) => other.input());
  if ("function" in value) return graph.functions[value.function];
  return "int" in value ? BigInt(value.int) : Number(value.float.replace("inf", "Infinity"));
}

/** Returns the tensor with these bits. */
function tensorOf({ hex, dtype, shape }: Json): Tensor {
  return Tensor.fromBytes(unhex(hex), dtype as Dtype, shape);
}

function unhex(hex: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(hex, "hex"));
}

/** Returns a tensor as its bits. */
function bits(tensor: Tensor): Json {
  return { dtype: tensor.dtype, shape: tensor.shape, hex: Buffer.from(tensor.bytes()).toString("hex") };
}

/** The calls of a case, made by one client whose clock advances only when it waits. */
class Conversation {
  readonly waits: number[] = [];
  readonly #client: Client;
  readonly #graphs = new Map<string, Graph>();
  readonly #registered = new Map<string, Promise<RegisteredGraph>>();
  #now = 0;
  #keys = 0;

  constructor(url: string, stated: Json, isLive: boolean) {
    this.#client = new Client(url, {
      apiKey: stated.api_key,
      retries: stated.retries,
      timeoutMs: stated.timeout_ms ?? null,
      idempotency: stated.idempotency,
      maxResponseBytes: stated.max_response_bytes,
      surroundings: isLive ? undefined : this.#surroundings(),
    });
  }

  #surroundings(): Surroundings {
    return {
      clock: () => this.#now,
      chance: () => 0.5,
      newKey: () => `case-${(this.#keys += 1)}`,
      wait: async (ms) => {
        this.#now += ms;
        this.waits.push(Math.round(ms));
      },
      timer: () => () => {},
    };
  }

  /** Makes a call and returns its result. */
  async done(call: Json): Promise<Json> {
    try {
      return { returned: await (OTHERS[call.do]?.(this, call) ?? this.computed(call)) };
    } catch (error) {
      return { raised: told(error) };
    }
  }

  /** Makes a call on a graph. */
  async computed({ do: call, graph: stated, feeds, types, ...others }: Json): Promise<Json> {
    const graph = this.#graph(stated);
    const target = stated.registered ? await this.#register(stated, false) : graph;
    const beside = feeds ? fieldOf("feeds", feeds, graph) : types && fieldOf("types", types, graph);
    const fields = Object.entries(others).map(([name, value]) => [camel(name), fieldOf(name, value, graph)]);
    const answer = await this.#client[call as "forward"](target, beside, Object.fromEntries(fields));
    if (answer instanceof Derivative) return derivative(answer);
    const returned = { ...plain(answer.fields), ...byNode(answer) };
    return answer instanceof Hessian ? { ...returned, matrix: matrixOf(answer) } : returned;
  }

  #graph(stated: Json): Graph {
    const known = keyOf(stated);
    const graph = this.#graphs.get(known) ?? graphOf(stated);
    this.#graphs.set(known, graph);
    return graph;
  }

  #register(stated: Json, atOnce: boolean): Promise<RegisteredGraph> {
    const known = keyOf(stated);
    const options = { description: stated.description, atOnce };
    const graph = this.#registered.get(known) ?? this.#client.register(this.#graph(stated), options);
    this.#registered.set(known, graph);
    return graph;
  }

  /** Registers a graph. */
  async register(call: Json): Promise<Json> {
    const { graph: _, ...fields } = (await this.#register(call, true)).fields;
    return fields;
  }

  /** Stores a tensor. */
  async put({ name, tensor, if_match: ifMatch, if_none_match: ifNoneMatch, form }: Json): Promise<Json> {
    return handle(await this.#client.put(name, tensorOf(tensor), { ifMatch, ifNoneMatch, form: FORMS[form] }));
  }

  /** Downloads a tensor. */
  async get({ name, form }: Json): Promise<Json> {
    const found = await this.#client.get(name, { form: FORMS[form] });
    return { tensor_id: found.handle.name, etag: found.handle.etag, tensor: bits(found.tensor) };
  }

  /** Deletes a tensor. */
  async delete({ name, if_match: ifMatch }: Json): Promise<Json> {
    return handle(await this.#client.delete(name, { ifMatch }));
  }

  /** Lists all tensors. */
  async tensors({ limit }: Json): Promise<Json> {
    const tensors = [];
    for await (const kept of this.#client.tensors({ limit })) tensors.push(handle(kept));
    return { tensors };
  }

  /** Lists all graphs. */
  async graphs({ limit }: Json): Promise<Json> {
    const graphs = [];
    for await (const kept of this.#client.graphs({ limit })) graphs.push(summary(kept));
    return { graphs };
  }

  /** Returns the id of a model's graph, which the first call that needs it registers. */
  async #graphId({ graph, graph_id: graphId }: Json): Promise<string> {
    return graph ? (await this.#register(graph, true)).graphId : graphId;
  }

  /** Stores a model. */
  async putModel(call: Json): Promise<Json> {
    const { name, inputs, outputs, bound, description, if_match: ifMatch, if_none_match: ifNoneMatch } = call;
    const leaves = bound.map(({ node, tensor_id: tensorName }: Json) => ({ node, tensorName }));
    const definition = { graphId: await this.#graphId(call), inputs, outputs, bound: leaves, description };
    return model(await this.#client.putModel(name, definition, { ifMatch, ifNoneMatch }));
  }

  /** Fetches a model. */
  async getModel({ name }: Json): Promise<Json> {
    return model(await this.#client.model(name));
  }

  /** Deletes a model. */
  async deleteModel({ name, if_match: ifMatch }: Json): Promise<Json> {
    return model(await this.#client.deleteModel(name, { ifMatch }));
  }

  /** Lists all models. */
  async models({ limit }: Json): Promise<Json> {
    const models = [];
    for await (const kept of this.#client.models({ limit })) models.push(model(kept));
    return { models };
  }

  /** Deletes a registered graph. */
  async deleteGraph(call: Json): Promise<Json> {
    return summary(await this.#client.unregister(await this.#graphId(call)));
  }

  /** Fetches the op catalogue. */
  ops(): Promise<Json> {
    return this.#client.ops();
  }
}

const OTHERS: { readonly [call: string]: (conversation: Conversation, call: Json) => Promise<Json> } = {
  register: (conversation, call) => conversation.register(call),
  put: (conversation, call) => conversation.put(call),
  get: (conversation, call) => conversation.get(call),
  delete: (conversation, call) => conversation.delete(call),
  list_tensors: (conversation, call) => conversation.tensors(call),
  list_graphs: (conversation, call) => conversation.graphs(call),
  put_model: (conversation, call) => conversation.putModel(call),
  get_model: (conversation, call) => conversation.getModel(call),
  delete_model: (conversation, call) => conversation.deleteModel(call),
  list_models: (conversation, call) => conversation.models(call),
  delete_graph: (conversation, call) => conversation.deleteGraph(call),
  ops: (conversation) => conversation.ops(),
};

/** Returns a handle by its API names. */
function handle({ name, etag, dtype, shape, nbytes, durable, writtenWithinMs }: Resident): Json {
  return { tensor_id: name, etag, dtype, shape, bytes: nbytes, durable, written_within_ms: writtenWithinMs };
}

/** Returns an entry of a listing of graphs, by its API names. */
function summary({ graphId, description, nodeCount }: GraphSummary): Json {
  return { graph_id: graphId, description, node_count: nodeCount };
}

/** Returns a model by its API names. */
function model({ graphId, bound, ...others }: Model): Json {
  const leaves = bound.map(({ tensorName, ...leaf }) => ({ tensor_id: tensorName, ...leaf }));
  return { ...others, graph_id: graphId, bound: leaves };
}

/** Converts a field of a call. */
function fieldOf(name: string, value: Json, graph: Graph): Json {
  const byNode = (read: (entry: Json) => unknown) =>
    value.map((entry: Json) => [nodeOf(graph, entry.node), read(entry)]);
  switch (name) {
    case "form":
      return FORMS[value];
    case "of":
      return nodeOf(graph, value);
    case "wrt":
    case "outputs":
    case "mapped":
      return value.map((node: Json) => nodeOf(graph, node));
    case "cotangent":
      return tensorOf(value);
    case "feeds":
    case "cotangents":
    case "tangents":
    case "vectors":
      return byNode(valueOf);
    case "types":
      return byNode(({ dtype, shape }) => [dtype, shape]);
    case "store":
      return byNode(({ tensor_id: name, if_match: ifMatch, durable, gradient }): Store => {
        return { name, ifMatch, durable, gradient };
      });
    default:
      return value;
  }
}

/** Returns the value for a node. */
function valueOf(entry: Json): Tensor | Resident | Rows {
  if (!("tensor_id" in entry)) return tensorOf(entry.tensor);
  const kept = new Resident(entry.tensor_id, "");
  return "rows" in entry ? kept.rows(entry.rows[0], entry.rows[1]) : kept;
}

/** Looks up tensors of a result by their nodes. */
function byNode(answer: Json): Json {
  const found = Object.entries(NODES).filter(([name]) => answer[name] instanceof Results);
  return Object.fromEntries(
    found.map(([name, members]) => {
      const entries = answer.fields[name].map((entry: Json) => {
        const ids = members.map((member) => entry[member] as number);
        return { ...entry, tensor: bits(answer[name].get(...ids)) };
      });
      return [name, entries];
    }),
  );
}

/** Returns the matrix of a Hessian. Looks its offsets up by node, as users do. */
function matrixOf({ matrix, fields }: Hessian): Json {
  if (!matrix) return null;
  const { offsets } = fields["matrix"] as Json;
  const places = offsets.map((entry: Json) => ({ ...entry, ...matrix.offsets.get(entry.node) }));
  return { offsets: places, tensor: bits(matrix.tensor) };
}

/** Returns a gradient as a graph, with its gradient nodes. */
function derivative({ fields, graph, gradients }: Derivative): Json {
  const entries = (fields["gradients"] as Json).map(({ node }: Json) => {
    return { node, gradient_node: gradients.get(node).id };
  });
  return { ...plain(fields), gradients: entries, graph: write(toWire(graph)) };
}

/** Returns the fields of a result as JSON, with tensors as bits. */
function plain(value: Json): Json {
  if (value instanceof Tensor) return bits(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}

/** An error in the form of a result. */
function told(error: unknown): Json {
  if (!(error instanceof GradserveError)) throw error;
  return { type: error.kind, message: inspect(error), ...(error instanceof Refusal && report(error)) };
}

/** Returns the members of a problem report. */
function report(error: Refusal): Json {
  const { status, node, function: index, functionNode, operand, expected, got, pointer, extra } = error;
  return {
    status,
    code: error.code || undefined,
    detail: error.detail || undefined,
    node,
    function: index,
    function_node: functionNode,
    operand,
    expected,
    got,
    pointer,
    request_id: error.requestId || undefined,
    errors: error.errors.length ? error.errors.map(report) : undefined,
    extra: Object.keys(extra).length ? write(extra) : undefined,
  };
}

/** Makes the calls of a case. */
async function exchanged({ kind, url, client = {}, calls }: Json): Promise<Json> {
  const conversation = new Conversation(url, client, kind === "live");
  const results = [];
  for (const call of calls) results.push(await conversation.done(call));
  return { results, waits: conversation.waits };
}

const KINDS: { readonly [kind: string]: (stated: Json) => Json } = {
  encode: encoded,
  decode: decoded,
  build: built,
  exchange: exchanged,
  live: exchanged,
};

async function answered(stated: Json): Promise<Json> {
  try {
    return await KINDS[stated.kind]?.(stated);
  } catch (error) {
    return { error: told(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const stated: Json = parse(line);
  process.stdout.write(`${write({ id: stated.id, ...(await answered(stated)) })}\n`);
}
