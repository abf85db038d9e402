/** The fields of the request in the editor that each call takes. */

import type { Json, JsonObject } from "../../clients/typescript/src/json.js";
import type { Mode } from "./share.js";
import { listOf, objectOf, textOf } from "./wire.js";

const COMPUTING = ["graph", "feeds", "encoding", "memory_budget", "precision"];
const DERIVING = ["of", "wrt"];
/** The fields of each call. */
const TAKEN: { readonly [call in Mode | "plan"]: readonly string[] } = {
  forward: [...COMPUTING, "outputs", "diagnose", "store"],
  gradients: [...COMPUTING, ...DERIVING, "outputs", "diagnose", "store", "cotangent"],
  check: [...COMPUTING, ...DERIVING, "directions", "tolerance"],
  differentiate: ["graph", "types", "encoding", ...DERIVING],
  plan: ["graph", "types", "call", "encoding", "memory_budget", "precision", "outputs", ...DERIVING],
};
const KNOWN = new Set(Object.values(TAKEN).flat());

/** The request for a call. Fields that no call takes remain, so that the server reports them. */
export function requestOf(call: Mode | "plan", stated: JsonObject): JsonObject {
  const taken = new Set(TAKEN[call]);
  return Object.fromEntries(Object.entries(stated).filter(([name]) => taken.has(name) || !KNOWN.has(name)));
}

/** The names of the resident tensors that a call stores. */
export function storedNames(call: Mode, stated: JsonObject): readonly string[] {
  return listOf(requestOf(call, stated)["store"]).map((entry) => textOf(objectOf(entry)["tensor_id"])).filter(Boolean);
}

/** The type of a feed's tensor; undefined if the tensor is not in the request. */
export function typeOf(feed: Json): JsonObject | undefined {
  const { node, tensor } = objectOf(feed);
  const { dtype, shape } = objectOf(tensor);
  if (node === undefined || dtype === undefined || shape === undefined) return undefined;
  return { node, dtype, shape };
}

/** The whole request of a call, with types instead of feeds if the call takes no feeds. */
export function wholeRequest(mode: Mode, stated: JsonObject): JsonObject {
  if (mode !== "differentiate" || stated["types"] !== undefined) return requestOf(mode, stated);
  const types = listOf(stated["feeds"]).map(typeOf).filter((each) => each !== undefined);
  return requestOf(mode, { ...stated, types });
}

/** Translate a pointer into the sent request for the text in the editor: types are derived from feeds. */
export function pointerInText(pointer: string, stated: JsonObject): string {
  return stated["types"] === undefined ? pointer.replace(/^\/types\/(\d+)/, "/feeds/$1/tensor") : pointer;
}
