/** Tensors and sizes, as they are shown. */

import type { Json } from "../../clients/typescript/src/json.js";
import { fromJson } from "../../clients/typescript/src/tensor-json.js";

/** The first elements of a tensor of an answer, row by row; `most` of them. */
export function shownTensor(stated: Json | undefined, most: number): string {
  const { shape, data, ...tensor } = { ...fromJson(stated), elements: fromJson(stated).elements() };
  const first: string[] = [];
  for (const element of tensor.elements) {
    if (first.length === most) break;
    first.push(typeof element === "number" ? shownNumber(element) : String(element));
  }
  if (!shape.length) return first[0] ?? "";
  return `[${first.join(", ")}${data.length > most ? `, … ${data.length} in all` : ""}]`;
}

/** A number with six digits. */
export function shownNumber(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(6))) : String(value);
}

/** A count with a unit, as "1.2 M". */
export function shownCount(count: number, unit: string): string {
  const step = [1e12, 1e9, 1e6, 1e3].findIndex((size) => count >= size);
  if (step < 0) return `${count} ${unit}`;
  const size = [1e12, 1e9, 1e6, 1e3][step] as number;
  return `${Number((count / size).toPrecision(3))} ${"TGMk"[step]}${unit}`;
}
