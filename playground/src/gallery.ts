/** The graphs of the gallery, which are built into the page. */

import type { JsonObject } from "../../clients/typescript/src/json.js";
import { parse } from "../../clients/typescript/src/json.js";
import type { Mode } from "./share.js";
import { listOf, objectOf, textOf } from "./wire.js";

export interface Example {
  readonly name: string;
  readonly group: string;
  readonly title: string;
  readonly paragraph: string;
  readonly mode: Mode;
  readonly request: JsonObject;
}

/** Load the examples, in groups and simplest first, as the build sorts them. */
export async function galleryAt(url: URL): Promise<readonly Example[]> {
  const answer = await fetch(url, { credentials: "omit" });
  if (!answer.ok) throw new Error(`The examples could not be loaded: status ${answer.status}.`);
  return listOf(parse(await answer.text())).map(objectOf).map((each) => ({
    name: textOf(each["name"]),
    group: textOf(each["group"]),
    title: textOf(each["title"]),
    paragraph: textOf(each["paragraph"]),
    mode: textOf(each["mode"]) as Mode,
    request: objectOf(each["request"]),
  }));
}
