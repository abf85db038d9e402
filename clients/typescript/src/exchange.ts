/** A request with all of its tries, under one key, until the deadline. */

import type { Request } from "./requests.js";
import { withHeader } from "./requests.js";
import type { Response } from "./response.js";
import { Deadline, type Policy, Tries } from "./retries.js";
import type { Transport } from "./transport.js";

/** Within what a call is done: all of its requests share this. */
export class Scope {
  readonly deadline: Deadline;

  constructor(
    readonly policy: Policy,
    readonly transport: Transport,
    readonly signal: AbortSignal | undefined,
    timeoutMs: number | null | undefined,
  ) {
    this.deadline = new Deadline(timeoutMs === undefined ? policy.timeoutMs : timeoutMs, policy.surroundings);
  }
}

export class Exchange {
  /** Whether the client made a key, so that nothing is done twice. */
  readonly hasKey: boolean;
  request: Request;
  readonly #scope: Scope;
  readonly #tries: Tries;

  constructor(scope: Scope, request: Request, idempotency = scope.policy.idempotency) {
    const { policy, deadline } = scope;
    this.#scope = scope;
    this.hasKey = request.keeps === true && idempotency;
    this.request = this.hasKey ? withHeader(request, "Idempotency-Key", policy.surroundings.newKey()) : request;
    this.#tries = new Tries(policy, deadline, this.hasKey || !request.keeps);
  }

  /** Try until there is an answer. Throws the last error where there is none. */
  async run(): Promise<Response> {
    const { transport, deadline, signal, policy } = this.#scope;
    for (;;) {
      signal?.throwIfAborted();
      try {
        return (await transport.send(this.request, deadline, signal)).checked();
      } catch (error) {
        signal?.throwIfAborted();
        await policy.surroundings.wait(this.#tries.waitAfter(error), signal);
      }
    }
  }
}
