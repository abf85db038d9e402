/** Registered graphs. */

import type { Client } from "./client.js";
import { NotFoundError } from "./errors.js";
import { Exchange, type Scope } from "./exchange.js";
import type { Graph } from "./graph.js";
import type { JsonObject } from "./json.js";
import { maybe, number, string } from "./reading.js";
import { onGraph, type Request } from "./requests.js";
import type { Response } from "./response.js";
import { unlessAborted } from "./retries.js";

/** The calls of a client that take a graph, with their other arguments. */
type Calls = Pick<
  Client,
  | "forward"
  | "gradients"
  | "vjp"
  | "jvp"
  | "jacobian"
  | "hvp"
  | "hessian"
  | "batch"
  | "check"
  | "plan"
  | "differentiate"
>;
type Beside<Call extends keyof Calls> = Parameters<Client[Call]> extends [unknown, ...infer Rest] ? Rest : never;

/**
 * A registered graph. Pass it to calls in place of a graph: it is not sent again.
 *
 * The first call that uses it registers it, unless it is registered already. If the server no longer has the graph, the
 * call registers it again. It is a snapshot: nodes appended later are not part of it. It also has all calls as methods.
 */
export class RegisteredGraph {
  readonly client: Client;
  readonly graph: Graph;
  readonly #registration: Request;
  #fields: JsonObject | undefined;
  /** A registration in progress, which concurrent calls wait for. */
  #pending: Promise<void> | undefined;

  constructor(client: Client, graph: Graph, registration: Request, fields?: JsonObject) {
    this.client = client;
    this.graph = graph;
    this.#registration = registration;
    this.#fields = fields;
  }

  /** The server's response by API names; empty until the graph is registered. */
  get fields(): JsonObject {
    return this.#fields ?? {};
  }

  /** The hash of the graph; empty until the graph is registered. */
  get graphId(): string {
    return maybe(string, this.fields, "graph_id") ?? "";
  }

  /** Registers the graph if it is not registered. For the client. */
  async ensure(scope: Scope): Promise<void> {
    while (!this.#fields) {
      if (this.#pending) await outcome(this.#pending, scope);
      else await this.#register(scope);
    }
  }

  async #register(scope: Scope): Promise<void> {
    this.#pending = this.#registered(scope);
    try {
      await this.#pending;
    } finally {
      this.#pending = undefined;
    }
  }

  async #registered(scope: Scope): Promise<void> {
    const answer = (await new Exchange(scope, this.#registration).run()).json();
    string(answer, "graph_id");
    this.#fields = answer;
  }

  /**
   * Runs a call on the graph. If the server no longer has it, registers it again and repeats the call. For the client.
   */
  async run(exchange: Exchange, scope: Scope): Promise<Response> {
    await this.ensure(scope);
    const known = this.#fields;
    try {
      return await this.#runOn(exchange);
    } catch (error) {
      if (!isOfTheGraph(error)) throw error;
    }
    // Another call may also have found that the graph is missing.
    if (this.#fields === known) this.#fields = undefined;
    await this.ensure(scope);
    return this.#runOn(exchange);
  }

  #runOn(exchange: Exchange): Promise<Response> {
    exchange.request = onGraph(exchange.request, this.graphId);
    return exchange.run();
  }

  forward(...asked: Beside<"forward">) {
    return this.client.forward(this, ...asked);
  }

  gradients(...asked: Beside<"gradients">) {
    return this.client.gradients(this, ...asked);
  }

  vjp(...asked: Beside<"vjp">) {
    return this.client.vjp(this, ...asked);
  }

  jvp(...asked: Beside<"jvp">) {
    return this.client.jvp(this, ...asked);
  }

  jacobian(...asked: Beside<"jacobian">) {
    return this.client.jacobian(this, ...asked);
  }

  hvp(...asked: Beside<"hvp">) {
    return this.client.hvp(this, ...asked);
  }

  hessian(...asked: Beside<"hessian">) {
    return this.client.hessian(this, ...asked);
  }

  batch(...asked: Beside<"batch">) {
    return this.client.batch(this, ...asked);
  }

  check(...asked: Beside<"check">) {
    return this.client.check(this, ...asked);
  }

  plan(...asked: Beside<"plan">) {
    return this.client.plan(this, ...asked);
  }

  differentiate(...asked: Beside<"differentiate">) {
    return this.client.differentiate(this, ...asked);
  }
}

/** Waits until another call's promise settles, up to the deadline and signal of this call. */
async function outcome(pending: Promise<void>, { deadline, signal }: Scope): Promise<void> {
  let cancel = () => {};
  const late = new Promise<never>((_, reject) => (cancel = deadline.atEnd(() => reject(deadline.passed()))));
  try {
    await unlessAborted(Promise.race([pending.catch(() => {}), late]), signal);
  } finally {
    cancel();
  }
}

/** Returns whether the graph itself is missing. A missing tensor is reported with its node. */
function isOfTheGraph(error: unknown): boolean {
  return (
    error instanceof NotFoundError &&
    error.code === "not_found" &&
    error.node === undefined &&
    error.pointer === undefined
  );
}

/** The metadata of a registered graph. */
export interface GraphSummary {
  readonly graphId: string;
  readonly description: string;
  readonly nodeCount: number;
}

/** Reads an entry of a listing of graphs. */
export function summaryOf(stated: JsonObject): GraphSummary {
  return {
    graphId: string(stated, "graph_id"),
    description: maybe(string, stated, "description") ?? "",
    nodeCount: number(stated, "node_count"),
  };
}
