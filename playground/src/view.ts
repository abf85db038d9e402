/** The output of the page: results, drawings, and tables. */

import { drawing, type Shown } from "./drawing.js";
import type { Mark } from "./marks.js";
import { drawnNodes, MOST_DRAWN, usersOf } from "./neighbourhood.js";
import { cards, type Part } from "./results.js";
import { type Facts, linesOf } from "./session.js";
import { ROWS, table } from "./table.js";
import type { WireGraph } from "./wire.js";

/** The content to show. */
export interface Seen {
  readonly graph: WireGraph;
  readonly facts: ReadonlyMap<number, Facts>;
  readonly marks: readonly Mark[];
  readonly parts: readonly Part[];
  /** what to do next, if there are no results */
  readonly advice: string;
}

const NONE: ReadonlyMap<number, Facts> = new Map();
const STEPS: { readonly [key: string]: -1 | 1 } = { ArrowLeft: -1, ArrowRight: 1 };

export class View {
  #seen: Seen = { graph: { nodes: [], functions: [] }, facts: NONE, marks: [], parts: [], advice: "" };
  #chosen = 0;
  /** whether the user chose the node, so that its values are among the results */
  #isChosen = false;
  #from = 0;

  /** `chose` is called with the node that the user wants to see in the text. */
  constructor(
    private readonly results: HTMLElement,
    private readonly drawings: HTMLElement,
    private readonly tables: HTMLElement,
    private readonly part: HTMLElement,
    chose: (node: number) => void,
  ) {
    drawings.addEventListener("keydown", (event) => this.#moved(event, chose));
    drawings.addEventListener("click", (event) => {
      const node = nodeOf(event.target);
      if (node !== undefined) this.choose(node);
    });
    tables.addEventListener("click", (event) => {
      const { choose, page } = (event.target as HTMLElement).dataset;
      if (choose !== undefined) this.choose(Number(choose), true);
      if (page !== undefined) this.#turned(Number(page));
    });
  }

  /** Show new content. */
  show(seen: Seen): void {
    this.#seen = seen;
    const first = seen.marks.find((mark) => mark.node !== undefined)?.node;
    this.#chosen = Math.min(first ?? this.#chosen, Math.max(0, seen.graph.nodes.length - 1));
    this.#isChosen &&= seen.graph.nodes[this.#chosen] !== undefined;
    this.#from = this.#chosen - (this.#chosen % ROWS);
    this.#draw();
    this.#showResults();
  }

  /** Choose a node: show its values among the results, and in a large graph, draw the nodes around it. */
  choose(node: number, isFocused = false): void {
    this.#chosen = node;
    this.#isChosen = true;
    this.#showResults();
    if (this.#seen.graph.nodes.length > MOST_DRAWN || isFocused) this.#draw();
    this.#focus(node);
  }

  #showResults(): void {
    const { graph, facts, marks, parts, advice } = this.#seen;
    const html = cards(graph, facts, parts, this.#isChosen ? this.#chosen : undefined);
    this.results.innerHTML = html;
    if (!html) this.results.append(Object.assign(document.createElement("p"), { textContent: advice }));
    if (marks.length < 2) return;
    const list = document.createElement("ul");
    for (const { words } of marks) list.append(Object.assign(document.createElement("li"), { textContent: words }));
    this.results.append(list);
  }

  #focus(node: number): void {
    this.drawings.querySelector<SVGElement>(`#graph-drawing [data-node="${node}"]`)?.focus();
  }

  #turned(from: number): void {
    this.#from = from;
    this.#draw();
    this.tables.querySelector<HTMLElement>(`[data-page]`)?.focus();
  }

