/** A request in JSON, and its tensors, which may come to stand in it or beside it. */

import type { Bytes } from "./bytes.js";
import { write } from "./json.js";
import { encode } from "./safetensors.js";
import type { Tensor } from "./tensor.js";
import { defaultForm, type Form, toJson } from "./tensor-json.js";

export const JSON_TYPE = "application/json";
export const SAFETENSORS_TYPE = "application/vnd.safetensors";

/** An object of JSON that is being written. */
export type Fields = { [name: string]: unknown };

interface Place {
  readonly where: string;
  readonly holder: Fields;
  readonly key: string;
  readonly tensor: Tensor;
}

/** A media type and a body of it. */
export interface Encoded {
  readonly media: string;
  readonly body: readonly Bytes[];
}

export class Message {
  readonly #places: Place[] = [];

  constructor(readonly fields: Fields = {}) {}

  /** A tensor that is called `where` beside the JSON, or in it is what `holder` has under `key`. */
  place(tensor: Tensor, where: string, holder: Fields, key: string): void {
    this.#places.push({ where, holder, key, tensor });
  }

  /** The form that is asked for, or else the one that the tensors' size suggests. */
  form(asked: Form | undefined): Form {
    return asked ?? defaultForm(this.#places.reduce((nbytes, { tensor }) => nbytes + tensor.data.byteLength, 0));
  }

  /** Media type and body. Throws InputError for fields that JSON has no words for. */
  encoded(form: Form): Encoded {
    if (form === "safetensors") {
      const tensors = new Map(this.#places.map(({ where, tensor }) => [where, tensor]));
      return { media: SAFETENSORS_TYPE, body: encode(tensors, { request: write(this.fields) }) };
    }
    this.intoJson(form);
    return { media: JSON_TYPE, body: [textBytes(this.fields)] };
  }

  /** Have all tensors stand in the JSON. */
  intoJson(form: Form): void {
    for (const { holder, key, tensor } of this.#places) holder[key] = toJson(tensor, form);
  }
}

/** A tensor that is all of a body. The server does not look at its name. */
export function alone(tensor: Tensor, asked: Form | undefined): Encoded {
  const form = asked ?? defaultForm(tensor.data.byteLength);
  if (form === "safetensors") return { media: SAFETENSORS_TYPE, body: encode(new Map([["tensor", tensor]])) };
  return { media: JSON_TYPE, body: [textBytes(toJson(tensor, form))] };
}

function textBytes(fields: unknown): Bytes {
  return new TextEncoder().encode(write(fields));
}
