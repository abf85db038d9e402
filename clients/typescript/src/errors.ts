/**
 * Everything that can go wrong, by what one does about it; `kind` says the same in a word.
 *
 * GradserveError
 * ├── InputError                  refused before anything was sent: mend the program
 * ├── TransportError              there is no answer that could be read
 * │   ├── ConnectionError         none came, or half of one: look at the network, or try again
 * │   ├── MalformedAnswerError    something else came than was promised: look at what stands in between
 * │   └── AnswerTooLargeError     it is longer than `maxResponseBytes`: ask for less, or raise that
 * ├── DeadlineError               the time was up: ask for less, or give more
 * └── Refusal                     the server's report, with all of its fields
 *     ├── GraphError              the request is wrong, or more than one may ask: mend the graph, or what it is fed
 *     ├── AuthenticationError     the key is missing, unknown, or not allowed this: get another
 *     ├── RateError               the key has used up its rate: ask less often
 *     ├── OverloadError           the server is busy, or about to stop: ask later
 *     ├── DeadlineRefusal         the time was up on the server; a DeadlineError, too
 *     ├── NotFoundError           nothing is kept under this name or id: put or register it
 *     ├── ConditionError          somebody else has written meanwhile, or needs it: read again, then write
 *     ├── StoreFullError          there is no room: delete something
 *     └── ServerError             a fault of the server's own: report it with its `requestId`
 *
 * A call that its own signal aborts rejects with the reason of that signal.
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

/** Whatever this package throws on purpose. */
export abstract class GradserveError extends Error {
  abstract readonly kind: ErrorKind;
}

/** What the client knows to be wrong, and has not sent. */
export class InputError extends GradserveError {
  override readonly name = "InputError";
  readonly kind = "input";
}

/** There is no answer that could be read. */
export abstract class TransportError extends GradserveError {}

/** No answer came, or half of one. What keeps something may have been kept. */
export class ConnectionError extends TransportError {
  override readonly name = "ConnectionError";
  readonly kind = "transport";
}

/** What came is not what was promised: another media type, broken JSON, a tensor that does not fit its bytes. */
export class MalformedAnswerError extends TransportError {
  override readonly name = "MalformedAnswerError";
  readonly kind = "transport";
}

/** The answer is longer than `maxResponseBytes`. It was not read. */
export class AnswerTooLargeError extends TransportError {
  override readonly name = "AnswerTooLargeError";
  readonly kind = "too_large";
}

/** The time for all tries was up, or the server's was. */
export class DeadlineError extends GradserveError {
  override readonly name: string = "DeadlineError";
  readonly kind = "deadline";

  /** A refusal may be one as well, which a class that extends two would be. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof GradserveError && value.kind === "deadline";
  }
}

/** A report of the server's, by the names of the wire. */
export type Problem = { readonly [name: string]: Json };

/**
 * A report of the server's, as docs/wire.md has it: `detail` is for people, `code` for programs.
 *
 * Codes are an open list; what did not come, as with a proxy's page, is empty or undefined. `extra` has the members
 * that this client does not know, `retryAfterMs` how long the server wants to be left alone, and `errors` all that was
 * found wrong, where that was more than one thing.
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
    super(code ? `${code}: ${detail}` : `status ${status}, without a report that says why`);
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

  /** Say more than the report does, of what the client knows. */
  add(sentence: string): void {
    const before = this.message;
    this.message = `${before} (${sentence})`;
    // Engines write the message into the stack when the error is made.
    this.stack = this.stack?.replace(before, () => this.message) ?? this.message;
  }
}

/** The request is wrong, or more than one may ask. */
export class GraphError extends Refusal {
  override readonly name = "GraphError";
  readonly kind = "graph";
}

/** The key is missing, unknown, or not allowed this. */
export class AuthenticationError extends Refusal {
  override readonly name = "AuthenticationError";
  readonly kind = "authentication";
}

/** The key has used up its rate. */
export class RateError extends Refusal {
  override readonly name = "RateError";
  readonly kind = "rate";
}

/** The server cannot take it now. */
export class OverloadError extends Refusal {
  override readonly name = "OverloadError";
  readonly kind = "overload";
}

/** The time was up on the server. It is a DeadlineError, too. */
export class DeadlineRefusal extends Refusal {
  override readonly name = "DeadlineRefusal";
  readonly kind = "deadline";
}

/** Nothing is kept under this name or id. */
export class NotFoundError extends Refusal {
  override readonly name = "NotFoundError";
  readonly kind = "not_found";
}

/** The state is another one than the request demands, or than it was. */
export class ConditionError extends Refusal {
  override readonly name = "ConditionError";
  readonly kind = "condition";
}

/** There is no room left for what was to be kept. */
export class StoreFullError extends Refusal {
  override readonly name = "StoreFullError";
  readonly kind = "store_full";
}

/** A fault of the server's own. */
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

/** A report as the error that says what to do about it. The status decides, whatever the code: codes are added. */
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
