/** The graphs of the gallery that the page was built with. */

import type { JsonObject } from "../../clients/typescript/src/json.js";
import { parse } from "../../clients/typescript/src/json.js";
import type { Mode } from "./share.js";
import { listOf, objectOf, textOf } from "./wire.js";

export interface Example {
  readonly name: string;
  readonly title: string;
  readonly paragraph: string;
  readonly mode: Mode;
  readonly request: JsonObject;
}

/** The examples in the file of this address, which lies beside the page's script. */
export async function galleryAt(url: URL): Promise<readonly Example[]> {
  const answer = await fetch(url, { credentials: "omit" });
  if (!answer.ok) throw new Error(`the gallery could not be loaded: status ${answer.status}`);
  return listOf(parse(await answer.text())).map(objectOf).map((each) => ({
    name: textOf(each["name"]),
    title: textOf(each["title"]),
    paragraph: textOf(each["paragraph"]),
    mode: textOf(each["mode"]) as Mode,
    request: objectOf(each["request"]),
  }));
}
