/**
 * JSON that preserves numbers: integers that a `number` would round are read as `bigint`, and −0 keeps its sign.
 *
 * The built-in functions are used if they preserve the numbers too.
 */

import { InputError } from "./errors.js";

export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [name: string]: Json };

/** Matches integers of 16 or more digits, and `-0`, which is an integer without a sign. Also matches within strings. */
const INEXACT = /(?:^|[\s[,:])(?:-?\d{16,}|-0)(?=[\s,\]}]|$)/;
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS = [
  ["true", true],
  ["false", false],
  ["null", null],
] as const;

/** Parses a text. Throws SyntaxError, and RangeError if it is nested too deeply. */
export function parse(text: string): Json {
  return INEXACT.test(text) ? new Parser(text).whole() : (JSON.parse(text) as Json);
}

/** Parses a text as `parse` does, but throws SyntaxError if an object repeats a name. */
export function parseUnique(text: string): Json {
  return new Parser(text, true).whole();
}

class Parser {
  #at = 0;

  constructor(
    private readonly text: string,
    private readonly unique = false,
  ) {}

  whole(): Json {
    const value = this.#value();
    this.#skip();
    return this.#at === this.text.length ? value : this.#fail();
  }

  #fail(): never {
    throw new SyntaxError(`invalid JSON at character ${this.#at}`);
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text);
    this.#at += found?.[0].length ?? 0;
    return found;
  }

  #skip(): void {
    this.#match(SPACE);
  }

  #takes(sign: string): boolean {
    this.#skip();
    if (this.text[this.#at] !== sign) return false;
    this.#at += 1;
    return true;
  }

  #value(): Json {
    if (this.#takes("{")) return this.#object();
    if (this.#takes("[")) return this.#list();
    if (this.text[this.#at] === '"') return this.#string();
    const number = this.#match(NUMBER);
    return number ? valueOf(number) : this.#word();
  }

  #word(): Json {
    const found = WORDS.find(([word]) => this.text.startsWith(word, this.#at));
    if (!found) this.#fail();
    this.#at += found[0].length;
    return found[1];
  }

  #list(): Json {
    const entries: Json[] = [];
    if (this.#takes("]")) return entries;
    do entries.push(this.#value());
    while (this.#takes(","));
    return this.#takes("]") ? entries : this.#fail();
  }

  #object(): Json {
    const members: [string, Json][] = [];
    if (!this.#takes("}")) {
      do members.push(this.#member());
      while (this.#takes(","));
      if (!this.#takes("}")) this.#fail();
    }
    const object = Object.fromEntries(members);
    if (this.unique && Object.keys(object).length !== members.length) this.#fail();
    return object;
  }

  #member(): [string, Json] {
    this.#skip();
    const name = this.#string();
    return this.#takes(":") ? [name, this.#value()] : this.#fail();
  }

  #string(): string {
    const start = this.#at;
    if (this.text[start] !== '"') this.#fail();
    let end = start;
    do end = this.text.indexOf('"', end + 1);
    while (end > 0 && this.#isEscaped(end));
    if (end < 0) this.#fail();
    this.#at = end + 1;
    return JSON.parse(this.text.slice(start, this.#at)) as string;
  }

  #isEscaped(at: number): boolean {
    let start = at;
    while (this.text[start - 1] === "\\") start -= 1;
    return (at - start) % 2 === 1;
  }
}

function valueOf([digits, fraction, exponent]: RegExpExecArray): number | bigint {
  const number = Number(digits);
  if (fraction !== undefined || exponent !== undefined) return number;
  // `-0` is an integer, which has no sign of zero.
  return Number.isSafeInteger(number) ? number + 0 : BigInt(digits as string);
}

/**
 * Returns the JSON text of a value. Undefined members are omitted. Throws InputError for a value that JSON cannot
 * represent.
 */
export function write(value: unknown): string {
  if (typeof value === "number") return numeral(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "string" || typeof value === "boolean" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (typeof value === "object" && isPlain(value)) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${write(member)}`).join(",")}}`;
  }
  throw new InputError(`JSON cannot represent ${nameOf(value)}`);
}

/** Writes a number. Integers beyond 2⁵³ get an exponent, because their digits would be those of another integer. */
function numeral(value: number): string {
  if (!Number.isFinite(value)) throw new InputError(`JSON cannot represent ${value}`);
  if (Object.is(value, -0)) return "-0.0";
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : String(value);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** Names the type of a value for a message. */
export function nameOf(value: unknown): string {
  return typeof value === "object" && value !== null ? (value.constructor?.name ?? "an object") : typeof value;
}
