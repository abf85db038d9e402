/** The opset that a graph says it is of: a server takes one that says nothing for the first, and has no more in it. */

import { DTYPES, isDtype } from "./dtypes.js";
import type { Graph, Node } from "./graph.js";
import type { Json } from "./json.js";
import { SINCE } from "./generated/ops.js";
import { Tensor } from "./tensor.js";

/** Of a graph that does not say. */
const FIRST = 1;
/** Since which graphs have functions. */
const FUNCTIONS = 2;

/** What its program states, or the first that has its ops, attributes and dtypes; undefined where it need not say. */
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
