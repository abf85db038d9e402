/** Places in the text of a request, found by JSON pointers. */

import { jsonLanguage } from "@codemirror/lang-json";
import type { SyntaxNode, Tree } from "@lezer/common";

export interface Place {
  readonly from: number;
  readonly to: number;
}

/**
 * The place of a JSON pointer (RFC 6901) in a text, or of its longest part that exists. The place of an object's member
 * includes its name.
 */
export function placeOf(text: string, pointer: string): Place {
  const tree: Tree = jsonLanguage.parser.parse(text);
  let found = tree.topNode.firstChild;
  let place: Place = found ?? { from: 0, to: text.length };
  for (const key of keysOf(pointer)) {
    const next = found && child(found, key, text);
    if (!next) break;
    [found, place] = [next.value, next.place];
  }
  return { from: place.from, to: place.to };
}

/** The first place where a text is not valid JSON; its start if it is. */
export function faultIn(text: string): Place {
  let found: Place | undefined;
  jsonLanguage.parser.parse(text).iterate({
    enter: ({ type, from, to }) => {
      if (type.isError) found ??= { from: Math.min(from, Math.max(0, text.length - 1)), to: Math.max(to, Math.min(from + 1, text.length)) };
    },
  });
  return found ?? { from: 0, to: Math.min(1, text.length) };
}

function keysOf(pointer: string): readonly string[] {
  return pointer.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function child(of: SyntaxNode, key: string, text: string): { value: SyntaxNode; place: Place } | undefined {
  if (of.name === "Array") {
    const value = valuesOf(of)[Number(key)];
    return value && { value, place: value };
  }
  for (const property of of.getChildren("Property")) {
    const [name, value] = [property.getChild("PropertyName"), property.lastChild];
    if (name && value && nameOf(name, text) === key) return { value, place: property };
  }
  return undefined;
}

/** The entries of a list. */
function valuesOf(list: SyntaxNode): readonly SyntaxNode[] {
  const found = [];
  for (let each = list.firstChild; each; each = each.nextSibling) {
    if (/^[A-Z]/.test(each.name) && !each.type.isError) found.push(each);
  }
  return found;
}

/** The content of a string. */
export function nameOf(node: SyntaxNode, text: string): string {
  try {
    return String(JSON.parse(text.slice(node.from, node.to)));
  } catch {
    return "";
  }
}

/** The names that lead to a place in a text, outermost first, and the innermost object around it. */
export function pathTo(tree: Tree, text: string, at: number): { path: readonly string[]; around: SyntaxNode | null } {
  const path: string[] = [];
  let around: SyntaxNode | null = null;
  for (let node: SyntaxNode | null = tree.resolveInner(at, -1); node; node = node.parent) {
    if (node.name === "Object") around ??= node;
    if (node.name === "Property") {
      const name = node.getChild("PropertyName");
      path.unshift(name ? nameOf(name, text) : "");
    }
  }
  return { path, around };
}
