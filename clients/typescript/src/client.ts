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
 * Settings of a client.
 *
 * `apiKey` defaults to the environment variable GRADSERVE_API_KEY. `timeoutMs` is the time limit for all attempts of a
 * call together; null means no limit. `retries` is the maximum number of retries of a call. `idempotency` determines
 * whether calls that store something send an Idempotency-Key; without one they are not retried. A response longer than
 * `maxResponseBytes` is not read. `fetch` replaces the platform's own; `surroundings` are for tests.
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

/** A graph or a registered graph. */
export type GraphLike = Graph | RegisteredGraph;

const TIMEOUT_MS = 60_000;
const RETRIES = 2;
const MAX_RESPONSE_BYTES = 256 * 2 ** 20;

/** A client of one server. You can make calls concurrently. They reject with the errors of errors.ts. */
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

  /** Sends a request that is a call by itself, and returns the response. */
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

  /** Computes the values of nodes, by default of the last one. */
  forward(graph: GraphLike, feeds: options.Tensors = {}, asked: options.RunOptions = {}): Promise<answers.Values> {
    return this.#compute(answers.Values, "forward", graph, { ...asked, feeds });
  }

  /** Computes values, and the gradients of one node. */
  gradients(
    graph: GraphLike,
    feeds: options.Tensors = {},
    asked: options.GradientsOptions = {},
  ): Promise<answers.Gradients> {
    return this.#compute(answers.Gradients, "gradients", graph, { ...asked, feeds });
  }

  /** Computes vector-Jacobian products with the cotangents of outputs. */
  vjp(graph: GraphLike, feeds: options.Tensors = {}, asked: options.VjpOptions = {}): Promise<answers.Gradients> {
    return this.#compute(answers.Gradients, "vjp", graph, { ...asked, feeds });
  }

  /** Computes Jacobian-vector products with the tangents of leaves. */
  jvp(graph: GraphLike, feeds: options.Tensors = {}, asked: options.JvpOptions = {}): Promise<answers.Tangents> {
    return this.#compute(answers.Tangents, "jvp", graph, { ...asked, feeds });
  }

  /** Computes full Jacobians, one block for each output and node of `wrt`. */
  jacobian(
    graph: GraphLike,
    feeds: options.Tensors = {},
    asked: options.JacobianOptions = {},
  ): Promise<answers.Jacobian> {
    return this.#compute(answers.Jacobian, "jacobian", graph, { ...asked, feeds });
  }

  /** Computes exact Hessian-vector products. */
  hvp(graph: GraphLike, feeds: options.Tensors = {}, asked: options.HvpOptions = {}): Promise<answers.Hvp> {
    return this.#compute(answers.Hvp, "hvp", graph, { ...asked, feeds });
  }

  /** Computes full Hessians, one block for each pair of nodes of `wrt`, or one matrix with `layout: "matrix"`. */
  hessian(graph: GraphLike, feeds: options.Tensors = {}, asked: options.HessianOptions = {}): Promise<answers.Hessian> {
    return this.#compute(answers.Hessian, "hessian", graph, { ...asked, feeds });
  }

  /** Runs one graph on many examples, and computes the values and gradients of each. */
  batch(graph: GraphLike, feeds: options.Tensors = {}, asked: options.BatchOptions = {}): Promise<answers.Batched> {
    return this.#compute(answers.Batched, "batch", graph, { ...asked, feeds });
  }

  /** Compares gradients with central differences. */
  check(graph: GraphLike, feeds: options.Tensors = {}, asked: options.CheckOptions = {}): Promise<answers.Certificate> {
    return this.#compute(answers.Certificate, "check", graph, { ...asked, feeds });
  }

  /** Estimates the cost of a call (a dry run), without running it. */
  plan(graph: GraphLike, types: options.Types = {}, asked: options.PlanOptions = {}): Promise<answers.Forecast> {
    return this.#compute(answers.Forecast, "plan", graph, { ...asked, types });
  }

  /** Returns the gradient as a graph, without running anything. */
  differentiate(
    graph: GraphLike,
    types: options.Types = {},
    asked: options.DifferentiateOptions = {},
  ): Promise<answers.Derivative> {
    return this.#compute(answers.Derivative, "differentiate", graph, { ...asked, types });
  }

  /**
   * Registers the graph on the server as it is now. `description` is for people.
   *
   * With `atOnce: false`, registration is deferred to the first call that uses the graph, and counts against that
   * call's timeout.
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

  /** Fetches a registered graph. Look up its nodes by name or id. */
  async registered(graphId: string, asked: options.RequestOptions = {}): Promise<RegisteredGraph> {
    const fields = (await this.#once(requests.graphOf(graphId), asked)).json();
    string(fields, "graph_id");
    const graph = promised(() => Graph.fromWire(fields["graph"]));
    const description = maybe(string, fields, "description") ?? "";
    return new RegisteredGraph(this, graph, requests.registration(graph, description, undefined), fields);
  }

  /** Deletes a registered graph from the server. */
  async unregister(graph: RegisteredGraph | string, asked: options.RequestOptions = {}): Promise<GraphSummary> {
    const graphId = typeof graph === "string" ? graph : graph.graphId;
    return summaryOf((await this.#once(requests.removeGraph(graphId), asked)).json());
  }

  /** Iterates over all registered graphs in order of registration, `limit` per page. */
  async *graphs(asked: Listed = {}): AsyncGenerator<GraphSummary, void, undefined> {
    for await (const entry of this.#entries("graphs", asked)) yield summaryOf(entry);
  }

  /**
   * Stores a tensor on the server and returns a handle that feeds accept.
   *
   * `ifMatch` is the version that the stored tensor must have, or "*" for any. An `ifNoneMatch` of "*" requires that
   * the name is unused.
   */
  async put(
    name: string,
    value: TensorLike,
    asked: requests.Put & options.RequestOptions = {},
  ): Promise<Resident> {
    return Resident.fromWire((await this.#once(requests.put(name, value, asked), asked)).json());
  }

  /** Downloads the current version of a tensor. */
  async get(
    tensor: Resident | string,
    asked: Pick<requests.Put, "ifMatch" | "form"> & options.RequestOptions = {},
  ): Promise<ResidentTensor> {
    const { ifMatch, form } = asked;
    const name = nameOfTensor(tensor);
    return residentOf(name, await this.#once(requests.get(name, { ifMatch, form }), asked));
  }

  /** Downloads a tensor if its version differs from this handle's; otherwise returns undefined. */
  async getIfChanged(
    tensor: Resident,
    asked: Pick<requests.Put, "form"> & options.RequestOptions = {},
  ): Promise<ResidentTensor | undefined> {
    const request = requests.get(tensor.name, { ifNoneMatch: tensor, form: asked.form });
    const response = await this.#once(request, asked);
    return response.status === 304 ? undefined : residentOf(tensor.name, response);
  }

  /** Deletes a tensor from the server, and returns the metadata of the deleted version. */
  async delete(
    tensor: Resident | string,
    asked: Pick<requests.Put, "ifMatch"> & options.RequestOptions = {},
  ): Promise<Resident> {
    return Resident.fromWire((await this.#once(requests.remove(nameOfTensor(tensor), asked.ifMatch), asked)).json());
  }

  /** Iterates over all resident tensors by name, `limit` per page. */
  async *tensors(asked: Listed = {}): AsyncGenerator<Resident, void, undefined> {
    for await (const entry of this.#entries("tensors", asked)) yield Resident.fromWire(entry);
  }

  /**
   * Stores a model: a registered graph with names for its inputs and outputs, and with its weights on the server.
   *
   * The conditions are those of `put`.
   */
  async putModel(
    name: string,
    definition: ModelDefinition,
    asked: requests.PutModel & options.RequestOptions = {},
  ): Promise<Model> {
    return modelOf((await this.#once(requests.putModel(name, definition, asked), asked)).json());
  }

  /** Fetches the current version of a model. */
  async model(name: string, asked: options.RequestOptions = {}): Promise<Model> {
    return modelOf((await this.#once(requests.getModel(name), asked)).json());
  }

  /** Deletes a model, and returns the metadata of the deleted version. Its graph and tensors stay. */
  async deleteModel(
    model: Model | string,
    asked: Pick<requests.PutModel, "ifMatch"> & options.RequestOptions = {},
  ): Promise<Model> {
    const name = typeof model === "string" ? model : model.name;
    return modelOf((await this.#once(requests.removeModel(name, asked.ifMatch), asked)).json());
  }

  /** Iterates over all models by name, `limit` per page. */
  async *models(asked: Listed = {}): AsyncGenerator<Model, void, undefined> {
    for await (const entry of this.#entries("models", asked)) yield modelOf(entry);
  }

  /** Returns the server's op catalogue: `opset`, and `ops` with their operands, attributes, gradients and dtypes. */
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

/** Options of a listing. The timeout applies to each page. */
type Listed = options.RequestOptions & Optional<{ limit: number }>;

function residentOf(name: string, response: Response): ResidentTensor {
  const { etag, tensor } = response.tensor();
  const { dtype, shape, data } = tensor;
  return { handle: new Resident(name, etag, { dtype, shape, nbytes: data.byteLength }), tensor };
}

/**
 * Adds client-side facts to an error: the lines that created the nodes, and that the client sent an Idempotency-Key.
 */
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
      "the client sent an Idempotency-Key, so the server must store the answer to replay it; if the answer is too " +
        "large for that, use idempotency: false",
    );
  }
  return error;
}
