/** The dtypes of the API, and the typed arrays that hold their elements. */

/** Arrays that hold elements: bits for float16, zeros and ones for bool, re, im, re, im, … for complex dtypes. */
export interface Elements {
  bool: Uint8Array;
  int8: Int8Array;
  uint8: Uint8Array;
  int16: Int16Array;
  int32: Int32Array;
  uint32: Uint32Array;
  int64: BigInt64Array;
  float16: Uint16Array;
  float32: Float32Array;
  float64: Float64Array;
  complex64: Float32Array;
  complex128: Float64Array;
}

export type Dtype = keyof Elements;
export type TypedArray = Elements[Dtype];

/** Dtypes with two numbers per element: a real and an imaginary part. */
export type ComplexDtype = "complex64" | "complex128";

interface Description {
  /** The name in the safetensors format, if it has the dtype. */
  readonly spelling?: string;
  readonly Elements: ArrayType;
  readonly kind: "bool" | "int" | "float" | "complex";
  /** The smallest and largest value of an integer dtype. */
  readonly range?: readonly [bigint, bigint];
  /** The first opset with this dtype, if it is not opset 1. */
  readonly since?: number;
  /** The dtype of the real and imaginary parts of a complex dtype. */
  readonly parts?: Dtype;
}

type ArrayType = {
  readonly BYTES_PER_ELEMENT: number;
  new (length: number): TypedArray;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): TypedArray;
};

/** The dtypes by name. */
export const DTYPES: { readonly [D in Dtype]: Description } = {
  bool: { spelling: "BOOL", Elements: Uint8Array, kind: "bool", range: [0n, 1n] },
  int8: { spelling: "I8", Elements: Int8Array, kind: "int", range: signed(8n) },
  uint8: { spelling: "U8", Elements: Uint8Array, kind: "int", range: unsigned(8n) },
  int16: { spelling: "I16", Elements: Int16Array, kind: "int", range: signed(16n), since: 2 },
  int32: { spelling: "I32", Elements: Int32Array, kind: "int", range: signed(32n) },
  uint32: { spelling: "U32", Elements: Uint32Array, kind: "int", range: unsigned(32n), since: 2 },
  int64: { spelling: "I64", Elements: BigInt64Array, kind: "int", range: signed(64n) },
  float16: { spelling: "F16", Elements: Uint16Array, kind: "float" },
  float32: { spelling: "F32", Elements: Float32Array, kind: "float" },
  float64: { spelling: "F64", Elements: Float64Array, kind: "float" },
  complex64: { spelling: "C64", Elements: Float32Array, kind: "complex", since: 2, parts: "float32" },
  complex128: { Elements: Float64Array, kind: "complex", since: 2, parts: "float64" },
};

/** The names of the dtypes, for messages. */
export const DTYPE_NAMES = Object.keys(DTYPES).join(", ");

function signed(bits: bigint): readonly [bigint, bigint] {
  const half = 1n << (bits - 1n);
  return [-half, half - 1n];
}

function unsigned(bits: bigint): readonly [bigint, bigint] {
  return [0n, (1n << bits) - 1n];
}

/** Returns whether this client knows a dtype. A server may know more. */
export function isDtype(name: unknown): name is Dtype {
  return typeof name === "string" && Object.hasOwn(DTYPES, name);
}

/** Returns how many numbers of the array form one element of a dtype. */
export function numbersOf(dtype: Dtype): 1 | 2 {
  return DTYPES[dtype].parts ? 2 : 1;
}

/** Returns the complex dtype whose parts have this dtype. */
export function ofParts(parts: Dtype): ComplexDtype | undefined {
  return (["complex64", "complex128"] as const).find((name) => DTYPES[name].parts === parts);
}

/** Returns the dtype with this name in the safetensors format. */
export function spelled(spelling: string): Dtype | undefined {
  return (Object.keys(DTYPES) as Dtype[]).find((name) => DTYPES[name].spelling === spelling);
}
