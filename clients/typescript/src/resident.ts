/** Tensors that stay with the server, under a name. */

import { type JsonObject } from "./json.js";
import { list, maybe, number, numbers, string, truth } from "./reading.js";
import type { Tensor } from "./tensor.js";

/**
 * A version of a resident tensor, which may stand wherever a call takes a tensor.
 *
 * A call reads the version that is there when it comes: `etag` says which one this was, for conditions. What the server
 * did not say is undefined: dtype, shape and bytes are known of what is put and listed, not of what is stored.
 */
export class Resident {
  readonly dtype: string | undefined;
  readonly shape: readonly number[] | undefined;
  readonly nbytes: number | undefined;
  readonly durable: boolean | undefined;
  readonly writtenWithinMs: number | undefined;

  constructor(
    readonly name: string,
    readonly etag: string,
    known: Partial<Omit<Resident, "name" | "etag" | "rows">> = {},
  ) {
    this.dtype = known.dtype;
    this.shape = known.shape;
    this.nbytes = known.nbytes;
    this.durable = known.durable;
    this.writtenWithinMs = known.writtenWithinMs;
  }

  /** The part of it from start to before stop on its leading axis, which may stand where it may. */
  rows(start: number, stop: number): Rows {
    return new Rows(this.name, start, stop);
  }

  /** What an answer says of a tensor. Throws MalformedAnswerError. */
  static fromWire(stated: JsonObject): Resident {
    return new Resident(string(stated, "tensor_id"), string(stated, "etag"), {
      dtype: maybe(string, stated, "dtype"),
      shape: maybe(list, stated, "shape") && numbers(stated, "shape"),
      nbytes: maybe(number, stated, "bytes"),
      durable: maybe(truth, stated, "durable"),
      writtenWithinMs: maybe(number, stated, "written_within_ms"),
    });
  }
}

/** Part of a resident tensor: what lies from `start` to before `stop` on its leading axis. */
export class Rows {
  constructor(
    readonly name: string,
    readonly start: number,
    readonly stop: number,
  ) {}
}

/** A resident tensor with its elements. */
export interface ResidentTensor {
  readonly handle: Resident;
  readonly tensor: Tensor;
}

/**
 * Under which name a call is to keep the value of a node, or the gradient by it, and on what condition.
 *
 * `ifMatch` is the etag that the tensor must have now, "*" where any will do, "" where there must be none. Where
 * `durable` is false, it is on disk some time after the answer.
 */
export interface Store {
  readonly name: string;
  readonly ifMatch?: string | undefined;
  readonly durable?: boolean | undefined;
  readonly gradient?: boolean | undefined;
}

/** The name of a tensor, or the name itself. */
export function nameOfTensor(tensor: Resident | string): string {
  return tensor instanceof Resident ? tensor.name : tensor;
}

/** The etag of a version, or the etag itself, or "*". */
export function etagOf(version: { readonly etag: string } | string): string {
  return typeof version === "string" ? version : version.etag;
}
