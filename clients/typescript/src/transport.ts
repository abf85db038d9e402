/** I/O: sends one request and returns its response. */

import type { Bytes } from "./bytes.js";
import { AnswerTooLargeError, ConnectionError, InputError, MalformedAnswerError } from "./errors.js";
import type { Request as Stated } from "./requests.js";
import { Response } from "./response.js";
import type { Deadline } from "./retries.js";

/** A function that sends requests, with the signature of the platform's `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<globalThis.Response>;

/** The environment variable with the default API key. */
const KEY_VARIABLE = "GRADSERVE_API_KEY";

export class Transport {
  readonly #base: string;
  readonly #headers: { readonly [name: string]: string };
  readonly #most: number;
  readonly #fetch: Fetch;
  /**
   * Whether bodies are streamed from memory and sent once. Like browsers, Node would send other bodies again after a
   * 421.
   */
  readonly #streams: boolean;

  /** Throws InputError. Its message does not contain the key. */
  constructor(url: string, apiKey: string | undefined, most: number, fetch: Fetch | undefined) {
    const key = apiKey ?? surrounding().env?.[KEY_VARIABLE];
    if (key && !/^[\x21-\x7e]+$/.test(key)) throw new InputError("the API key is not a valid header value");
    // A compressed response would exceed its stated length, and tensors do not compress well.
    this.#headers = { "Accept-Encoding": "identity", ...(key && { Authorization: `Bearer ${key}` }) };
    this.#base = baseOf(url);
    this.#most = most;
    this.#streams = !fetch && isNode();
    this.#fetch = fetch ?? ((...asked) => globalThis.fetch(...asked));
  }

  /** Sends a request and returns the response. Throws TransportError, DeadlineError, or the reason of `signal`. */
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
      if (isCompressed(answer, url)) throw new MalformedAnswerError("the response has an unexpected Content-Encoding");
      return new Response(answer.status, answer.headers, await this.#read(answer));
    } catch (error) {
      if (ending.signal.aborted) throw ending.signal.reason;
      // Do not wait for a body that is not read.
      ending.abort();
      if (error instanceof MalformedAnswerError || error instanceof AnswerTooLargeError) throw error;
      throw new ConnectionError(`${request.method} ${request.path}: ${told(error)}`, { cause: error });
    }
  }

  /** Returns the headers and body to send. */
  #stated({ headers, body }: Stated): RequestInit & { readonly duplex?: "half" } {
    const all = { ...this.#headers, ...headers };
    if (!body) return { headers: all };
    if (!this.#streams) return { headers: all, body: new Blob([...body]) };
    const length = body.reduce((sum, piece) => sum + piece.length, 0);
    return { headers: { ...all, "Content-Length": String(length) }, body: streamOf(body), duplex: "half" };
  }

  /** Reads the body up to the size limit. */
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
      throw new AnswerTooLargeError(`the response exceeds the limit of ${this.#most} bytes (maxResponseBytes)`);
    }
  }
}

type Strings = { readonly [name: string]: string | undefined };

/** Returns the parts of Node's `process` that are used here. */
function surrounding(): { readonly env?: Strings; readonly versions?: Strings } {
  return (globalThis as { process?: ReturnType<typeof surrounding> }).process ?? {};
}

/** Returns whether this is Node itself. Other runtimes also define `process`. */
function isNode(): boolean {
  const { node, bun, deno } = surrounding().versions ?? {};
  return node !== undefined && bun === undefined && deno === undefined;
}

/** Returns a server URL to which paths can be appended. Throws InputError. */
function baseOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !["http:", "https:"].includes(parsed.protocol)) {
    throw new InputError("the server's URL must be an http:// or https:// URL with a host");
  }
  if (parsed.username || parsed.password) {
    throw new InputError("the server's URL must not contain a user or password: pass the API key as apiKey");
  }
  return parsed.origin + parsed.pathname.replace(/\/+$/, "");
}

/** Returns the query, with the remaining time if there is a limit. */
function queryOf(request: Stated, left: number | null): string {
  const time = left === null ? {} : { timeout_ms: String(Math.max(1, Math.floor(left))) };
  const query = new URLSearchParams({ ...request.query, ...time }).toString();
  return query && `?${query}`;
}

/** Yields the pieces one after another, without copying them. */
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

/** Returns whether a body is compressed despite the request. Browsers choose the encoding themselves. */
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

/** Describes an error with its causes. Headers and bodies are not quoted. */
function told(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
