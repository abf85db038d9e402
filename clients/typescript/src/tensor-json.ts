/** Tensors in JSON: numbers, or base64 of their bytes. */

import { fromBase64, toBase64 } from "./bytes.js";
import { DTYPES, type Dtype, isDtype } from "./dtypes.js";
import { InputError, MalformedAnswerError } from "./errors.js";
import type { Json, JsonObject } from "./json.js";
import { numbersAs, type Scalar, type Shape, Tensor } from "./tensor.js";

/** Encodings of tensors: numbers in JSON, base64 of their bytes in JSON, or bytes in a safetensors file. */
export type Form = "json" | "base64" | "safetensors";

/** The size in bytes from which tensors are sent as safetensors by default. */
const LARGE = 4096;
/** The largest integer that every JSON parser reads exactly. */
const EXACT = 2n ** 53n;

/** Returns the default form for tensors of `nbytes` bytes. */
export function defaultForm(nbytes: number): Form {
  return nbytes >= LARGE ? "safetensors" : "base64";
}

/**
 * Converts a tensor to JSON: to base64 unless `form` is "json".
 *
 * Values that JSON numbers cannot represent (NaN, infinities, integers beyond 2⁵³) are always sent as base64. In
 * "json", a complex number is its real part followed by its imaginary part.
 */
export function toJson(tensor: Tensor, form: Form = "base64"): JsonObject {
  const { dtype, shape } = tensor;
  if (form === "json" && isExactInJson(tensor)) return { dtype, shape, data: [...tensor.elements()].flatMap(numbersIn) };
  return { dtype, shape, data_b64: toBase64(tensor.bytes()) };
}

function numbersIn(element: Scalar): readonly (number | bigint)[] {
  if (typeof element === "object") return [element.re, element.im];
  return [typeof element === "boolean" ? Number(element) : element];
}

function isExactInJson(tensor: Tensor): boolean {
  if (!DTYPES[tensor.dtype].range) {
    return [...tensor.elements()].flatMap(numbersIn).every((number) => Number.isFinite(number));
  }
  const { data } = tensor;
  return !(data instanceof BigInt64Array) || data.every((element) => -EXACT <= element && element <= EXACT);
}

/** Reads a tensor from a response member. Throws MalformedAnswerError. */
export function fromJson(stated: Json | undefined): Tensor {
  if (typeof stated !== "object" || stated === null || Array.isArray(stated)) {
    throw new MalformedAnswerError("expected a tensor: an object with dtype and shape");
  }
  const { dtype, shape, data, data_b64: text } = stated as JsonObject;
  if (!isDtype(dtype)) throw new MalformedAnswerError(`unsupported dtype ${dtype}`);
  try {
    if (isThere(data) && isThere(text)) throw new InputError("the tensor has both data and data_b64");
    if (isThere(data)) return ofNumbers(data, dtype, shape as Shape);
    return Tensor.fromBytes(decoded(isThere(text) ? text : ""), dtype, shape as Shape);
  } catch (error) {
    throw error instanceof InputError ? new MalformedAnswerError(error.message) : error;
  }
}

/** Returns whether a payload is present. An empty payload counts as absent: the tensor must be empty too. */
function isThere(payload: Json | undefined): boolean {
  return payload !== undefined && payload !== null && payload !== "" && !(Array.isArray(payload) && !payload.length);
}

function ofNumbers(data: Json | undefined, dtype: Dtype, shape: Shape): Tensor {
  const isAllNumbers = Array.isArray(data) && data.every((one) => typeof one === "bigint" || Number.isFinite(one));
  if (!isAllNumbers) throw new InputError("data must be a list of numbers");
  return new Tensor(dtype, shape, numbersAs(data, dtype));
}

function decoded(text: Json | undefined): NonNullable<ReturnType<typeof fromBase64>> {
  const bytes = typeof text === "string" ? fromBase64(text) : undefined;
  if (!bytes) throw new InputError("data_b64 is not valid base64");
  return bytes;
}
