/** I/O: one request, one answer. */

import type { Bytes } from "./bytes.js";
import { AnswerTooLargeError, ConnectionError, InputError, MalformedAnswerError } from "./errors.js";
import type { Request as Stated } from "./requests.js";
import { Response } from "./response.js";
import type { Deadline } from "./retries.js";

/** What sends requests, as the platform's own function does. */
export type Fetch = (url: string, init: RequestInit) => Promise<globalThis.Response>;

/** The variable that has the key, where no argument gives one. */
const KEY_VARIABLE = "GRADSERVE_API_KEY";

export class Transport {
  readonly #base: string;
  readonly #headers: { readonly [name: string]: string };
  readonly #most: number;
  readonly #fetch: Fetch;
  /** Whether bodies are sent from where they lie, and once: Node sends others again at 421, as browsers do. */
  readonly #streams: boolean;

  /** Throws InputError, which does not show the key. */
  constructor(url: string, apiKey: string | undefined, most: number, fetch: Fetch | undefined) {
    const key = apiKey ?? surrounding().env?.[KEY_VARIABLE];
    if (key && !/^[\x21-\x7e]+$/.test(key)) throw new InputError("the key has characters that a header cannot have");
    // Compressed answers would be longer than they are said to be, and tensors are not worth it.
    this.#headers = { "Accept-Encoding": "identity", ...(key && { Authorization: `Bearer ${key}` }) };
    this.#base = baseOf(url);
    this.#most = most;
    this.#streams = !fetch && isNode();
    this.#fetch = fetch ?? ((...asked) => globalThis.fetch(...asked));
  }

  /**
   * The answer. Throws TransportError and DeadlineError; and the reason of `signal`, which ends everything.
   */
  async send(request: Stated, deadline: Deadline, signal: AbortSignal | undefined): Promise<Response> {
    const left = deadline.left();
    const url = `${this.#base}${request.path}${queryOf(request, left)}`;
    const ending = new AbortController();
    const abort = () => ending.abort(signal?.reason);
    const cancel = deadline.atEnd(() => ending.abort(deadline.passed()));
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    try {
      return await this.#exchanged(url, request, ending);
    } finally {
      cancel();
      signal?.removeEventListener("abort", abort);
    }
  }

  async #exchanged(url: string, request: Stated, ending: AbortController): Promise<Response> {
    const init: RequestInit = {
      method: request.method,
      ...this.#stated(request),
      signal: ending.signal,
      redirect: "manual",
      cache: "no-store",
      credentials: "omit",
    };
    try {
      const answer = await this.#fetch(url, init);
      if (isCompressed(answer, url)) throw new MalformedAnswerError("the answer is compressed, which nobody asked for");
      return new Response(answer.status, answer.headers, await this.#read(answer));
    } catch (error) {
      if (ending.signal.aborted) throw ending.signal.reason;
      // What is not read is not waited for.
      ending.abort();
      if (error instanceof MalformedAnswerError || error instanceof AnswerTooLargeError) throw error;
      throw new ConnectionError(`${request.method} ${request.path}: ${told(error)}`, { cause: error });
    }
  }

  /** Headers and body, with what has to be said of it. */
  #stated({ headers, body }: Stated): RequestInit & { readonly duplex?: "half" } {
    const all = { ...this.#headers, ...headers };
    if (!body) return { headers: all };
    if (!this.#streams) return { headers: all, body: new Blob([...body]) };
    const length = body.reduce((sum, piece) => sum + piece.length, 0);
    return { headers: { ...all, "Content-Length": String(length) }, body: streamOf(body), duplex: "half" };
  }

  /** The body, of which no more is read than may be. */
  async #read(answer: globalThis.Response): Promise<Bytes> {
    this.#admit(Number(answer.headers.get("content-length") ?? 0));
    const chunks: Bytes[] = [];
    let length = 0;
    const reader = answer.body?.getReader();
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
      length += next.value.length;
      this.#admit(length);
      chunks.push(next.value);
    }
    return joined(chunks, length);
  }

  #admit(length: number): void {
    if (length > this.#most) {
      throw new AnswerTooLargeError(`the answer has more than ${this.#most} bytes (maxResponseBytes): it was not read`);
    }
  }
}

type Strings = { readonly [name: string]: string | undefined };

/** What there is of Node's `process`. */
function surrounding(): { readonly env?: Strings; readonly versions?: Strings } {
  return (globalThis as { process?: ReturnType<typeof surrounding> }).process ?? {};
}

/** Whether it is Node itself: others take its name as well. */
function isNode(): boolean {
  const { node, bun, deno } = surrounding().versions ?? {};
  return node !== undefined && bun === undefined && deno === undefined;
}

/** A server's URL without what paths would not fit behind. Throws InputError. */
function baseOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !["http:", "https:"].includes(parsed.protocol)) {
    throw new InputError("a server's URL begins with http:// or https://, and has a host");
  }
  if (parsed.username || parsed.password) throw new InputError("a server's URL holds no user: the key is an argument");
  return parsed.origin + parsed.pathname.replace(/\/+$/, "");
}

/** The query, which says how much time is left where it may. */
function queryOf(request: Stated, left: number | null): string {
  const time = left === null || !request.takesTime ? {} : { timeout_ms: String(Math.max(1, Math.floor(left))) };
  const query = new URLSearchParams({ ...request.query, ...time }).toString();
  return query && `?${query}`;
}

/** Pieces one behind the other, which are not copied. */
function streamOf(pieces: readonly Bytes[]): ReadableStream<Bytes> {
  const left = [...pieces];
  return new ReadableStream({
    pull(controller) {
      const piece = left.shift();
      if (piece) controller.enqueue(piece);
      else controller.close();
    },
  });
}

/** Whether the body came compressed where we could say that it should not; browsers decide that by themselves. */
function isCompressed(answer: globalThis.Response, url: string): boolean {
  const coding = answer.headers.get("content-encoding")?.toLowerCase() ?? "identity";
  const asked = new Request(url, { headers: { "Accept-Encoding": "identity" } });
  return coding !== "identity" && asked.headers.has("Accept-Encoding");
}

function joined(chunks: readonly Bytes[], length: number): Bytes {
  const [only, ...others] = chunks;
  if (only && !others.length) return only;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

/** What went wrong, with what lies beneath it. Neither headers nor bodies are in it. */
function told(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
