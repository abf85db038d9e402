/**
 * Errors, grouped by how to handle them. `kind` gives the group as a string.
 *
 * GradserveError
 * ├── InputError                  rejected before it was sent: fix the program
 * ├── TransportError              no readable response
 * │   ├── ConnectionError         no response, or an incomplete one: check the network, or retry
 * │   ├── MalformedAnswerError    not a gradserve response: look for a proxy in between
 * │   └── AnswerTooLargeError     longer than `maxResponseBytes`: request less, or raise the limit
 * ├── DeadlineError               the timeout expired: request less, or raise the timeout
 * └── Refusal                     a problem report of the server, with all of its fields
 *     ├── GraphError              an invalid request, or one beyond a limit: fix the graph or its feeds
 *     ├── AuthenticationError     the API key is missing, unknown or lacks the permission: use another key
 *     ├── RateError               the key has exceeded its rate limit: send fewer requests
 *     ├── OverloadError           the server is busy or shutting down: retry later
 *     ├── DeadlineRefusal         the timeout expired on the server; also a DeadlineError
 *     ├── NotFoundError           nothing is stored under this name or id: put or register it
 *     ├── ConditionError          another client has written it, or it is in use: read again, then write
 *     ├── StoreFullError          the server's store is full: delete something
 *     └── ServerError             an internal error of the server: report it with its `requestId`
 *
 * A call that you abort with its signal rejects with the reason of the signal.
 */

import type { Json } from "./json.js";

export type ErrorKind =
  | "input"
  | "transport"
  | "too_large"
  | "deadline"
  | "graph"
  | "authentication"
  | "rate"
  | "overload"
  | "not_found"
  | "condition"
  | "store_full"
  | "server";

/** The base class of all errors that this package throws. */
export abstract class GradserveError extends Error {
  abstract readonly kind: ErrorKind;
}

/** An invalid argument, detected by the client before it sent anything. */
export class InputError extends GradserveError {
  override readonly name = "InputError";
  readonly kind = "input";
}

/** The response is missing or cannot be read. */
export abstract class TransportError extends GradserveError {}

/** There is no response, or an incomplete one. The server may still have executed the request. */
export class ConnectionError extends TransportError {
  override readonly name = "ConnectionError";
  readonly kind = "transport";
}

/** The response is invalid: wrong media type, invalid JSON, or a tensor that does not fit its bytes. */
export class MalformedAnswerError extends TransportError {
  override readonly name = "MalformedAnswerError";
  readonly kind = "transport";
}

/** The response is longer than `maxResponseBytes`. It was not read. */
export class AnswerTooLargeError extends TransportError {
  override readonly name = "AnswerTooLargeError";
  readonly kind = "too_large";
}

/** The timeout of the call expired, on the client or on the server. */
export class DeadlineError extends GradserveError {
  override readonly name: string = "DeadlineError";
  readonly kind = "deadline";

  /** Makes a DeadlineRefusal an instance too: a class cannot extend both Refusal and DeadlineError. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof GradserveError && value.kind === "deadline";
  }
}

/** A problem report of the server, by its API names. */
export type Problem = { readonly [name: string]: Json };

/**
 * A problem report of the server, as docs/wire.md describes it: `detail` is for people, `code` for programs.
 *
 * New codes may be added at any time. Members that the report lacks, for example in an error page of a proxy, are empty
 * or undefined. `extra` holds the members that this client does not know. `retryAfterMs` is the time after which the
 * server accepts a retry. `errors` lists all errors if the server found several.
 */
export abstract class Refusal extends GradserveError {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly type: string;
  readonly title: string;
  readonly requestId: string;
  readonly node: number | undefined;
  readonly function: number | undefined;
  readonly functionNode: number | undefined;
  readonly operand: number | undefined;
  readonly expected: string | undefined;
  readonly got: string | undefined;
  readonly pointer: string | undefined;
  readonly errors: readonly Refusal[];
  readonly extra: Problem;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, problem: Problem, retryAfterMs?: number) {
    const code = text(problem["code"]) ?? "";
    const detail = text(problem["detail"]) ?? "";
    super(code ? `${code}: ${detail}` : `status ${status} without a problem report`);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.type = text(problem["type"]) ?? "";
    this.title = text(problem["title"]) ?? "";
    this.requestId = text(problem["request_id"]) ?? "";
    this.node = whole(problem["node"]);
    this.function = whole(problem["function"]);
    this.functionNode = whole(problem["function_node"]);
    this.operand = whole(problem["operand"]);
    this.expected = text(problem["expected"]);
    this.got = text(problem["got"]);
    this.pointer = text(problem["pointer"]);
    this.errors = reports(problem["errors"]).map((one) => refusal(whole(one["status"]) ?? status, one));
    this.extra = Object.fromEntries(Object.entries(problem).filter(([name]) => !KNOWN.has(name)));
    this.retryAfterMs = retryAfterMs;
  }

