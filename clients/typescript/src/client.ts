/** The client. */

import * as answers from "./answers.js";
import { GraphError, Refusal } from "./errors.js";
import { Exchange, Scope } from "./exchange.js";
import { Graph } from "./graph.js";
import type { JsonObject } from "./json.js";
import { type Model, type ModelDefinition, modelOf } from "./models.js";
import type { Optional } from "./generated/ops.js";
import type * as options from "./options.js";
import { maybe, objects, promised, string } from "./reading.js";
import { type GraphSummary, RegisteredGraph, summaryOf } from "./registered.js";
import * as requests from "./requests.js";
import { nameOfTensor, Resident, type ResidentTensor } from "./resident.js";
import type { Response } from "./response.js";
import { type Policy, type Surroundings, WORLD } from "./retries.js";
import type { TensorLike } from "./tensor.js";
import type { Form } from "./tensor-json.js";
import { type Fetch, Transport } from "./transport.js";

/**
 * What a client is made with.
 *
 * `apiKey` is that of GRADSERVE_API_KEY unless given. `timeoutMs` is for all tries of a call together; null: no end.
 * `retries` is how often a call is repeated at most. `idempotency` says whether calls that keep something get an
 * Idempotency-Key, without which they are not repeated. An answer longer than `maxResponseBytes` is not read. `fetch`
 * takes the place of the platform's own; `surroundings` are for tests.
 */
export type ClientOptions = Optional<{
  apiKey: string;
  timeoutMs: number | null;
  retries: number;
  idempotency: boolean;
  maxResponseBytes: number;
  fetch: Fetch;
  surroundings: Surroundings;
}>;

/** A graph, or one that the server keeps. */
export type GraphLike = Graph | RegisteredGraph;

const TIMEOUT_MS = 60_000;
const RETRIES = 2;
const MAX_RESPONSE_BYTES = 256 * 2 ** 20;

/** What asks a server. Calls may be made at the same time. They reject with what errors.ts draws. */
export class Client {
  readonly #policy: Policy;
  readonly #transport: Transport;

  constructor(url: string, made: ClientOptions = {}) {
    const { timeoutMs = TIMEOUT_MS, retries = RETRIES, idempotency = true, surroundings = WORLD } = made;
    this.#policy = { timeoutMs, retries, idempotency, surroundings };
    this.#transport = new Transport(url, made.apiKey, made.maxResponseBytes ?? MAX_RESPONSE_BYTES, made.fetch);
  }

  #scope(asked: options.RequestOptions): Scope {
    return new Scope(this.#policy, this.#transport, asked.signal, asked.timeoutMs);
  }

  /** The answer to a request that is a call by itself. */
  #once(request: requests.Request, asked: options.RequestOptions): Promise<Response> {
    return new Exchange(this.#scope(asked), request).run();
  }

