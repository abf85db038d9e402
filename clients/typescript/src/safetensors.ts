/**
 * The safetensors format: a JSON header, followed by the bytes of the tensors, which are read without a copy.
 *
 * https://github.com/huggingface/safetensors#format
 *
 * A complex tensor is stored as its real and imaginary parts along a last axis of 2. `__metadata__.complex` lists these
 * tensors.
 */

import type { Bytes } from "./bytes.js";
import { DTYPES, type Dtype, ofParts, spelled } from "./dtypes.js";
import { InputError, MalformedAnswerError } from "./errors.js";
import { type Json, type JsonObject, parseUnique, write } from "./json.js";
import { type Shape, Tensor } from "./tensor.js";

/** The maximum size of a header in bytes: the limit of the reference implementation. */
const MOST_OF_HEADER = 100_000_000n;
const METADATA = "__metadata__";
const COMPLEX = "complex";
/** The size of the length field in bytes. Data is aligned to it too. */
const LENGTH = 8;

/**
 * The content of a file. The metadata excludes the list of complex tensors. The tensors are views of the file's bytes.
 */
export interface File {
  readonly metadata: { readonly [name: string]: string };
  readonly tensors: ReadonlyMap<string, Tensor>;
}

/**
 * Encodes a file in pieces: the header, then the bytes of the tensors. Tensors with wide elements come first, so that
 * all are aligned.
 */
export function encode(tensors: ReadonlyMap<string, Tensor>, metadata: JsonObject = {}): Bytes[] {
  const ordered = [...tensors].sort(([, a], [, b]) => b.data.BYTES_PER_ELEMENT - a.data.BYTES_PER_ELEMENT);
  const pairs = ordered.filter(([, { dtype }]) => DTYPES[dtype].parts).map(([name]) => name);
  const stated = pairs.length ? { ...metadata, [COMPLEX]: write(pairs) } : metadata;
  const entries: [string, Json][] = Object.keys(stated).length ? [[METADATA, stated]] : [];
  let end = 0;
  for (const [name, tensor] of ordered) {
    const start = end;
    end += tensor.data.byteLength;
    entries.push([name, { ...typeOf(tensor), data_offsets: [start, end] }]);
  }
  return [headed(write(Object.fromEntries(entries))), ...ordered.map(([, tensor]) => tensor.bytes())];
}

/** Returns the dtype and shape as the file stores them. */
function typeOf({ dtype, shape }: Tensor): JsonObject {
  const { parts, spelling = "" } = DTYPES[dtype];
  return parts ? { dtype: DTYPES[parts].spelling ?? "", shape: [...shape, 2] } : { dtype: spelling, shape };
}

/** Returns the header preceded by its length and padded with spaces. */
function headed(header: string): Bytes {
  const text = new TextEncoder().encode(header);
  const length = Math.ceil(text.length / LENGTH) * LENGTH;
  const bytes = new Uint8Array(LENGTH + length).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(text, LENGTH);
  return bytes;
}

/** Decodes a file without copying it. Throws MalformedAnswerError. */
export function decode(file: Bytes): File {
  const { metadata: all, ...others } = headerOf(file);
  const { [COMPLEX]: names, ...metadata } = all;
  const entries = Object.entries(others.tensors).map(([name, stated]) => entryOf(name, stated));
  const data = file.subarray(others.end);
  checkThatTheyFill(entries, data.length);
  const pairs = complexNames(names, others.tensors);
  return { metadata, tensors: new Map(entries.map((entry) => [entry.name, read(entry, data, pairs.has(entry.name))])) };
}

/** Returns the names of the complex tensors. */
function complexNames(text: string | undefined, tensors: JsonObject): ReadonlySet<string> {
  const names = text === undefined ? [] : listIn(text);
  if (!Array.isArray(names) || !names.every((name) => typeof name === "string")) {
    throw new MalformedAnswerError(`${METADATA}.${COMPLEX} of the safetensors file is not a JSON list of names`);
  }
  const absent = names.find((name) => !Object.hasOwn(tensors, name));
  if (absent !== undefined) {
    throw new MalformedAnswerError(`${METADATA}.${COMPLEX} lists '${absent}', which is not in the safetensors file`);
  }
  return new Set(names);
}

function listIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns whether a file ends before the end of the data that its header describes. */
export function isCutOff(file: Bytes): boolean {
  if (file.length < LENGTH) return true;
  const length = new DataView(file.buffer, file.byteOffset).getBigUint64(0, true);
  if (length > MOST_OF_HEADER || length > BigInt(file.length - LENGTH)) return length <= MOST_OF_HEADER;
  const { tensors, end } = headerOf(file);
  return Object.entries(tensors).some(([name, stated]) => entryOf(name, stated).end > file.length - end);
}

/** Returns the tensor with this name. Throws MalformedAnswerError if there is none. */
export function named(tensors: File["tensors"], name: string): Tensor {
  const found = tensors.get(name);
  if (!found) throw new MalformedAnswerError(`invalid response: tensor '${name}' is missing`);
  return found;
}

interface Header {
  readonly metadata: { readonly [name: string]: string };
  readonly tensors: JsonObject;
  readonly end: number;
}

function headerOf(file: Bytes): Header {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const length = file.length < LENGTH ? undefined : view.getBigUint64(0, true);
  if (length === undefined || length > BigInt(file.length - LENGTH)) {
    throw new MalformedAnswerError("the safetensors file ends before the end of its header");
  }
  if (length > MOST_OF_HEADER) {
    throw new MalformedAnswerError(`the safetensors header has ${length} bytes; the limit is ${MOST_OF_HEADER}`);
  }
  const end = LENGTH + Number(length);
  const { [METADATA]: metadata = {}, ...tensors } = parsed(file.subarray(LENGTH, end));
  if (!isObject(metadata) || !Object.values(metadata).every((value) => typeof value === "string")) {
    throw new MalformedAnswerError(`${METADATA} of the safetensors file must be an object of strings`);
  }
  return { metadata: metadata as Header["metadata"], tensors, end };
}

function parsed(text: Bytes): JsonObject {
  let header: Json;
  try {
    header = parseUnique(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text));
  } catch {
    throw new MalformedAnswerError("the header of the safetensors file is not valid JSON or has a duplicate name");
  }
  if (!isObject(header)) throw new MalformedAnswerError("the header of the safetensors file is not an object");
  return header;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The location of a tensor in the file. */
interface Entry {
  readonly name: string;
  readonly dtype: string;
  readonly shape: Shape;
  readonly start: number;
  readonly end: number;
}

function entryOf(name: string, stated: Json): Entry {
  const { dtype, shape, data_offsets: offsets } = isObject(stated) ? stated : {};
  const [start, end, ...more] = Array.isArray(offsets) ? (offsets as readonly Json[]) : [];
  const isPlaced = isOffset(start) && isOffset(end) && start <= end && !more.length;
  if (typeof dtype !== "string" || !Array.isArray(shape) || !isPlaced) {
    throw new MalformedAnswerError(`the safetensors file has no valid dtype, shape or data_offsets for '${name}'`);
  }
  return { name, dtype, shape, start, end };
}

function isOffset(value: Json | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Throws unless the tensors cover the data without gaps or overlaps. */
function checkThatTheyFill(entries: readonly Entry[], length: number): void {
  let end = 0;
  for (const entry of [...entries].sort((a, b) => a.start - b.start || a.end - b.end)) {
    if (entry.start !== end) throw new MalformedAnswerError("tensors of the safetensors file overlap or leave gaps");
    end = entry.end;
  }
  if (end !== length) throw new MalformedAnswerError("the tensors of the safetensors file do not cover its data");
}

function read(entry: Entry, data: Bytes, hasParts: boolean): Tensor {
  const { name, start, end } = entry;
  const known = spelled(entry.dtype);
  if (!known) throw new MalformedAnswerError(`unsupported dtype ${entry.dtype} of '${name}' in the safetensors file`);
  const [dtype, shape] = hasParts ? joined(entry, known) : [known, entry.shape];
  try {
    return Tensor.fromBytes(data.subarray(start, end), dtype, shape);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new MalformedAnswerError(`tensor '${name}' of the safetensors file: ${error.message}`);
  }
}

/** Returns the dtype and shape of the complex tensor with these parts. */
function joined({ name, shape }: Entry, parts: Dtype): [Dtype, Shape] {
  const dtype = ofParts(parts);
  if (!dtype || shape.at(-1) !== 2) {
    throw new MalformedAnswerError(`the complex tensor '${name}' must be F32 or F64 with a last axis of 2`);
  }
  return [dtype, shape.slice(0, -1)];
}
