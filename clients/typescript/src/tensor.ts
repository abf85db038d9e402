/** Conversion of tensors from and to typed arrays: exact for every value, without a copy if possible. */

import { type Bytes, reordered, viewOf } from "./bytes.js";
import { type ComplexDtype, DTYPE_NAMES, DTYPES, type Dtype, type Elements, isDtype, numbersOf, type TypedArray } from "./dtypes.js";
import { InputError } from "./errors.js";
import { fromHalf, toHalf } from "./half.js";
import { nameOf } from "./json.js";

/** The maximum number of axes of a NumPy array. */
const MOST_AXES = 64;
/** Exclusive limit on the bytes of a tensor, with extents of 0 counted as 1. */
const MOST_BYTES = 2n ** 53n;

/** A complex number. */
export interface Complex {
  readonly re: number;
  readonly im: number;
}
/** One element: a bigint for int64, a boolean for bool, `{ re, im }` for complex dtypes, otherwise a number. */
export type Scalar = number | bigint | boolean | Complex;
/**
 * Numbers, and nested lists of numbers. Without a dtype, numbers become float64, bigints int64, booleans bool, and
 * `{ re, im }` complex128.
 */
export type Nested = Scalar | readonly Nested[];
/**
 * A value that is accepted as a tensor. A typed array has one axis. A Uint16Array can be float16 bits, and a
 * Float32Array or Float64Array can be re, im, re, im, … of complex numbers, if that dtype is requested.
 */
export type TensorLike = Tensor | TypedArray | Nested;
export type Shape = readonly number[];

/**
 * A tensor. `data` holds its elements in row-major order: float16 as bits, bool as zeros and ones, and complex numbers
 * as two numbers each, the real part followed by the imaginary part. `complexAt(place)` returns a complex element.
 *
 * Throws InputError for an unsupported dtype, and if the elements do not match dtype and shape.
 */
export class Tensor<D extends Dtype = Dtype> {
  constructor(
    readonly dtype: D,
    readonly shape: Shape,
    readonly data: Elements[D],
  ) {
    const { Elements, kind } = known(dtype);
    if (!(data instanceof Elements)) throw new InputError(`${dtype} requires ${Elements.name}, not ${nameOf(data)}`);
    const wanted = sizeOf(shape, dtype) * BigInt(numbersOf(dtype));
    if (BigInt(data.length) !== wanted) {
      const unit = kind === "complex" ? "real and imaginary parts" : "elements";
      throw new InputError(`${dtype} of shape [${shape.join(", ")}] has ${wanted} ${unit}, not ${data.length}`);
    }
    if (kind === "bool" && (data as Uint8Array).some((element) => element > 1)) {
      throw new InputError("the elements of a bool tensor must be 0 or 1");
    }
  }

  /** Returns the tensor with these little-endian bytes: a view if they are aligned, otherwise a copy. */
  static fromBytes<D extends Dtype>(bytes: Bytes, dtype: D, shape: Shape): Tensor<D> {
    const { Elements: ArrayType } = known(dtype);
    const width = ArrayType.BYTES_PER_ELEMENT;
    const wanted = sizeOf(shape, dtype) * BigInt(width * numbersOf(dtype));
    if (BigInt(bytes.length) !== wanted) {
      throw new InputError(`${dtype} of shape [${shape.join(", ")}] has ${wanted} bytes, not ${bytes.length}`);
    }
    const ordered = reordered(bytes, width);
    const { buffer, byteOffset } = ordered.byteOffset % width ? ordered.slice() : ordered;
    return new Tensor(dtype, shape, new ArrayType(buffer, byteOffset, bytes.length / width) as Elements[D]);
  }

  /** Returns the elements as little-endian bytes: a view of `data` if possible. */
  bytes(): Bytes {
    return reordered(viewOf(this.data), this.data.BYTES_PER_ELEMENT);
  }

  /** Returns this tensor if it has this dtype. Throws InputError if it has another. */
  as<Wanted extends Dtype>(dtype: Wanted): Tensor<Wanted> {
    if ((this.dtype as Dtype) !== dtype) throw new InputError(`the tensor holds ${this.dtype} elements, not ${dtype}`);
    return this as unknown as Tensor<Wanted>;
  }

  /** The number of elements. */
  get size(): number {
    return this.data.length / numbersOf(this.dtype);
  }

