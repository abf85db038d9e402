/**
 * A graph as SVG, without the DOM: Node makes the drawings of the documentation with this module.
 *
 * The picture of a file contains its colours: light, dark and for print. In the page, the style sheet sets the colours,
 * because the page's content security policy forbids others.
 */

import type { Json } from "../../clients/typescript/src/json.js";
import { type Box, type Edge, layoutOf, type Point, type Size } from "./layout.js";
import { around } from "./neighbourhood.js";
import type { WireGraph, WireNode } from "./wire.js";

/** Facts about a node that the graph does not contain. */
export interface Shown {
  /** lines below its op */
  readonly lines: readonly string[];
  /** a class of the style sheet, and its meaning in words */
  readonly mark?: { readonly kind: "bad" | "passed" | "unsure"; readonly words: string };
  /** the operand that the mark is about; its edge is marked, too */
  readonly operand?: number | undefined;
}

/** What to draw: all nodes, or only the chosen ones. */
export interface Drawn {
  readonly title: string;
  readonly shown?: (id: number) => Shown | undefined;
  readonly chosen?: ReadonlySet<number>;
}

/** The most nodes of a readable picture, and the number of nodes around the last that is drawn of a larger graph. */
const MOST_PICTURED = 60;
const PICTURED = 30;
const LINE = 15; // pixels from one line to the next
const CHARACTER = 7.25; // pixels of a character, in a monospaced font of 12
const PADDING = 7;
const LONGEST = 34; // characters of a line
const STYLE =
  "svg{color:#1a1a1a;background:#fff}text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:currentColor}" +
  "rect{fill:#fff;stroke:currentColor}.edge{fill:none;stroke:#6b6b6b}.tip{fill:#6b6b6b}.parameter rect{stroke-width:2.5}" +
  ".leaf rect{fill:#eef3fb}.caption{font-weight:bold}" +
  "@media (prefers-color-scheme:dark){svg{color:#e6e6e6;background:#16181b}rect{fill:#16181b}.leaf rect{fill:#22304a}" +
  ".edge{stroke:#a3a3a3}.tip{fill:#a3a3a3}}" +
  "@media print{svg{color:#000;background:#fff}rect,.leaf rect{fill:#fff}.edge{stroke:#333}.tip{fill:#333}}";

/** A graph as SVG for the page: every node can be focused, and has a label. */
export function drawing(nodes: readonly WireNode[], drawn: Drawn): string {
  const { text, width, height } = content(nodes, drawn, true);
  const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
  return `<svg ${size} role="list" aria-label="${escaped(drawn.title)}">${text}</svg>`;
}

/**
 * A picture of a graph and its functions as a file, which contains `graphId`. Of a large graph, it shows the part around
 * the last node.
 */
export function picture(graph: WireGraph, title: string, graphId: string): string {
  const parts = [
    part("", graph.nodes, title),
    ...graph.functions.map(({ name, nodes }, index) => part(`function ${index}${name && ` ${name}`}`, nodes, title)),
  ];
  let height = 0;
  const placed = parts.map(({ caption, text, ...size }) => {
    const [top, gap] = [height, caption ? 24 : 0];
    height += size.height + gap;
    const head = caption && `<text class="caption" x="8" y="${top + 16}">${escaped(caption)}</text>`;
    return `${head}<g transform="translate(0 ${top + gap})">${text}</g>`;
  });
  const width = Math.max(...parts.map((part) => part.width), ...parts.map((part) => 16 + wide(part.caption)));
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
    `role="img" aria-label="${escaped(title)}" data-graph-id="${graphId}"><title>${escaped(title)}</title>` +
    `<style>${STYLE}</style>${placed.join("")}</svg>\n`
  );
}

function part(caption: string, nodes: readonly WireNode[], title: string): Size & { caption: string; text: string } {
  if (nodes.length <= MOST_PICTURED) return { caption, ...content(nodes, { title }, false) };
  const chosen = around(nodes, nodes.length - 1, PICTURED);
  const words = `${chosen.size} of ${nodes.length} nodes, around the last`;
  return { caption: [caption, words].filter(Boolean).join(": "), ...content(nodes, { title, chosen }, false) };
}

function content(nodes: readonly WireNode[], drawn: Drawn, interactive: boolean): Size & { readonly text: string } {
  const ids = nodes.map((_, id) => id).filter((id) => drawn.chosen?.has(id) ?? true);
  const lines = new Map(ids.map((id) => [id, linesOf(nodes[id] as WireNode, id, drawn.shown?.(id))]));
  const edges = edgesOf(nodes, new Set(ids));
  const layout = layoutOf(new Map([...lines].map(([id, each]) => [id, sizeOf(each)])), edges);
  const paths = layout.edges.map(({ edge, points }) => path(points, markOf(edge, drawn)));
  const boxes = ids.map((id) => {
    const inside = box(layout.boxes.get(id) as Box, lines.get(id) as string[]);
    const node = nodes[id] as WireNode;
    return interactive ? focusable(node, id, drawn.shown?.(id), inside) : `<g class="${kindOf(node)}">${inside}</g>`;
  });
  const [width, height] = [Math.ceil(layout.width), Math.ceil(layout.height)];
  return { text: paths.join("") + boxes.join(""), width, height };
}

