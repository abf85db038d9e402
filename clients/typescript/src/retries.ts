/** When a call is tried again, and after how long: deadlines and tries, with clock and chance handed in. */

import { ConnectionError, DeadlineError, Refusal } from "./errors.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
/** Timers count no further. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const PASSING: ReadonlySet<number> = new Set([408, 429, 503]);

/** What a client has of the world beside the network. */
export interface Surroundings {
  /** Milliseconds, from anywhere on. */
  clock(): number;
  /** From 0 to 1. */
  chance(): number;
  /** A key that nobody else has. */
  newKey(): string;
  /** Passes so much time, or rejects once the signal is aborted. */
  wait(ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** Does something once so much time has passed, unless what it returns is called before. */
  timer(ms: number, act: () => void): () => void;
}

/** The world as it is. */
export const WORLD: Surroundings = {
  clock: () => performance.now(),
  chance: Math.random,
  // Where pages are not secure, browsers have no `randomUUID`.
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

/** The outcome of something, or the reason of a signal, whichever comes first. */
export function unlessAborted<T>(pending: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal?.reason);
    signal?.addEventListener("abort", aborted, { once: true });
    if (signal?.aborted) aborted();
    pending.then(resolve, reject).finally(() => signal?.removeEventListener("abort", aborted));
  });
}

/** When a call has to be over, all of its tries together; null: never. */
export class Deadline {
  readonly #end: number | null;

  constructor(
    private readonly ms: number | null,
    private readonly surroundings: Surroundings,
  ) {
    this.#end = ms === null ? null : surroundings.clock() + ms;
  }

  /** Have something done at the end, unless the result is called before. Throws DeadlineError where it has come. */
  atEnd(act: () => void): () => void {
    const left = this.left();
    return left === null ? () => {} : this.surroundings.timer(left, act);
  }

  /** Milliseconds that are left; null where there is no end. Throws DeadlineError where it has come. */
  left(): number | null {
    if (this.#end === null) return null;
    const left = this.#end - this.surroundings.clock();
    if (left <= 0) throw this.passed();
    return left;
  }

  /** Whether there is time left after so many milliseconds. */
  admits(ms: number): boolean {
    return this.#end === null || this.surroundings.clock() + ms < this.#end;
  }

  /** What is thrown at the end. */
  passed(): DeadlineError {
    return new DeadlineError(`no answer within ${this.ms} ms`);
  }
}

/** How calls are made, unless one says otherwise. */
export interface Policy {
  readonly timeoutMs: number | null;
  readonly retries: number;
  readonly idempotency: boolean;
  readonly surroundings: Surroundings;
}

/** The tries of one call. */
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

  /** Milliseconds to wait before the next try. Throws the error, where that was the last. */
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

/** Whether the same request may be answered later on. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof Refusal)) return error instanceof ConnectionError;
  return PASSING.has(error.status) || (error.code === "conflict" && error.retryAfterMs !== undefined);
}
