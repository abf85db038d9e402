/** HTTP responses as received. */

import type { Bytes } from "./bytes.js";
import { ConnectionError, MalformedAnswerError, type Refusal, refusal } from "./errors.js";
import { type Json, type JsonObject, parse } from "./json.js";
import { JSON_TYPE, SAFETENSORS_TYPE } from "./message.js";
import { object, string } from "./reading.js";
import { decode, isCutOff } from "./safetensors.js";
import type { Tensor } from "./tensor.js";
import { fromJson } from "./tensor-json.js";

const PROBLEM_TYPE = "application/problem+json";
const BINARY_TYPES = [SAFETENSORS_TYPE, "application/octet-stream"];

/** The JSON object of a response, and the tensors beside it. */
export interface Parts {
  readonly fields: JsonObject;
  readonly beside: ReadonlyMap<string, Tensor>;
}

export class Response {
  constructor(
    readonly status: number,
    readonly headers: Headers,
    readonly body: Bytes,
  ) {}

  #media(): string {
    return (this.headers.get("content-type") ?? "").replace(/;.*/s, "").trim().toLowerCase();
  }

  #isBinary(): boolean {
    return BINARY_TYPES.includes(this.#media());
  }

  /**
   * Returns this response if the request succeeded. Throws a Refusal for a problem report, MalformedAnswerError for a
   * redirect, and ConnectionError for an incomplete body: Node's `fetch` accepts a closed connection as the end of a
   * body without a length.
   */
  checked(): this {
    if (this.status >= 400) throw this.#refusal();
    if (![200, 201, 304].includes(this.status)) {
      const told = this.status ? `status ${this.status}` : "redirect";
      throw new MalformedAnswerError(`unexpected ${told}: not a gradserve response`);
    }
    if (!this.headers.has("content-length") && this.#isCutOff()) {
      throw new ConnectionError("the connection closed before the end of the response");
    }
    return this;
  }

  #isCutOff(): boolean {
    if (this.#isBinary()) return isCutOff(this.body);
    return this.#media() === JSON_TYPE && parsedOrNone(this.body) === undefined;
  }

  #refusal(): Refusal {
    const stated = (this.headers.get("retry-after") ?? "").trim();
    const retryAfterMs = /^\d+$/.test(stated) ? Number(stated) * 1000 : undefined;
    const isReport = [PROBLEM_TYPE, JSON_TYPE].includes(this.#media());
    const problem = isReport ? parsedOrNone(this.body) : undefined;
    return refusal(this.status, isProblem(problem) ? problem : {}, retryAfterMs);
  }

  /** Parses the body as a JSON object. Throws MalformedAnswerError. */
  json(): JsonObject {
    if (this.#media() !== JSON_TYPE) {
      throw new MalformedAnswerError(
        `expected a response of media type ${JSON_TYPE}, got ${this.#media() || "none"}`,
      );
    }
    return objectOf(this.body);
  }

  /** Returns the JSON object of the response, and the tensors beside it. Throws MalformedAnswerError. */
  parts(): Parts {
    if (!this.#isBinary()) return { fields: this.json(), beside: new Map() };
    const { metadata, tensors } = decode(this.body);
    return { fields: objectOf(new TextEncoder().encode(metadata["response"] ?? "")), beside: tensors };
  }

  /** Returns the etag and the elements of a resident tensor. Throws MalformedAnswerError. */
  tensor(): { readonly etag: string; readonly tensor: Tensor } {
    if (!this.#isBinary()) {
      const answer = this.json();
      return { etag: string(answer, "etag"), tensor: fromJson(answer["tensor"]) };
    }
    const [tensor, ...others] = decode(this.body).tensors.values();
    if (!tensor || others.length) throw new MalformedAnswerError("expected exactly one tensor in the response");
    return { etag: (this.headers.get("etag") ?? "").replace(/^W\//, "").replace(/^"(.*)"$/s, "$1"), tensor };
  }
}

function isProblem(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && "code" in value && typeof value.code === "string";
}

function parsedOrNone(body: Bytes): Json | undefined {
  try {
    return parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    return undefined;
  }
}

function objectOf(body: Bytes): JsonObject {
  const answer = parsedOrNone(body);
  if (answer === undefined) throw new MalformedAnswerError("the response is not valid JSON");
  return object(answer);
}