  /** Arrow keys follow edges and the list of nodes; Enter goes to the text. */
  #moved(event: KeyboardEvent, chose: (node: number) => void): void {
    const node = nodeOf(event.target);
    if (node === undefined) return;
    const next = this.#next(node, event.key);
    if (next === undefined && event.key !== "Enter") return;
    // Otherwise the browser would also type the key into the text, or scroll.
    event.preventDefault();
    if (next === undefined) chose(node);
    else this.choose(next);
  }

  #next(node: number, key: string): number | undefined {
    const { nodes } = this.#seen.graph;
    if (key === "ArrowUp") return nodes[node]?.operands.find((operand) => operand >= 0);
    if (key === "ArrowDown") return usersOf(nodes).get(node)?.[0];
    const step = STEPS[key];
    return step && nodes[node + step] ? node + step : undefined;
  }

  #draw(): void {
    const { graph, facts } = this.#seen;
    const { nodes, functions } = graph;
    const chosen = drawnNodes(nodes, this.#chosen);
    const isPart = chosen.size < nodes.length;
    this.part.textContent = isPart
      ? `${nodes.length} nodes are too many to draw: these are the ${chosen.size} around node ${this.#chosen}. Choose another node in the table.`
      : "";
    const title = isPart ? `${chosen.size} of ${nodes.length} nodes` : `graph of ${nodes.length} nodes`;
    const whole = nodes.length ? drawing(nodes, { title, chosen, shown: (id) => this.#shown(id) }) : "";
    const inner = functions.map(({ name, nodes: within }, index) => {
      const words = `function ${index}${name && ` ${name}`}`;
      const shown = (id: number) => this.#shownWithin(index, id);
      const around = drawnNodes(within, 0);
      return `<figure><figcaption></figcaption>${drawing(within, { title: words, chosen: around, shown })}</figure>`;
    });
    this.drawings.innerHTML = `<div id="graph-drawing">${whole}</div>${inner.join("")}`;
    for (const [index, caption] of this.drawings.querySelectorAll("figcaption").entries()) {
      caption.textContent = `function ${index} ${functions[index]?.name ?? ""}`;
    }
    this.tables.innerHTML = this.#tables(graph, facts);
  }

  #tables({ nodes, functions }: WireGraph, facts: ReadonlyMap<number, Facts>): string {
    const marked = new Map(facts);
    for (const { node, words } of this.#seen.marks) {
      if (node !== undefined) marked.set(node, { ...marked.get(node), mark: { kind: "bad", words } });
    }
    const from = this.#from < nodes.length ? this.#from : 0;
    const caption = nodes.length > ROWS ? `Nodes ${from} to ${Math.min(from + ROWS, nodes.length) - 1}` : "Nodes of the graph";
    const own = nodes.length ? table({ caption, nodes, facts: marked, from, chosen: this.#chosen }) : "";
    const rest = functions.map(({ name, nodes: within }, index) => {
      return table({ caption: `Nodes of function ${index} ${name}`, nodes: within, facts: NONE, from: 0 });
    });
    return `${pages(nodes.length, from)}${own}${rest.join("")}`;
  }

  #shown(id: number): Shown {
    const facts = this.#seen.facts.get(id);
    const mark = this.#seen.marks.find((each) => each.node === id);
    if (mark) return { lines: linesOf(facts), mark: { kind: "bad", words: mark.words }, operand: mark.operand };
    return { lines: linesOf(facts), ...(facts?.mark && { mark: facts.mark }) };
  }

  #shownWithin(index: number, id: number): Shown {
    const mark = this.#seen.marks.find((each) => each.function === index && each.functionNode === id);
    return { lines: [], ...(mark && { mark: { kind: "bad", words: mark.words }, operand: mark.operand }) };
  }
}

/** Buttons for the pages of a long table. */
function pages(count: number, from: number): string {
  if (count <= ROWS) return "";
  const before = from > 0 ? `<button type="button" data-page="${Math.max(0, from - ROWS)}">Previous rows</button> ` : "";
  const after = from + ROWS < count ? `<button type="button" data-page="${from + ROWS}">Next rows</button>` : "";
  return `<p>${before}${after}</p>`;
}

function nodeOf(target: EventTarget | null): number | undefined {
  const found = (target as Element | null)?.closest<SVGElement>("#graph-drawing [data-node]");
  return found ? Number(found.dataset["node"]) : undefined;
}
