/** A run: its calls, and the facts about each node in their responses. */

import type { Json, JsonObject } from "../../clients/typescript/src/json.js";
import { requestOf, typeOf } from "./requests.js";
import { isStepwise, type Part } from "./results.js";
import type { Ending, Server } from "./server.js";
import type { Mode } from "./share.js";
import { shownCount, shownNumber, shownTensor } from "./values.js";
import { graphOf, listOf, objectOf, textOf, type WireGraph } from "./wire.js";

/** The known facts about a node. */
export interface Facts {
  readonly dtype?: string;
  readonly shape?: readonly number[];
  readonly flops?: number;
  readonly bytes?: number;
  readonly value?: Json;
  readonly gradient?: Json;
  readonly remark?: string;
  readonly mark?: { readonly kind: "bad" | "passed" | "unsure"; readonly words: string };
}

/** The graph of a run, the facts about its nodes, the results to show first, and a sentence. */
export interface Outcome {
  readonly graph: WireGraph;
  readonly facts: ReadonlyMap<number, Facts>;
  readonly parts: readonly Part[];
  readonly said: string;
}

/** Values are requested only if the response is smaller: in bytes. */
export const MOST_ANSWERED = 1e6;

type Known = Map<number, Facts>;

/** Runs requests; `several` are ops with several outputs, whose value cannot be requested. Rejects with the client's errors. */
export class Session {
  constructor(
    private readonly server: Server,
    private readonly several: ReadonlySet<string>,
    private readonly ending: Ending,
  ) {}

  /** Run a request in one of the modes. */
  async run(mode: Mode, stated: JsonObject): Promise<Outcome> {
    const types = await this.#types(mode, stated);
    if (mode === "differentiate") return this.#differentiated(stated, types);
    const { known, forecast } = await this.#planned(mode === "forward" ? mode : "gradients", stated, types);
    const graph = graphOf(stated["graph"]);
    if (mode === "check") return this.#checked(graph, known, stated);
    const parts = partsOf(mode, stated, graph);
    const said = stated["feeds"] === undefined && types.length ? "Only shapes: the request has no feeds." : "";
    return { graph, facts: known, parts, said: said || (await this.#computed(mode, stated, types, known, forecast)) };
  }

  /** Plan an unfinished request. Rejects with the server's problem report if it rejects the request. */
  async looked(mode: Mode, stated: JsonObject): Promise<Outcome> {
    const types = await this.#types(mode, stated);
    const { known } = await this.#planned(mode === "forward" ? mode : "gradients", stated, types);
    return { graph: graphOf(stated["graph"]), facts: known, parts: [], said: "" };
  }

  /** The types of the feeds. If one has none, send the request without `store`, so that the server reports why. */
  async #types(mode: Mode, stated: JsonObject): Promise<readonly Json[]> {
    if (stated["types"] !== undefined) return listOf(stated["types"]);
    const types = await Promise.all(listOf(stated["feeds"]).map((feed) => this.#typed(feed)));
    const found = types.filter((each) => each !== undefined);
    if (found.length < types.length) {
      const fields = requestOf("gradients", without(stated, "store"));
      await this.server.call(mode === "differentiate" ? "gradients" : mode, fields, this.ending);
    }
    return found;
  }

  async #typed(feed: Json): Promise<JsonObject | undefined> {
    const { node, tensor_id: name } = objectOf(feed);
    if (typeof name !== "string") return typeOf(feed);
    const kept = await this.server.resident(name, this.ending);
    return kept && { node: node as Json, dtype: kept["dtype"] as Json, shape: kept["shape"] as Json };
  }

  async #planned(
    call: "forward" | "gradients",
    stated: JsonObject,
    types: readonly Json[],
  ): Promise<{ known: Known; forecast: JsonObject }> {
    const { call: _, ...fields } = requestOf("plan", call === "forward" ? without(stated, "of", "wrt") : stated);
    const forecast = await this.server.call("plan", { ...fields, types, call }, this.ending);
    const nodes = listOf(forecast["nodes"]).map(objectOf);
    return { known: new Map(nodes.map((each) => [Number(each["node"]), planned(each)])), forecast };
  }

  /** Add values and gradients of all needed nodes, unless they are too long. Return a sentence about the run. */
  async #computed(
    mode: "forward" | "gradients",
    stated: JsonObject,
    types: readonly Json[],
    known: Known,
    own: JsonObject,
  ): Promise<string> {
    const { nodes } = graphOf(stated["graph"]);
    const outputs = [...known.keys()].filter((id) => !this.several.has(nodes[id]?.op ?? ""));
    const wrt = outputs.filter((id) => known.get(id)?.dtype?.startsWith("float"));
    const all = { ...stated, outputs, ...(mode === "gradients" && { wrt }) };
    const { forecast } = await this.#planned(mode, all, types);
    const bytes = Number(forecast["response_bytes"]);
    if (bytes >= MOST_ANSWERED) return `Only shapes: the values of all nodes would take ${shownCount(bytes, "B")}.`;
    if (forecast["admitted"] !== true) return "Only shapes: the values of all nodes would exceed the server's limits.";
    const answer = await this.server.call(mode, requestOf(mode, all), this.ending);
    const disconnected = new Set(listOf(answer["disconnected"]));
    for (const [id, tensor] of tensors(answer["values"])) add(known, id, { value: tensor });
    for (const [id, tensor] of tensors(answer["gradients"])) {
      add(known, id, disconnected.has(id) ? { remark: "no path to the output" } : { gradient: tensor });
    }
    return summary(objectOf(answer["stats"]), own);
  }

