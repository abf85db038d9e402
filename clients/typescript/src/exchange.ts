/** A request and all its attempts until the deadline, under one idempotency key. */

import type { Request } from "./requests.js";
import { withHeader } from "./requests.js";
import type { Response } from "./response.js";
import { Deadline, type Policy, Tries } from "./retries.js";
import type { Transport } from "./transport.js";

/** The deadline, signal and settings that all requests of a call share. */
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
  /** Whether the client sends an Idempotency-Key. */
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

  /** Sends the request, and retries until there is a response. Throws the error of the last attempt. */
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
