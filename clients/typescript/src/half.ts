/** float16, held as bits because JavaScript has no such array: 1 sign bit, 5 exponent bits, 10 fraction bits. */

const INFINITY = 0x7c00;
const NAN = 0x7e00;
/** The smallest number that rounds to infinity. */
const BEYOND = 65520;
const SMALLEST_NORMAL = 2 ** -14;

/** Returns the bits of the nearest float16, with ties to even. */
export function toHalf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  return sign | magnitude(Math.abs(value));
}

function magnitude(value: number): number {
  if (Number.isNaN(value)) return NAN;
  if (value >= BEYOND) return INFINITY;
  if (value < SMALLEST_NORMAL) return nearestEven(value * 2 ** 24);
  const exponent = exponentOf(value);
  // A fraction that rounds up to 1 carries into the exponent, as it should.
  return ((exponent + 15) << 10) + nearestEven(value * 2 ** (10 - exponent)) - 1024;
}

function exponentOf(value: number): number {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  return ((bits.getUint16(0) >> 4) & 0x7ff) - 1023;
}

function nearestEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}

/** Returns the number with these bits. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * (1 + fraction / 1024) * 2 ** (exponent - 15) : sign * fraction * 2 ** -24;
}