  async #checked(graph: WireGraph, known: Known, stated: JsonObject): Promise<Outcome> {
    const answer = await this.server.call("check", requestOf("check", stated), this.ending);
    const tolerance = Number(answer["tolerance"]);
    const errors = listOf(answer["errors"]).map(objectOf);
    for (const { node, relative_error: error } of errors) {
      const words = `relative error ${shownNumber(Number(error))}`;
      add(known, Number(node), { mark: { kind: Number(error) <= tolerance ? "passed" : "bad", words } });
    }
    const uncertified = listOf(answer["uncertified"]).map(objectOf);
    for (const { node, reason, detail } of uncertified) {
      add(known, Number(node), { mark: { kind: "unsure", words: `${textOf(reason)}: ${textOf(detail)}` } });
    }
    const verdict = answer["passed"] === true ? "Passed" : "Not passed";
    const said = `${verdict}: ${errors.length} ${errors.length === 1 ? "node" : "nodes"} compared, ${uncertified.length} not certified, tolerance ${tolerance}`;
    const parts = [...errors, ...uncertified].map(({ node }) => ({ node: Number(node), kind: "check" as const }));
    return { graph, facts: known, parts: parts.sort((left, right) => left.node - right.node), said };
  }

  /** The graph of the gradient, and its values. */
  async #differentiated(stated: JsonObject, types: readonly Json[]): Promise<Outcome> {
    const asked = requestOf("differentiate", { ...stated, types });
    const answer = await this.server.call("differentiate", asked, this.ending);
    const gradients = listOf(answer["gradients"]).map(objectOf);
    const outputs = [...new Set(gradients.map((each) => Number(each["gradient_node"])))];
    const derived = { graph: answer["graph"] as Json, feeds: stated["feeds"] ?? [], outputs };
    const { known, forecast } = await this.#planned("forward", derived, types);
    const told = `The gradient is a graph of ${graphOf(derived.graph).nodes.length} nodes`;
    const run = stated["feeds"] === undefined ? "" : await this.#computed("forward", derived, types, known, forecast);
    for (const { node, gradient_node: id } of gradients) add(known, Number(id), { remark: `gradient with respect to node ${node}` });
    const parts = gradients.map(({ node, gradient_node: id }) => {
      return { node: Number(id), kind: "value" as const, gradientOf: Number(node) };
    });
    return { graph: graphOf(derived.graph), facts: known, parts, said: run ? `${told}. ${run}` : `${told}.` };
  }
}

/** The results that the request asks for, and the sequences that its loops stack, such as the loss of each step. */
function partsOf(mode: "forward" | "gradients", stated: JsonObject, { nodes }: WireGraph): readonly Part[] {
  const ids = (name: string) => listOf(stated[name]).map(Number);
  const last = stated["of"] === undefined ? nodes.length - 1 : Number(stated["of"]);
  const parameters = [...nodes.keys()].filter((id) => nodes[id]?.op === "parameter");
  const wrt = stated["wrt"] === undefined ? parameters : ids("wrt");
  const outputs = mode === "forward" ? (stated["outputs"] === undefined ? [last] : ids("outputs")) : [last];
  const sequences = [...nodes.keys()].filter((id) => isStepwise(nodes, id));
  const values = new Set([...outputs, ...sequences, ...(mode === "gradients" ? ids("outputs") : [])]);
  const gradients = mode === "gradients" ? wrt.map((node) => ({ node, kind: "gradient" as const })) : [];
  return [...[...values].slice(0, 1).map(valueOf), ...gradients, ...[...values].slice(1).map(valueOf)];
}

function valueOf(node: number): Part {
  return { node, kind: "value" };
}

function planned({ dtype, shape, flops, bytes }: JsonObject): Facts {
  return { dtype: textOf(dtype), shape: listOf(shape).map(Number), flops: Number(flops), bytes: Number(bytes) };
}

function add(known: Known, id: number, more: Facts): void {
  known.set(id, { ...known.get(id), ...more });
}

function tensors(entries: Json | undefined): readonly (readonly [number, Json])[] {
  return listOf(entries)
    .map(objectOf)
    .map(({ node, tensor }) => [Number(node), tensor as Json]);
}

function without(stated: JsonObject, ...names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(stated).filter(([name]) => !names.includes(name)));
}

function summary(stats: JsonObject, forecast: JsonObject): string {
  const flops = Number(forecast["forward_flops"]) + Number(forecast["backward_flops"]);
  const peak = shownCount(Number(forecast["peak_bytes"]), "B");
  const time = `${Number(Number(stats["execute_ms"]).toPrecision(2))} ms on ${textOf(stats["device"])}`;
  return `Computed in ${time}: ${shownCount(flops, "FLOPs")}, peak memory ${peak}`;
}

/** The lines of a node, below its op. */
export function linesOf(facts: Facts | undefined): readonly string[] {
  if (!facts) return [];
  const { dtype, shape, flops, bytes, value, gradient, remark, mark } = facts;
  return [
    ...(dtype === undefined ? [] : [`${dtype}[${(shape ?? []).join(", ")}]`]),
    ...(flops === undefined ? [] : [`${shownCount(flops, "FLOPs")}, ${shownCount(bytes ?? 0, "B")}`]),
    ...(value === undefined ? [] : [`= ${shownTensor(value, 3)}`]),
    ...(gradient === undefined ? [] : [`∂ ${shownTensor(gradient, 3)}`]),
    ...(remark === undefined ? [] : [remark]),
    ...(mark && mark.kind !== "bad" ? [mark.words] : []),
  ];
}
