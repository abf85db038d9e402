/** Resident tensors: tensors stored on the server under a name. */

import { type JsonObject } from "./json.js";
import { list, maybe, number, numbers, string, truth } from "./reading.js";
import type { Tensor } from "./tensor.js";

/**
 * A handle of one version of a resident tensor. Pass it to calls in place of a tensor.
 *
 * A call reads the version that is stored when it runs. `etag` identifies the version of this handle, for conditions.
 * Fields that the server did not report are undefined: dtype, shape and size are known for tensors that were put or
 * listed, not for tensors that a call stored.
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

  /** Returns rows `start` to `stop` (exclusive) of the leading axis. Calls accept them in place of a tensor. */
  rows(start: number, stop: number): Rows {
    return new Rows(this.name, start, stop);
  }

  /** Reads a handle from a response. Throws MalformedAnswerError. */
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

/** Rows `start` to `stop` (exclusive) of a resident tensor, along its leading axis. */
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
 * The tensor that a call stores: the value of a node or, with `gradient`, the gradient with respect to it.
 *
 * `ifMatch` is the etag that the tensor must have now, "*" for any, or "" if it must not exist. With `durable: false`,
 * the server may respond before the tensor is on disk.
 */
export interface Store {
  readonly name: string;
  readonly ifMatch?: string | undefined;
  readonly durable?: boolean | undefined;
  readonly gradient?: boolean | undefined;
}

/** Returns the name of a tensor that is given as a handle or by name. */
export function nameOfTensor(tensor: Resident | string): string {
  return tensor instanceof Resident ? tensor.name : tensor;
}

/** Returns the etag of a version. A string is returned as it is. */
export function etagOf(version: { readonly etag: string } | string): string {
  return typeof version === "string" ? version : version.etag;
}
