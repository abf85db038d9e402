/** Bytes as they travel: little-endian, and in JSON as base64. */

/** Bytes that may be sent: not shared with other threads. */
export type Bytes = Uint8Array<ArrayBuffer>;

const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
/** Arguments that a function may have, on every engine. */
const CHUNK = 0x8000;

/** Elements of so many bytes from this machine's order into that of the wire, or back: as they are, or in a copy. */
export function reordered(bytes: Bytes, width: number, isLittleEndian = IS_LITTLE_ENDIAN): Bytes {
  if (isLittleEndian || width === 1) return bytes;
  const copy = bytes.slice();
  for (let at = 0; at < copy.length; at += width) copy.subarray(at, at + width).reverse();
  return copy;
}

/** The bytes of an array, of which they remain a part where they may be sent so. */
export function viewOf(array: ArrayBufferView): Bytes {
  const { buffer, byteOffset, byteLength } = array;
  return buffer instanceof ArrayBuffer
    ? new Uint8Array(buffer, byteOffset, byteLength)
    : new Uint8Array(buffer, byteOffset, byteLength).slice();
}

/** RFC 4648, with padding. */
export function toBase64(bytes: Bytes): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}

/** The bytes that a text is; undefined where it is anything but RFC 4648 with padding. */
export function fromBase64(text: string): Bytes | undefined {
  const digits = text.replace(/={1,2}$/, "");
  if (text.length % 4 !== 0 || /[^A-Za-z0-9+/]/.test(digits) || digits.length % 4 === 1) return undefined;
  const decoded = atob(text);
  const bytes = new Uint8Array(decoded.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = decoded.charCodeAt(at);
  return bytes;
}
