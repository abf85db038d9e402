/** Completion in the editor: ops, their attributes and their choices, dtypes, and the names of fields. */

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { syntaxTree } from "@codemirror/language";
import type { SyntaxNode } from "@lezer/common";
import type { Catalogue, Op } from "./catalogue.js";
import { nameOf, pathTo } from "./places.js";

const FIELDS: { readonly [holder: string]: readonly string[] } = {
  "": ["graph", "feeds", "of", "wrt", "outputs", "cotangent", "types", "directions", "tolerance", "memory_budget"],
  graph: ["opset", "functions", "nodes"],
  nodes: ["op", "operands", "attrs", "name"],
  functions: ["name", "nodes", "outputs"],
  feeds: ["node", "tensor", "tensor_id"],
  types: ["node", "dtype", "shape"],
  tensor: ["dtype", "shape", "data", "data_b64"],
  cotangent: ["dtype", "shape", "data", "data_b64"],
};
const VALUE = /"(\w+)"\s*:\s*"(\w*)$/;
const NAME = /[{,]\s*"(\w*)$/;

/** Suggestions at the cursor; ops and attributes need the catalogue. */
export function completed(context: CompletionContext, ops: Catalogue | undefined): CompletionResult | null {
  const { text: line, from } = context.state.doc.lineAt(context.pos);
  const before = line.slice(0, context.pos - from);
  const value = VALUE.exec(before);
  if (value) return result(context, value[2] ?? "", valuesOf(value[1] ?? "", context, ops));
  const name = NAME.exec(before) ?? /^\s*"(\w*)$/.exec(before);
  return name && result(context, name[1] ?? "", namesAt(context, ops));
}

function result(context: CompletionContext, typed: string, options: readonly Completion[]): CompletionResult | null {
  if (!options.length) return null;
  return { from: context.pos - typed.length, options, validFor: /^\w*$/ };
}

function valuesOf(name: string, context: CompletionContext, ops: Catalogue | undefined): readonly Completion[] {
  if (name === "op") return [...(ops?.values() ?? [])].map(opOption);
  const choices = placed(context, ops).op?.attributes.find((each) => each.name === name)?.choices ?? [];
  if (name === "dtype" && !choices.length) return (ops?.get("add")?.dtypes ?? []).map((label) => ({ label, type: "type" }));
  return choices.map((label) => ({ label, type: "constant" }));
}

function opOption({ name, operands, summary }: Op): Completion {
  return { label: name, detail: `(${operands.join(", ")})`, info: summary, type: "function" };
}

function namesAt(context: CompletionContext, ops: Catalogue | undefined): readonly Completion[] {
  const { holder, op } = placed(context, ops);
  if (holder !== "attrs") return (FIELDS[holder] ?? []).map((label) => ({ label, type: "property" }));
  return (op?.attributes ?? []).map(({ name, type, doc }) => ({ label: name, detail: type, info: doc, type: "property" }));
}

/** The name of the field that contains the object around the cursor, and the op of the node around it. */
function placed(context: CompletionContext, ops: Catalogue | undefined): { holder: string; op: Op | undefined } {
  const text = context.state.doc.toString();
  const { around, path } = pathTo(syntaxTree(context.state), text, context.pos);
  const holder = around ? holderOf(around, text) : (path.at(-1) ?? "");
  for (let node: SyntaxNode | null = around; node; node = node.parent) {
    const name = node.name === "Object" && opIn(node, text);
    if (name) return { holder, op: ops?.get(name) };
  }
  return { holder, op: undefined };
}

function holderOf(object: SyntaxNode, text: string): string {
  for (let node = object.parent; node; node = node.parent) {
    const name = node.name === "Property" && node.getChild("PropertyName");
    if (name) return nameOf(name, text);
  }
  return "";
}

function opIn(object: SyntaxNode, text: string): string {
  for (const property of object.getChildren("Property")) {
    const [name, value] = [property.getChild("PropertyName"), property.getChild("String")];
    if (name && value && nameOf(name, text) === "op") return nameOf(value, text);
  }
  return "";
}