  async #compute<A>(Kind: answers.AnswerType<A>, call: string, graph: GraphLike, asked: options.Asked): Promise<A> {
    const scope = this.#scope(asked);
    const isRegistered = graph instanceof RegisteredGraph;
    const sent = isRegistered ? graph.graph : graph;
    const exchange = new Exchange(scope, requests.computing(call, sent, asked, isRegistered), asked.idempotency);
    try {
      const response = await (isRegistered ? graph.run(exchange, scope) : exchange.run());
      return answers.answerOf(Kind, response, sent);
    } catch (error) {
      throw explained(error, sent, exchange.hasKey);
    }
  }

  /** Values of nodes, by default of the last one. */
  forward(graph: GraphLike, feeds: options.Tensors = {}, asked: options.RunOptions = {}): Promise<answers.Values> {
    return this.#compute(answers.Values, "forward", graph, { ...asked, feeds });
  }

  /** Values, and the gradients of one node. */
  gradients(
    graph: GraphLike,
    feeds: options.Tensors = {},
    asked: options.GradientsOptions = {},
  ): Promise<answers.Gradients> {
    return this.#compute(answers.Gradients, "gradients", graph, { ...asked, feeds });
  }

  /** Cotangents of outputs times the Jacobian. */
  vjp(graph: GraphLike, feeds: options.Tensors = {}, asked: options.VjpOptions = {}): Promise<answers.Gradients> {
    return this.#compute(answers.Gradients, "vjp", graph, { ...asked, feeds });
  }

  /** The Jacobian times tangents of leaves. */
  jvp(graph: GraphLike, feeds: options.Tensors = {}, asked: options.JvpOptions = {}): Promise<answers.Tangents> {
    return this.#compute(answers.Tangents, "jvp", graph, { ...asked, feeds });
  }

  /** Whole Jacobians, a block for each output and node of `wrt`. */
  jacobian(
    graph: GraphLike,
    feeds: options.Tensors = {},
    asked: options.JacobianOptions = {},
  ): Promise<answers.Jacobian> {
    return this.#compute(answers.Jacobian, "jacobian", graph, { ...asked, feeds });
  }

  /** The Hessian times vectors, exactly. */
  hvp(graph: GraphLike, feeds: options.Tensors = {}, asked: options.HvpOptions = {}): Promise<answers.Hvp> {
    return this.#compute(answers.Hvp, "hvp", graph, { ...asked, feeds });
  }

  /** Whole Hessians, a block for each pair of nodes of `wrt`. */
  hessian(graph: GraphLike, feeds: options.Tensors = {}, asked: options.HessianOptions = {}): Promise<answers.Hessian> {
    return this.#compute(answers.Hessian, "hessian", graph, { ...asked, feeds });
  }

  /** One graph on many examples: values and gradients of each. */
  batch(graph: GraphLike, feeds: options.Tensors = {}, asked: options.BatchOptions = {}): Promise<answers.Batched> {
    return this.#compute(answers.Batched, "batch", graph, { ...asked, feeds });
  }

  /** Gradients compared with central differences. */
  check(graph: GraphLike, feeds: options.Tensors = {}, asked: options.CheckOptions = {}): Promise<answers.Certificate> {
    return this.#compute(answers.Certificate, "check", graph, { ...asked, feeds });
  }

  /** What a call would take. Nothing is run. */
  plan(graph: GraphLike, types: options.Types = {}, asked: options.PlanOptions = {}): Promise<answers.Forecast> {
    return this.#compute(answers.Forecast, "plan", graph, { ...asked, types });
  }

  /** The gradient as a graph. Nothing is run. */
  differentiate(
    graph: GraphLike,
    types: options.Types = {},
    asked: options.DifferentiateOptions = {},
  ): Promise<answers.Derivative> {
    return this.#compute(answers.Derivative, "differentiate", graph, { ...asked, types });
  }

  /**
   * Have the server keep a graph as it is now. `description` is for people.
   *
   * Where that is not to be done `atOnce`, the first call that needs it does it, within its own time.
   */
  async register(
    graph: Graph,
    asked: options.RequestOptions & Optional<{ description: string; form: Form; atOnce: boolean }> = {},
  ): Promise<RegisteredGraph> {
    const made = new RegisteredGraph(this, graph, requests.registration(graph, asked.description ?? "", asked.form));
    try {
      if (asked.atOnce ?? true) await made.ensure(this.#scope(asked));
    } catch (error) {
      throw explained(error, graph, false);
    }
    return made;
  }

  /** A graph that the server keeps already. Its nodes are found by their names and ids. */
  async registered(graphId: string, asked: options.RequestOptions = {}): Promise<RegisteredGraph> {
    const fields = (await this.#once(requests.graphOf(graphId), asked)).json();
    string(fields, "graph_id");
    const graph = promised(() => Graph.fromWire(fields["graph"]));
    const description = maybe(string, fields, "description") ?? "";
    return new RegisteredGraph(this, graph, requests.registration(graph, description, undefined), fields);
  }

  /** Have the server forget a graph. */
  async unregister(graph: RegisteredGraph | string, asked: options.RequestOptions = {}): Promise<GraphSummary> {
    const graphId = typeof graph === "string" ? graph : graph.graphId;
    return summaryOf((await this.#once(requests.removeGraph(graphId), asked)).json());
  }

  /** All graphs that the server keeps, in the order in which they came, asked for `limit` at a time. */
  async *graphs(asked: Listed = {}): AsyncGenerator<GraphSummary, void, undefined> {
    for await (const entry of this.#entries("graphs", asked)) yield summaryOf(entry);
  }

  /**
   * Have the server keep a tensor, which feeds may name from then on.
   *
   * `ifMatch` is the version that there has to be, "*" for any; an `ifNoneMatch` of "*" demands that there is none.
   */
  async put(
    name: string,
    value: TensorLike,
    asked: requests.Put & options.RequestOptions = {},
  ): Promise<Resident> {
    return Resident.fromWire((await this.#once(requests.put(name, value, asked), asked)).json());
  }

  /** A tensor that the server keeps, as it is now. */
  async get(
    tensor: Resident | string,
    asked: Pick<requests.Put, "ifMatch" | "form"> & options.RequestOptions = {},
  ): Promise<ResidentTensor> {
    const { ifMatch, form } = asked;
    const name = nameOfTensor(tensor);
    return residentOf(name, await this.#once(requests.get(name, { ifMatch, form }), asked));
  }

  /** The tensor, where it is another version by now than this one; else undefined. */
  async getIfChanged(
    tensor: Resident,
    asked: Pick<requests.Put, "form"> & options.RequestOptions = {},
  ): Promise<ResidentTensor | undefined> {
    const request = requests.get(tensor.name, { ifNoneMatch: tensor, form: asked.form });
    const response = await this.#once(request, asked);
    return response.status === 304 ? undefined : residentOf(tensor.name, response);
  }

  /** Have the server keep a tensor no more. The answer is what there was. */
  async delete(
    tensor: Resident | string,
    asked: Pick<requests.Put, "ifMatch"> & options.RequestOptions = {},
  ): Promise<Resident> {
    return Resident.fromWire((await this.#once(requests.remove(nameOfTensor(tensor), asked.ifMatch), asked)).json());
  }

  /** All tensors that the server keeps, by name, asked for `limit` at a time. */
  async *tensors(asked: Listed = {}): AsyncGenerator<Resident, void, undefined> {
    for await (const entry of this.#entries("tensors", asked)) yield Resident.fromWire(entry);
  }

  /**
   * Have the server keep a model: names for leaves and outputs of a registered graph, with its weights at home.
   *
   * Conditions are those of `put`.
   */
  async putModel(
    name: string,
    definition: ModelDefinition,
    asked: requests.PutModel & options.RequestOptions = {},
  ): Promise<Model> {
    return modelOf((await this.#once(requests.putModel(name, definition, asked), asked)).json());
  }

  /** A model that the server keeps, as it is now. */
  async model(name: string, asked: options.RequestOptions = {}): Promise<Model> {
    return modelOf((await this.#once(requests.getModel(name), asked)).json());
  }

  /** Have the server keep a model no more; its graph and tensors stay. The answer is what there was. */
  async deleteModel(
    model: Model | string,
    asked: Pick<requests.PutModel, "ifMatch"> & options.RequestOptions = {},
  ): Promise<Model> {
    const name = typeof model === "string" ? model : model.name;
    return modelOf((await this.#once(requests.removeModel(name, asked.ifMatch), asked)).json());
  }

  /** All models that the server keeps, by name, asked for `limit` at a time. */
  async *models(asked: Listed = {}): AsyncGenerator<Model, void, undefined> {
    for await (const entry of this.#entries("models", asked)) yield modelOf(entry);
  }

  /** The server's catalogue: `opset`, and `ops` with their operands, attributes, gradients and dtypes. */
  async ops(asked: options.RequestOptions = {}): Promise<JsonObject> {
    return (await this.#once(requests.catalogue(), asked)).json();
  }

  async *#entries(kind: string, asked: Listed): AsyncGenerator<JsonObject, void, undefined> {
    let after: string | undefined;
    do {
      const page = (await this.#once(requests.page(kind, asked.limit, after), asked)).json();
      yield* objects(page, kind);
      after = maybe(string, page, "next");
    } while (after !== undefined);
  }
}

/** How a listing is asked for; the time is that of each page. */
type Listed = options.RequestOptions & Optional<{ limit: number }>;

function residentOf(name: string, response: Response): ResidentTensor {
  const { etag, tensor } = response.tensor();
  const { dtype, shape, data } = tensor;
  return { handle: new Resident(name, etag, { dtype, shape, nbytes: data.byteLength }), tensor };
}

/** An error with what the client knows beside the report: the lines that wrote nodes, and that it made a key. */
function explained(error: unknown, graph: Graph, hasKey: boolean): unknown {
  if (!(error instanceof Refusal)) return error;
  const inner = graph.functions[error.function ?? -1]?.nodes;
  for (const [part, id, where] of [
    [graph, error.node, ""],
    [inner, error.functionNode, ` of function ${error.function}`],
  ] as const) {
    if (!part || id === undefined || id < 0 || id >= part.size) continue;
    const { line } = part.find(id);
    if (line) error.add(`node ${id}${where} was written at ${line}`);
  }
  if (hasKey && error instanceof GraphError && error.code === "over_budget") {
    error.add(
      "where it is the answer that is too long to be given again: the client made an Idempotency-Key, so that " +
        "nothing is done twice, and makes none with idempotency: false",
    );
  }
  return error;
}
