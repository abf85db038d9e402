/** The opset of a graph. The server treats a graph without one as opset 1, and rejects newer ops in it. */

import { DTYPES, isDtype } from "./dtypes.js";
import type { Graph, Node } from "./graph.js";
import type { Json } from "./json.js";
import { SINCE } from "./generated/ops.js";
import { Tensor } from "./tensor.js";

/** The opset of a graph that states none. */
const FIRST = 1;
/** The first opset with functions. */
const FUNCTIONS = 2;

/**
 * Returns the stated opset, or else the lowest one with all ops, attributes and dtypes of the graph; undefined for
 * opset 1.
 */
export function opsetOf(graph: Graph): number | undefined {
  if (graph.opset !== undefined) return graph.opset;
  let needed = graph.functions.length ? FUNCTIONS : FIRST;
  for (const part of [graph, ...graph.functions.map(({ nodes }) => nodes)]) {
    for (const node of part) needed = Math.max(needed, neededBy(node));
  }
  return needed > FIRST ? needed : undefined;
}

function neededBy({ op, attrs }: Node): number {
  const stated = Object.entries(attrs);
  const ofAttributes = stated.map(([name, value]) => Math.max(since(`${op}.${name}`), ofDtype(name, value)));
  return Math.max(since(op), ...ofAttributes);
}

function since(name: string): number {
  return (Object.hasOwn(SINCE, name) && SINCE[name]) || FIRST;
}

function ofDtype(name: string, value: Json | Tensor): number {
  const dtype = value instanceof Tensor ? value.dtype : name === "dtype" ? value : undefined;
  return (isDtype(dtype) && DTYPES[dtype].since) || FIRST;
}