  /**
   * Returns the complex number at a row-major position. Throws InputError for other dtypes, and for positions out of
   * range.
   */
  complexAt(this: Tensor<ComplexDtype>, place: number): Complex {
    const [re, im] = [this.data[2 * place], this.data[2 * place + 1]];
    if (DTYPES[this.dtype].kind !== "complex") throw new InputError(`expected a complex tensor, got ${this.dtype}`);
    if (re === undefined || im === undefined) {
      throw new InputError(`index ${place} is out of range for a tensor with ${this.size} elements`);
    }
    return { re, im };
  }

  /**
   * Returns the only element: a bigint for int64, a boolean for bool, `{ re, im }` for complex dtypes, otherwise a
   * number. Throws InputError if there is not exactly one element.
   */
  item(): Scalar {
    const [only] = this.elements();
    if (only === undefined || this.size !== 1) {
      throw new InputError(`expected one element, but the tensor of shape [${this.shape.join(", ")}] has ${this.size}`);
    }
    return only;
  }

  /** Returns the elements as nested lists. Elements are as in `item`. */
  nested(): Nested {
    return this.shape.reduceRight<Nested[]>(
      (flat, extent, axis) => {
        const rows = this.shape.slice(0, axis).reduce((size, one) => size * one, 1);
        return Array.from({ length: rows }, (_, row) => flat.slice(row * extent, (row + 1) * extent));
      },
      [...this.elements()],
    )[0] as Nested;
  }

  /** Iterates over the elements in row-major order. Elements are as in `item`. */
  *elements(): Generator<Scalar> {
    if (isComplex(this)) for (let place = 0; place < this.size; place += 1) yield this.complexAt(place);
    else for (const element of this.data) yield this.#read(element);
  }

  #read(element: number | bigint): number | bigint | boolean {
    if (this.dtype === "bool") return element !== 0;
    return this.dtype === "float16" ? fromHalf(Number(element)) : element;
  }
}

function isComplex(tensor: Tensor): tensor is Tensor<ComplexDtype> {
  return DTYPES[tensor.dtype].kind === "complex";
}

/** Returns the description of a dtype. Throws InputError for an unsupported one. */
function known(dtype: Dtype): (typeof DTYPES)[Dtype] {
  if (!isDtype(dtype)) throw new InputError(`unsupported dtype '${dtype}': this client supports ${DTYPE_NAMES}`);
  return DTYPES[dtype];
}

/** Returns the number of elements, without overflow. Throws InputError if no tensor has this shape. */
function sizeOf(shape: unknown, dtype: Dtype): bigint {
  if (!Array.isArray(shape)) throw new InputError(`the shape must be a list of extents, not ${nameOf(shape)}`);
  if (shape.length > MOST_AXES) {
    throw new InputError(`the shape has ${shape.length} axes; the limit is ${MOST_AXES}`);
  }
  if (!shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0)) {
    throw new InputError("the extents of a shape must be non-negative integers");
  }
  const width = BigInt(known(dtype).Elements.BYTES_PER_ELEMENT * numbersOf(dtype));
  const bytes = shape.reduce((size: bigint, extent: number) => size * BigInt(extent || 1), width);
  if (bytes >= MOST_BYTES) {
    const told = shape.join(", ");
    throw new InputError(`${dtype} of shape [${told}] is too large: its nonzero extents give 2^53 bytes or more`);
  }
  return shape.includes(0) ? 0n : bytes / width;
}

/**
 * Creates a tensor from numbers, nested lists of numbers, or a typed array, which is not copied.
 *
 * `dtype` applies to numbers and lists. For a typed array, it selects the meaning of the elements if there are several:
 * `tensor(new Float64Array([1, 2, 3, 4]), "complex128")` contains 1 + 2i and 3 + 4i. Throws InputError for an
 * unsupported dtype, for lists of unequal lengths, and for numbers that the dtype cannot hold.
 */
export function tensor<D extends Dtype>(value: TensorLike, dtype: D): Tensor<D>;
export function tensor(value: TensorLike, dtype?: Dtype): Tensor;
export function tensor(value: TensorLike, dtype?: Dtype): Tensor {
  if (value instanceof Tensor) return dtype === undefined ? value : value.as(dtype);
  if (ArrayBuffer.isView(value)) return ofTypedArray(value, dtype);
  const shape = shapeOf(value);
  const flat: unknown[] = shape.length ? (value as readonly unknown[]).flat(shape.length - 1) : [value];
  const stated = dtype ?? dtypeOf(flat);
  return new Tensor(stated, shape, elementsOf(flat, stated));
}

