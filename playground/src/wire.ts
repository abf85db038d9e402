/** The graph of a request, read without trust: an unfinished graph is drawn as far as possible. */

import { type Json, type JsonObject, write } from "../../clients/typescript/src/json.js";

export interface WireNode {
  readonly op: string;
  /** ids of earlier nodes; −1 for an operand that is none */
  readonly operands: readonly number[];
  /** the operands as the request has them */
  readonly stated: readonly string[];
  readonly attrs: JsonObject;
  readonly name: string;
}

export interface WireFunction {
  readonly name: string;
  readonly nodes: readonly WireNode[];
  readonly outputs: readonly number[];
}

export interface WireGraph {
  readonly nodes: readonly WireNode[];
  readonly functions: readonly WireFunction[];
}

/** The graph of a request; without nodes if the request has no graph. */
export function graphOf(value: Json | undefined): WireGraph {
  const stated = objectOf(value);
  return { nodes: nodesOf(stated["nodes"]), functions: listOf(stated["functions"]).map(functionOf) };
}

function functionOf(value: Json): WireFunction {
  const stated = objectOf(value);
  return { name: textOf(stated["name"]), nodes: nodesOf(stated["nodes"]), outputs: indicesOf(stated["outputs"]) };
}

function nodesOf(value: Json | undefined): readonly WireNode[] {
  return listOf(value).map((each, id) => {
    const stated = objectOf(each);
    const operands = indicesOf(stated["operands"]).map((operand) => (operand < id ? operand : -1));
    return {
      op: textOf(stated["op"]),
      operands,
      stated: listOf(stated["operands"]).map(write),
      attrs: objectOf(stated["attrs"]),
      name: textOf(stated["name"]),
    };
  });
}

/** An object, or an empty one. */
export function objectOf(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

/** A list, or an empty one. */
export function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** A string, or an empty one. */
export function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Ids; −1 for an entry that is not an id. */
function indicesOf(value: Json | undefined): readonly number[] {
  return listOf(value).map((each) => (Number.isSafeInteger(each) && Number(each) >= 0 ? Number(each) : -1));
}
