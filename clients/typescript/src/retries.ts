/** Retries: deadlines, attempts and waits. The clock and randomness are injected. */

import { ConnectionError, DeadlineError, Refusal } from "./errors.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
/** The longest delay that timers support. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const PASSING: ReadonlySet<number> = new Set([408, 429, 503]);

/** A client's environment except the network; tests replace it. */
export interface Surroundings {
  /** Returns milliseconds since an arbitrary point in time. */
  clock(): number;
  /** Returns a random number from 0 to 1. */
  chance(): number;
  /** Returns a new unique key. */
  newKey(): string;
  /** Resolves after `ms` milliseconds, or rejects when the signal is aborted. */
  wait(ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** Calls `act` after `ms` milliseconds. Call the returned function to cancel. */
  timer(ms: number, act: () => void): () => void;
}

/** The real environment. */
export const WORLD: Surroundings = {
  clock: () => performance.now(),
  chance: Math.random,
  // Browsers have `randomUUID` only on secure pages.
  newKey: () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join("-"),
  async wait(ms, signal) {
    let cancel = () => {};
    try {
      await unlessAborted(new Promise<void>((resolve) => (cancel = this.timer(ms, resolve))), signal);
    } finally {
      cancel();
    }
  },
  timer: (ms, act) => {
    const timer = ms > LONGEST_TIMER_MS ? undefined : setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
};

/** Returns the outcome of a promise or rejects with the reason of the signal, whichever comes first. */
export function unlessAborted<T>(pending: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal?.reason);
    signal?.addEventListener("abort", aborted, { once: true });
    if (signal?.aborted) aborted();
    pending.then(resolve, reject).finally(() => signal?.removeEventListener("abort", aborted));
  });
}

/** The time by which a call, with all its attempts, must finish; null means no limit. */
export class Deadline {
  readonly #end: number | null;

  constructor(
    private readonly ms: number | null,
    private readonly surroundings: Surroundings,
  ) {
    this.#end = ms === null ? null : surroundings.clock() + ms;
  }

  /**
   * Calls `act` at the deadline. Call the returned function to cancel. Throws DeadlineError if the deadline has passed.
   */
  atEnd(act: () => void): () => void {
    const left = this.left();
    return left === null ? () => {} : this.surroundings.timer(left, act);
  }

  /** Returns the remaining milliseconds, or null if there is no deadline. Throws DeadlineError if it has passed. */
  left(): number | null {
    if (this.#end === null) return null;
    const left = this.#end - this.surroundings.clock();
    if (left <= 0) throw this.passed();
    return left;
  }

  /** Returns whether time remains after a wait of `ms` milliseconds. */
  admits(ms: number): boolean {
    return this.#end === null || this.surroundings.clock() + ms < this.#end;
  }

  /** Returns the error for a deadline that has passed. */
  passed(): DeadlineError {
    return new DeadlineError(`no response within ${this.ms} ms`);
  }
}

/** The default settings of calls. */
export interface Policy {
  readonly timeoutMs: number | null;
  readonly retries: number;
  readonly idempotency: boolean;
  readonly surroundings: Surroundings;
}

/** The attempts of one call. */
export class Tries {
  #left: number;
  #waitMs = FIRST_WAIT_MS;
  #deaths = 0;

  constructor(
    private readonly policy: Policy,
    private readonly deadline: Deadline,
    mayRepeat: boolean,
  ) {
    this.#left = mayRepeat ? policy.retries : 0;
  }

  /** Returns the milliseconds to wait before the next attempt. Throws the error if there is no further attempt. */
  waitAfter(error: unknown): number {
    const usual = Math.min(this.#waitMs, LONGEST_WAIT_MS) * (0.5 + this.policy.surroundings.chance() / 2);
    const asked = error instanceof Refusal ? (error.retryAfterMs ?? 0) : 0;
    const wait = Math.max(usual, asked);
    this.#deaths += error instanceof Refusal && error.code === "worker_died" ? 1 : 0;
    if (!(this.#left > 0 && this.#deaths < 2 && isPassing(error) && this.deadline.admits(wait))) throw error;
    this.#left -= 1;
    this.#waitMs *= 2;
    return wait;
  }
}

/** Returns whether the same request may succeed later. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof Refusal)) return error instanceof ConnectionError;
  return PASSING.has(error.status) || (error.code === "conflict" && error.retryAfterMs !== undefined);
}