function ofTypedArray(array: TypedArray, dtype: Dtype | undefined): Tensor {
  const stated = dtype ?? (Object.keys(DTYPES) as Dtype[]).find((name) => isUsual(name, array));
  if (!stated) throw new InputError(`${nameOf(array)} has no default dtype; pass one of ${DTYPE_NAMES}`);
  const numbers = numbersOf(stated);
  if (array.length % numbers) throw new InputError(`${stated} needs an even number of values, got ${array.length}`);
  return new Tensor(stated, [array.length / numbers], array);
}

/**
 * Returns whether arrays of this type have this dtype by default: a Uint8Array is uint8, not bool; a Uint16Array is not
 * float16; numbers are not complex pairs.
 */
function isUsual(dtype: Dtype, array: TypedArray): boolean {
  const { kind, Elements } = DTYPES[dtype];
  return kind !== "bool" && kind !== "complex" && dtype !== "float16" && array instanceof Elements;
}

/** Returns the extents of nested lists. Throws InputError if lists have unequal lengths. */
function shapeOf(value: Nested): number[] {
  if (!Array.isArray(value)) return [];
  const [first, ...others] = (value as readonly Nested[]).map(shapeOf);
  if (!first) return [0];
  if (others.some((other) => other.length !== first.length || other.some((extent, axis) => extent !== first[axis]))) {
    throw new InputError("the nested lists have unequal lengths");
  }
  return [value.length, ...first];
}

function dtypeOf(flat: readonly unknown[]): Dtype {
  if (flat.length && flat.every((element) => typeof element === "boolean")) return "bool";
  if (flat.some(isPair)) return "complex128";
  return flat.length && flat.every((element) => typeof element === "bigint") ? "int64" : "float64";
}

function isPair(value: unknown): value is Complex {
  return typeof value === "object" && value !== null && "re" in value && "im" in value;
}

/**
 * Converts numbers and complex numbers to a dtype, rounding to nearest. Throws InputError for numbers that it cannot
 * hold.
 */
function elementsOf<D extends Dtype>(values: readonly unknown[], dtype: D): Elements[D] {
  if (known(dtype).kind !== "complex") return numbersAs(values, dtype);
  return numbersAs(
    values.flatMap((value) => (isPair(value) ? [value.re, value.im] : [value, 0])),
    dtype,
  );
}

/** Converts numbers, or the parts of complex numbers, to a dtype. Throws InputError for numbers that it cannot hold. */
export function numbersAs<D extends Dtype>(values: readonly unknown[], dtype: D): Elements[D] {
  const { kind, Elements, range, parts } = known(dtype);
  const elements = new Elements(values.length);
  for (const [place, value] of values.entries()) {
    const number = kind === "bool" && typeof value === "boolean" ? Number(value) : value;
    if (typeof number !== "number" && typeof number !== "bigint") {
      throw new InputError(`expected a number for ${dtype}, got ${nameOf(value)}`);
    }
    elements[place] = range ? wholeOf(number, dtype, range) : floatOf(number, parts ?? dtype);
  }
  return elements as Elements[D];
}

function wholeOf(value: number | bigint, dtype: Dtype, [low, high]: readonly [bigint, bigint]): number | bigint {
  const whole = typeof value === "bigint" || Number.isInteger(value) ? BigInt(value) : undefined;
  if (whole === undefined || whole < low || whole > high) throw new InputError(`${value} is not a valid ${dtype}`);
  return dtype === "int64" ? whole : Number(whole);
}

function floatOf(value: number | bigint, dtype: Dtype): number {
  const number = Number(value);
  const bits = dtype === "float16" ? toHalf(number) : dtype === "float32" ? Math.fround(number) : number;
  const isFinite = Number.isFinite(dtype === "float16" ? fromHalf(bits) : bits);
  if (!isFinite && (typeof value === "bigint" || Number.isFinite(value))) {
    throw new InputError(`${value} is out of range for ${dtype}`);
  }
  return bits;
}
