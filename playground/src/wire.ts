/** Graphs as requests have them, read without trust: what is half written is drawn as far as it goes. */

import type { Json, JsonObject } from "../../clients/typescript/src/json.js";

export interface WireNode {
  readonly op: string;
  readonly operands: readonly number[];
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

/** The graph of a request; one without nodes where there is none. */
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
    return { op: textOf(stated["op"]), operands, attrs: objectOf(stated["attrs"]), name: textOf(stated["name"]) };
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

/** A text, or an empty one. */
export function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Ids; −1 stands for what is none. */
function indicesOf(value: Json | undefined): readonly number[] {
  return listOf(value).map((each) => (Number.isSafeInteger(each) && Number(each) >= 0 ? Number(each) : -1));
}
