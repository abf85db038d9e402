/** The places of an error: in the graph, and in the text. */

import { GradserveError, Refusal } from "../../clients/typescript/src/errors.js";
import type { JsonObject } from "../../clients/typescript/src/json.js";
import type { Diagnostic } from "./editor.js";
import { placeOf } from "./places.js";
import { pointerInText } from "./requests.js";

/** A node of the graph or of a function with an error, and its operand. */
export interface Mark {
  readonly words: string;
  readonly node?: number | undefined;
  readonly operand?: number | undefined;
  readonly function?: number | undefined;
  readonly functionNode?: number | undefined;
}

/** All errors of a problem report. */
export function faultsOf(error: unknown): readonly Refusal[] {
  if (!(error instanceof Refusal)) return [];
  return error.errors.length ? error.errors : [error];
}

/** The nodes that an error is about. */
export function marksOf(error: unknown): readonly Mark[] {
  return faultsOf(error).map(({ detail, node, operand, function: within, functionNode }) => {
    return { words: detail, node, operand, function: within, functionNode };
  });
}

/** The places in the text that an error is about. */
export function placesOf(error: unknown, text: string, stated: JsonObject): readonly Diagnostic[] {
  return faultsOf(error).map((fault) => {
    const place = placeOf(text, pointerInText(fault.pointer ?? pointerOf(fault), stated));
    return { ...place, severity: "error", message: fault.detail, source: fault.code };
  });
}

function pointerOf({ node, operand }: Refusal): string {
  if (node === undefined) return "";
  return `/graph/nodes/${node}${operand === undefined ? "" : `/operands/${operand}`}`;
}

/** The message for any failure. */
export function told(error: unknown): string {
  if (error instanceof Refusal) {
    const rest = error.errors.length > 1 ? ` (and ${error.errors.length - 1} more)` : "";
    return `${error.code || `status ${error.status}`}: ${error.detail}${rest}`;
  }
  if (error instanceof GradserveError || error instanceof SyntaxError) return error.message;
  return error instanceof Error ? error.message : String(error);
}
