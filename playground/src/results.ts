/** The results of a run as cards: numbers, or charts of larger tensors. */

import type { Json } from "../../clients/typescript/src/json.js";
import { chart, FEW } from "./chart.js";
import { escaped } from "./drawing.js";
import type { Facts } from "./session.js";
import { realTensor, shownTensor } from "./values.js";
import type { WireGraph, WireNode } from "./wire.js";

/** A part of the results: the value of a node, the gradient with respect to it, or its gradient check. */
export interface Part {
  readonly node: number;
  readonly kind: "value" | "gradient" | "check";
  /** the node of which this value is the gradient */
  readonly gradientOf?: number;
}

/** Cards, at most; every other value is in the table and, if you choose a node, in the card of the node. */
const MOST_CARDS = 12;
const MOST_NUMBERS = 12;

/** The cards of these parts as HTML, and those of a chosen node unless it has a card. */
export function cards(
  graph: WireGraph,
  facts: ReadonlyMap<number, Facts>,
  parts: readonly Part[],
  chosen: number | undefined,
): string {
  const shown = parts.slice(0, MOST_CARDS);
  const more = chosen === undefined ? [] : (["value", "gradient"] as const).map((kind) => ({ node: chosen, kind }));
  const added = more.filter(({ node, kind }) => !shown.some((part) => part.node === node && part.kind === kind));
  return [...shown, ...added].map((part) => card(graph.nodes, part, facts.get(part.node))).join("");
}

function card(nodes: readonly WireNode[], { node, kind, gradientOf }: Part, facts: Facts | undefined): string {
  if (kind === "check") {
    const mark = facts?.mark;
    return mark ? wrapped(kind, titleOf(nodes, node, kind), `<p class="${mark.kind}">${escaped(mark.words)}</p>`) : "";
  }
  const tensor = facts?.[kind];
  const steps = isStepwise(nodes, node);
  const isGradient = gradientOf !== undefined;
  const title = isGradient ? `Gradient with respect to <b>node ${gradientOf}</b> (node ${node})` : titleOf(nodes, node, kind, steps);
  if (tensor === undefined) return kind === "gradient" && facts?.remark ? wrapped(kind, title, note(facts.remark)) : "";
  return wrapped(isGradient ? "gradient" : kind, title, ...content(tensor, steps));
}

function titleOf(nodes: readonly WireNode[], id: number, kind: Part["kind"], steps = false): string {
  const node = nodes[id];
  const name = `<b>${escaped(node?.name || node?.op || "")}</b> <span>(node ${id})</span>`;
  if (kind === "value") return steps ? `${name} after each step` : `Value of ${name}`;
  return kind === "check" ? `Gradient check of ${name}` : `Gradient with respect to ${name}`;
}

/** The picture of a tensor, if it has more than a few elements, and its first numbers. */
function content(tensor: Json, steps: boolean): readonly string[] {
  const real = realTensor(tensor);
  const picture = real && chart({ ...real, isStepwise: steps && real.shape.length === 1 });
  const count = real?.elements.length ?? 0;
  const numbers = escaped(shownTensor(tensor, MOST_NUMBERS));
  if (!picture && real && !real.shape.length) return [`<p class="figure">${numbers}</p>`];
  const shape = real && real.shape.length > 1 ? note(`shape [${real.shape.join(", ")}]`) : "";
  const size = picture || count > FEW || !real ? "" : " few";
  // A small heat map is labelled with its numbers.
  if (picture?.includes('class="cell"')) return [picture, shape];
  return [picture ?? "", `<p class="numbers${size}">${numbers}</p>`, shape];
}

/** Whether a node reads the stacked results of a scan: one entry for each step. */
export function isStepwise(nodes: readonly WireNode[], id: number): boolean {
  const node = nodes[id];
  const loop = node?.op === "get_output" ? nodes[node.operands[0] ?? -1] : undefined;
  return loop?.op === "scan" && Number(node?.attrs["index"] ?? 0) >= Number(loop.attrs["carries"] ?? 0);
}

function note(words: string): string {
  return `<p class="note">${escaped(words)}</p>`;
}

function wrapped(kind: string, title: string, ...content: readonly string[]): string {
  const body = content.join("");
  return `<article class="card ${kind}${body.includes("<svg") ? " wide" : ""}"><h3>${title}</h3>${body}</article>`;
}
