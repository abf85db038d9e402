/** JSON formatted for people: a value that fits on a line is on one line. Numbers keep their digits. */

import { type Json, write } from "../../clients/typescript/src/json.js";

const WIDTH = 88;

/** Format a value; objects and lists that are too long for a line get several. */
export function laidOut(value: Json, indent = ""): string {
  const flat = spaced(value);
  if (typeof value !== "object" || value === null || indent.length + flat.length <= WIDTH) return flat;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const parts = value.every((each) => typeof each !== "object") ? filled(value.map(spaced), inner) : value;
    return bracketed("[", parts.map((each) => (typeof each === "string" ? each : laidOut(each, inner))), "]", indent);
  }
  const members = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${laidOut(each, inner)}`);
  return bracketed("{", members, "}", indent);
}

function bracketed(open: string, parts: readonly string[], close: string, indent: string): string {
  return `${open}\n${parts.map((part) => `${indent}  ${part}`).join(",\n")}\n${indent}${close}`;
}

/** Numbers and strings, as many on a line as fit. */
function filled(words: readonly string[], indent: string): readonly string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    const isFull = last === undefined || indent.length + last.length + word.length > WIDTH;
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = `${last}, ${word}`;
  }
  return lines;
}

function spaced(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return write(value);
  return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${spaced(each)}`).join(", ")}}`;
}
