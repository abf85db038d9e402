/** The server's ops, for completion. */

import type { JsonObject } from "../../clients/typescript/src/json.js";
import { listOf, objectOf, textOf } from "./wire.js";

export interface Attribute {
  readonly name: string;
  readonly type: string;
  readonly doc: string;
  readonly choices: readonly string[];
}

export interface Op {
  readonly name: string;
  readonly summary: string;
  readonly operands: readonly string[];
  readonly attributes: readonly Attribute[];
  readonly dtypes: readonly string[];
  readonly hasSeveral: boolean;
}

/** Ops by name. */
export type Catalogue = ReadonlyMap<string, Op>;

/** The response to `GET /v1/ops`, by name. */
export function catalogueOf(answer: JsonObject): Catalogue {
  return new Map(listOf(answer["ops"]).map(objectOf).map((each) => [textOf(each["name"]), opOf(each)]));
}

function opOf(stated: JsonObject): Op {
  return {
    name: textOf(stated["name"]),
    summary: textOf(stated["summary"]),
    operands: listOf(stated["operands"]).map(textOf),
    attributes: listOf(stated["attributes"]).map(objectOf).map(attributeOf),
    dtypes: listOf(stated["dtypes"]).map(textOf),
    hasSeveral: stated["several_outputs"] === true,
  };
}

function attributeOf(stated: JsonObject): Attribute {
  const choices = listOf(stated["choices"]).map(textOf);
  return { name: textOf(stated["name"]), type: textOf(stated["type"]), doc: textOf(stated["doc"]), choices };
}
