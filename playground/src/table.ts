/** The table of the nodes as HTML; a large graph is shown in pages. */

import { attributesOf, escaped } from "./drawing.js";
import type { Facts } from "./session.js";
import { shownTensor } from "./values.js";
import type { WireNode } from "./wire.js";

/** Rows per page. */
export const ROWS = 300;
const ELEMENTS = 12;
const HEAD = ["node", "op", "name", "operands", "attributes", "dtype", "shape", "value", "gradient", "FLOPs", "bytes", "remark"];

/** The nodes of a list, starting at one of them. */
export interface Tabled {
  readonly caption: string;
  readonly nodes: readonly WireNode[];
  readonly facts: ReadonlyMap<number, Facts>;
  readonly from: number;
  /** the chosen node; undefined if nodes cannot be chosen */
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
    node.stated.join(", "),
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
