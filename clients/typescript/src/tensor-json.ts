/** Tensors as JSON has them: as numbers, or as base64 of their bytes. */

import { fromBase64, toBase64 } from "./bytes.js";
import { DTYPES, type Dtype, isDtype } from "./dtypes.js";
import { InputError, MalformedAnswerError } from "./errors.js";
import type { Json, JsonObject } from "./json.js";
import { numbersAs, type Scalar, type Shape, Tensor } from "./tensor.js";

/** How tensors travel: as numbers, as base64 of their bytes, or as bytes in a safetensors file. */
export type Form = "json" | "base64" | "safetensors";

/** From so many bytes on, tensors travel as safetensors unless told otherwise. */
const LARGE = 4096;
/** Whole numbers that every reader of JSON reads exactly. */
const EXACT = 2n ** 53n;

/** How tensors of so many bytes travel, where nobody says. */
export function defaultForm(nbytes: number): Form {
  return nbytes >= LARGE ? "safetensors" : "base64";
}

/**
 * A tensor in JSON: in base64, unless `form` is "json".
 *
 * Even then where JSON has no such numbers: NaN, infinities, whole numbers beyond 2⁵³. Of a complex number it has the
 * real part, then the imaginary one.
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

/** The tensor that a member of an answer is. Throws MalformedAnswerError. */
export function fromJson(stated: Json | undefined): Tensor {
  if (typeof stated !== "object" || stated === null || Array.isArray(stated)) {
    throw new MalformedAnswerError("a tensor is an object with dtype and shape");
  }
  const { dtype, shape, data, data_b64: text } = stated as JsonObject;
  if (!isDtype(dtype)) throw new MalformedAnswerError(`the tensor is ${dtype}, which this client cannot read`);
  try {
    if (isThere(data) && isThere(text)) throw new InputError("a tensor has data or data_b64, and this one has both");
    if (isThere(data)) return ofNumbers(data, dtype, shape as Shape);
    return Tensor.fromBytes(decoded(isThere(text) ? text : ""), dtype, shape as Shape);
  } catch (error) {
    throw error instanceof InputError ? new MalformedAnswerError(error.message) : error;
  }
}

/** An empty payload is as if absent: the tensor has to be empty, too. */
function isThere(payload: Json | undefined): boolean {
  return payload !== undefined && payload !== null && payload !== "" && !(Array.isArray(payload) && !payload.length);
}

function ofNumbers(data: Json | undefined, dtype: Dtype, shape: Shape): Tensor {
  const isAllNumbers = Array.isArray(data) && data.every((one) => typeof one === "bigint" || Number.isFinite(one));
  if (!isAllNumbers) throw new InputError("data is a list of numbers");
  return new Tensor(dtype, shape, numbersAs(data, dtype));
}

function decoded(text: Json | undefined): NonNullable<ReturnType<typeof fromBase64>> {
  const bytes = typeof text === "string" ? fromBase64(text) : undefined;
  if (!bytes) throw new InputError("data_b64 is not base64");
  return bytes;
}