/** The edges between these nodes. */
export function edgesOf(nodes: readonly WireNode[], among: ReadonlySet<number>): readonly Edge[] {
  return [...among].flatMap((to) =>
    (nodes[to]?.operands ?? [])
      .map((from, operand) => ({ from, to, operand }))
      .filter(({ from }) => among.has(from)),
  );
}

function linesOf(node: WireNode, id: number, shown: Shown | undefined): string[] {
  const head = [String(id), node.op, node.name].filter(Boolean).join(" ");
  return [head, ...badOperands(node), ...attributesOf(node), ...(shown?.lines ?? [])].map(shortened);
}

/** A line for each operand that is not an earlier node. */
function badOperands({ operands, stated }: WireNode): string[] {
  return stated.filter((_, index) => operands[index] === -1).map((operand) => `operand ${operand}: no such node`);
}

/** The attributes of a node, one line each. */
export function attributesOf({ attrs }: WireNode): string[] {
  return Object.entries(attrs).map(([name, value]) => `${name} ${attribute(value)}`);
}

function attribute(value: Json): string {
  if (typeof value === "object" && value !== null && "dtype" in value) {
    const { dtype, shape } = value as { readonly dtype: Json; readonly shape?: Json };
    return `${String(dtype)}[${Array.isArray(shape) ? shape.join(", ") : ""}]`;
  }
  return Array.isArray(value) ? `[${value.map(attribute).join(", ")}]` : String(value);
}

function shortened(line: string): string {
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST - 1)}…`;
}

function wide(line: string): number {
  return Math.ceil(CHARACTER * line.length);
}

function sizeOf(lines: readonly string[]): Size {
  return { width: 2 * PADDING + Math.max(...lines.map(wide)), height: 8 + LINE * lines.length };
}

function kindOf({ op }: WireNode): string {
  return ["input", "parameter"].includes(op) ? `leaf ${op}` : "node";
}

function box({ x, y, width, height }: Box, lines: readonly string[]): string {
  const [left, top] = [Math.round(x - width / 2), Math.round(y - height / 2)];
  const rows = lines.map((line, row) => `<text x="${left + PADDING}" y="${top + LINE * (row + 1)}">${escaped(line)}</text>`);
  return `<rect x="${left}" y="${top}" width="${width}" height="${height}" rx="4"/>${rows.join("")}`;
}

function focusable(node: WireNode, id: number, shown: Shown | undefined, inside: string): string {
  const mark = shown?.mark;
  const classes = [kindOf(node), mark?.kind ?? ""].filter(Boolean).join(" ");
  const label = escaped(inWords(node, id, shown));
  return `<g role="listitem" tabindex="0" data-node="${id}" class="${classes}" aria-label="${label}">${inside}</g>`;
}

/** The label of a node for screen readers. */
export function inWords(node: WireNode, id: number, shown: Shown | undefined): string {
  const of = node.stated.length ? [`of ${node.stated.join(" and ")}`] : [];
  const marks = shown?.mark ? [shown.mark.words] : [];
  const head = [`node ${id}:`, node.op, node.name].filter(Boolean).join(" ");
  return [head, ...of, ...attributesOf(node), ...(shown?.lines ?? []), ...marks].join(", ");
}

function markOf({ to, operand }: Edge, { shown }: Drawn): string {
  const found = shown?.(to);
  return found?.mark && found.operand === operand ? ` ${found.mark.kind}` : "";
}

/** A line through the points, with an arrowhead. */
function path(points: readonly Point[], mark: string): string {
  const [end, before] = [points.at(-1), points.at(-2)];
  if (!end || !before) return "";
  const length = Math.hypot(end.x - before.x, end.y - before.y) || 1;
  const [dx, dy] = [(end.x - before.x) / length, (end.y - before.y) / length];
  const neck = { x: end.x - 6 * dx, y: end.y - 6 * dy };
  const sides = [1, -1].map((side) => ({ x: neck.x - side * 3.5 * dy, y: neck.y + side * 3.5 * dx }));
  const line = [...points.slice(0, -1), neck].map(spot).join("L");
  return `<path class="edge${mark}" d="M${line}"/><path class="tip${mark}" d="M${[end, ...sides].map(spot).join("L")}Z"/>`;
}

function spot({ x, y }: Point): string {
  return `${Math.round(x)} ${Math.round(y)}`;
}

/** Escape a text for SVG and HTML, between tags and in attributes. */
export function escaped(text: string): string {
  const signs: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (sign) => signs[sign] as string);
}