  /** Appends a sentence to the message, with a fact that only the client knows. */
  add(sentence: string): void {
    const before = this.message;
    this.message = `${before} (${sentence})`;
    // Engines copy the message into the stack when they create the error.
    this.stack = this.stack?.replace(before, () => this.message) ?? this.message;
  }
}

/** The request is invalid, or exceeds a limit of the server. */
export class GraphError extends Refusal {
  override readonly name = "GraphError";
  readonly kind = "graph";
}

/** The API key is missing, unknown, or lacks the permission. */
export class AuthenticationError extends Refusal {
  override readonly name = "AuthenticationError";
  readonly kind = "authentication";
}

/** The API key has exceeded its rate limit. */
export class RateError extends Refusal {
  override readonly name = "RateError";
  readonly kind = "rate";
}

/** The server is busy or shutting down. */
export class OverloadError extends Refusal {
  override readonly name = "OverloadError";
  readonly kind = "overload";
}

/** The timeout expired on the server. It is also a DeadlineError. */
export class DeadlineRefusal extends Refusal {
  override readonly name = "DeadlineRefusal";
  readonly kind = "deadline";
}

/** Nothing is stored under this name or id. */
export class NotFoundError extends Refusal {
  override readonly name = "NotFoundError";
  readonly kind = "not_found";
}

/** A condition of the request does not hold, or the stored state has changed. */
export class ConditionError extends Refusal {
  override readonly name = "ConditionError";
  readonly kind = "condition";
}

/** The server has no room for the request's data. */
export class StoreFullError extends Refusal {
  override readonly name = "StoreFullError";
  readonly kind = "store_full";
}

/** An internal error of the server. */
export class ServerError extends Refusal {
  override readonly name = "ServerError";
  readonly kind = "server";
}

const KNOWN: ReadonlySet<string> = new Set([
  "status",
  "code",
  "detail",
  "type",
  "title",
  "request_id",
  "node",
  "function",
  "function_node",
  "operand",
  "expected",
  "got",
  "pointer",
  "errors",
]);

type Report = new (status: number, problem: Problem, retryAfterMs?: number) => Refusal;

const BY_STATUS: ReadonlyMap<number, Report> = new Map<number, Report>([
  [401, AuthenticationError],
  [403, AuthenticationError],
  [404, NotFoundError],
  [408, DeadlineRefusal],
  [409, ConditionError],
  [412, ConditionError],
  [429, RateError],
  [503, OverloadError],
  [504, DeadlineRefusal],
  [507, StoreFullError],
]);

/** Converts a problem report into an error. The status decides the class, not the code, because new codes are added. */
export function refusal(status: number, problem: Problem, retryAfterMs?: number): Refusal {
  const Kind = BY_STATUS.get(status) ?? (status >= 500 ? ServerError : GraphError);
  return new Kind(status, problem, retryAfterMs);
}

function text(member: Json | undefined): string | undefined {
  return typeof member === "string" ? member : undefined;
}

function whole(member: Json | undefined): number | undefined {
  return Number.isSafeInteger(member) ? Number(member) : undefined;
}

function reports(member: Json | undefined): readonly Problem[] {
  return Array.isArray(member) ? member.filter((one): one is Problem => typeof one === "object" && one !== null) : [];
}
