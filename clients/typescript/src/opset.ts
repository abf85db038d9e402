/** The opset that a graph says it is of: a server takes one that says nothing for the first, and has no more in it. */

import { DTYPES, isDtype } from "./dtypes.js";
import type { Graph, Node } from "./graph.js";
import type { Json } from "./json.js";
import { SINCE } from "./ops.js";
import { Tensor } from "./tensor.js";

/** Of a graph that does not say. */
const FIRST = 1;
/** Since which graphs have functions. */
const FUNCTIONS = 2;

/** What its program states, or else the first that has all of its ops and dtypes; undefined where nothing is to be said. */
export function opsetOf(graph: Graph): number | undefined {
  if (graph.opset !== undefined) return graph.opset;
  let needed = graph.functions.length ? FUNCTIONS : FIRST;
  for (const part of [graph, ...graph.functions.map(({ nodes }) => nodes)]) {
    for (const node of part) needed = Math.max(needed, neededBy(node));
  }
  return needed > FIRST ? needed : undefined;
}

function neededBy({ op, attrs }: Node): number {
  const ofOp = Object.hasOwn(SINCE, op) ? SINCE[op] : FIRST;
  return Math.max(ofOp ?? FIRST, ...Object.entries(attrs).map(([name, value]) => neededByAttribute(name, value)));
}

function neededByAttribute(name: string, value: Json | Tensor): number {
  const dtype = value instanceof Tensor ? value.dtype : name === "dtype" ? value : undefined;
  return (isDtype(dtype) && DTYPES[dtype].since) || FIRST;
}
