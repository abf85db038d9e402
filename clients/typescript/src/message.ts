/** A request in JSON with its tensors, which are sent in the JSON or beside it. */

import type { Bytes } from "./bytes.js";
import { write } from "./json.js";
import { encode } from "./safetensors.js";
import type { Tensor } from "./tensor.js";
import { defaultForm, type Form, toJson } from "./tensor-json.js";

export const JSON_TYPE = "application/json";
export const SAFETENSORS_TYPE = "application/vnd.safetensors";

/** A JSON object under construction. */
export type Fields = { [name: string]: unknown };

interface Place {
  readonly where: string;
  readonly holder: Fields;
  readonly key: string;
  readonly tensor: Tensor;
}

/** A media type, and a body of this type. */
export interface Encoded {
  readonly media: string;
  readonly body: readonly Bytes[];
}

export class Message {
  readonly #places: Place[] = [];

  constructor(readonly fields: Fields = {}) {}

  /** Adds a tensor: it is `where` in a safetensors file, or `holder[key]` in JSON. */
  place(tensor: Tensor, where: string, holder: Fields, key: string): void {
    this.#places.push({ where, holder, key, tensor });
  }

  /** Returns the requested form, or the default for the size of the tensors. */
  form(asked: Form | undefined): Form {
    return asked ?? defaultForm(this.#places.reduce((nbytes, { tensor }) => nbytes + tensor.data.byteLength, 0));
  }

  /** Returns the media type and the body. Throws InputError for fields that JSON cannot represent. */
  encoded(form: Form): Encoded {
    if (form === "safetensors") {
      const tensors = new Map(this.#places.map(({ where, tensor }) => [where, tensor]));
      return { media: SAFETENSORS_TYPE, body: encode(tensors, { request: write(this.fields) }) };
    }
    this.intoJson(form);
    return { media: JSON_TYPE, body: [textBytes(this.fields)] };
  }

  /** Writes all tensors into the JSON. */
  intoJson(form: Form): void {
    for (const { holder, key, tensor } of this.#places) holder[key] = toJson(tensor, form);
  }
}

/** Encodes a tensor that is the whole body. The server ignores its name. */
export function alone(tensor: Tensor, asked: Form | undefined): Encoded {
  const form = asked ?? defaultForm(tensor.data.byteLength);
  if (form === "safetensors") return { media: SAFETENSORS_TYPE, body: encode(new Map([["tensor", tensor]])) };
  return { media: JSON_TYPE, body: [textBytes(toJson(tensor, form))] };
}

function textBytes(fields: unknown): Bytes {
  return new TextEncoder().encode(write(fields));
}
