/** Readers of response members. All throw MalformedAnswerError if a member has the wrong type. */

import { GradserveError, InputError, MalformedAnswerError } from "./errors.js";
import type { Json, JsonObject } from "./json.js";

function unlike(name: string, wanted: string): never {
  throw new MalformedAnswerError(`invalid response: ${name} is not ${wanted}`);
}

/** Applies a reader to a response, and converts its errors. */
export function promised<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof GradserveError && !(error instanceof InputError)) throw error;
    throw new MalformedAnswerError(`invalid response: ${error instanceof Error ? error.message : error}`);
  }
}

export function object(value: Json | undefined, name = "the response"): JsonObject {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as JsonObject) : unlike(name, "an object");
}

export function string(from: JsonObject, name: string): string {
  const value = from[name];
  return typeof value === "string" ? value : unlike(name, "a string");
}

export function number(from: JsonObject, name: string): number {
  const value = from[name];
  return typeof value === "number" ? value : unlike(name, "a number");
}

export function whole(from: JsonObject, name: string): number {
  const value = from[name];
  return typeof value === "number" && Number.isSafeInteger(value) ? value : unlike(name, "an integer");
}

export function truth(from: JsonObject, name: string): boolean {
  const value = from[name];
  return typeof value === "boolean" ? value : unlike(name, "a boolean");
}

export function list(from: JsonObject, name: string): readonly Json[] {
  const value = from[name];
  return Array.isArray(value) ? value : unlike(name, "a list");
}

export function objects(from: JsonObject, name: string): readonly JsonObject[] {
  return list(from, name).map((entry) => object(entry, `an entry of ${name}`));
}

export function numbers(from: JsonObject, name: string): readonly number[] {
  return list(from, name).map((each) => (typeof each === "number" ? each : unlike(`an entry of ${name}`, "a number")));
}

/** Reads an optional member. */
export function maybe<T>(
  read: (from: JsonObject, name: string) => T,
  from: JsonObject,
  name: string,
): T | undefined {
  return from[name] === undefined || from[name] === null ? undefined : read(from, name);
}
