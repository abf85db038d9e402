/** Tensors and sizes as text. */

import type { Json } from "../../clients/typescript/src/json.js";
import type { Scalar } from "../../clients/typescript/src/tensor.js";
import { fromJson } from "../../clients/typescript/src/tensor-json.js";

/** The first `most` elements of a tensor in a response, in row-major order. */
export function shownTensor(stated: Json | undefined, most: number): string {
  const tensor = fromJson(stated);
  const first: string[] = [];
  for (const element of tensor.elements()) {
    if (first.length === most) break;
    first.push(shownElement(element));
  }
  if (!tensor.shape.length) return first[0] ?? "";
  return `[${first.join(", ")}${tensor.size > most ? `, … ${tensor.size} in all` : ""}]`;
}

/** The shape of a tensor and its elements as numbers; undefined for complex tensors. */
export function realTensor(stated: Json): { readonly shape: readonly number[]; readonly elements: readonly number[] } | undefined {
  const tensor = fromJson(stated);
  if (tensor.dtype.startsWith("complex")) return undefined;
  return { shape: tensor.shape, elements: Array.from(tensor.elements(), Number) };
}

function shownElement(element: Scalar): string {
  if (typeof element === "number") return shownNumber(element);
  if (typeof element !== "object") return String(element);
  const { re, im } = element;
  return `${shownNumber(re)} ${im < 0 || Object.is(im, -0) ? "−" : "+"} ${shownNumber(Math.abs(im))}i`;
}

/** A number with six digits. */
export function shownNumber(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(6))) : String(value);
}

/** A count with a unit, such as "1.2 MB". */
export function shownCount(count: number, unit: string): string {
  const step = [1e12, 1e9, 1e6, 1e3].findIndex((size) => count >= size);
  if (step < 0) return `${count} ${unit}`;
  const size = [1e12, 1e9, 1e6, 1e3][step] as number;
  return `${Number((count / size).toPrecision(3))} ${"TGMk"[step]}${unit}`;
}
