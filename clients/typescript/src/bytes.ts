/** Bytes as they are sent: little-endian, in JSON as base64. */

/** Bytes that can be sent: not shared with other threads. */
export type Bytes = Uint8Array<ArrayBuffer>;

const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
/** A number of arguments that every JavaScript engine accepts in a call. */
const CHUNK = 0x8000;

/**
 * Converts elements of `width` bytes between the byte order of this machine and little-endian. Copies only if they
 * differ.
 */
export function reordered(bytes: Bytes, width: number, isLittleEndian = IS_LITTLE_ENDIAN): Bytes {
  if (isLittleEndian || width === 1) return bytes;
  const copy = bytes.slice();
  for (let at = 0; at < copy.length; at += width) copy.subarray(at, at + width).reverse();
  return copy;
}

/** Returns the bytes of an array: a view, or a copy if the memory is shared with other threads. */
export function viewOf(array: ArrayBufferView): Bytes {
  const { buffer, byteOffset, byteLength } = array;
  return buffer instanceof ArrayBuffer
    ? new Uint8Array(buffer, byteOffset, byteLength)
    : new Uint8Array(buffer, byteOffset, byteLength).slice();
}

/** Encodes bytes as base64 (RFC 4648) with padding. */
export function toBase64(bytes: Bytes): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}

/** Decodes base64 (RFC 4648) with padding. Returns undefined for any other text. */
export function fromBase64(text: string): Bytes | undefined {
  const digits = text.replace(/={1,2}$/, "");
  if (text.length % 4 !== 0 || /[^A-Za-z0-9+/]/.test(digits) || digits.length % 4 === 1) return undefined;
  const decoded = atob(text);
  const bytes = new Uint8Array(decoded.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = decoded.charCodeAt(at);
  return bytes;
}
