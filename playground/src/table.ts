/** The table of all that the drawing has, as HTML; of a large graph, a page of it. */

import { attributesOf, escaped } from "./drawing.js";
import type { Facts } from "./session.js";
import { shownTensor } from "./values.js";
import type { WireNode } from "./wire.js";

/** Rows of a page. */
export const ROWS = 300;
const ELEMENTS = 12;
const HEAD = ["node", "op", "name", "operands", "attributes", "dtype", "shape", "value", "gradient", "FLOPs", "bytes", "remark"];

/** What to show: the nodes of one list, from one of them on. */
export interface Tabled {
  readonly caption: string;
  readonly nodes: readonly WireNode[];
  readonly facts: ReadonlyMap<number, Facts>;
  readonly from: number;
  /** whether its nodes can be chosen, and which one is */
  readonly chosen?: number;
}

/** One table. */
export function table({ caption, nodes, facts, from, chosen }: Tabled): string {
  const rows = nodes.slice(from, from + ROWS).map((node, index) => row(node, from + index, facts.get(from + index), chosen));
  const heads = HEAD.map((head) => `<th scope="col">${head}</th>`).join("");
  return `<table><caption>${escaped(caption)}</caption><thead><tr>${heads}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
}

function row(node: WireNode, id: number, facts: Facts = {}, chosen?: number): string {
  const { dtype = "", shape, value, gradient, flops, bytes, remark, mark } = facts;
  const cells = [
    node.op,
    node.name,
    node.operands.join(", "),
    attributesOf(node).join(", "),
    dtype,
    shape ? `[${shape.join(", ")}]` : "",
    value === undefined ? "" : shownTensor(value, ELEMENTS),
    gradient === undefined ? "" : shownTensor(gradient, ELEMENTS),
    flops ?? "",
    bytes ?? "",
    [remark, mark?.words].filter(Boolean).join("; "),
  ];
  const head = chosen === undefined ? String(id) : `<button type="button" data-choose="${id}">${id}</button>`;
  const state = `${mark ? ` class="${mark.kind}"` : ""}${chosen === id ? ' aria-current="true"' : ""}`;
  return `<tr${state}><th scope="row">${head}</th>${cells.map((cell) => `<td>${escaped(String(cell))}</td>`).join("")}</tr>`;
}
