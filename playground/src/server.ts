/** Calls to the page's server, with the retries, deadlines and errors of the TypeScript client. */

import { Exchange, Scope } from "../../clients/typescript/src/exchange.js";
import { type JsonObject, write } from "../../clients/typescript/src/json.js";
import { JSON_TYPE } from "../../clients/typescript/src/message.js";
import { catalogue, page, type Request } from "../../clients/typescript/src/requests.js";
import { WORLD } from "../../clients/typescript/src/retries.js";
import { Transport } from "../../clients/typescript/src/transport.js";
import { listOf, objectOf, textOf } from "./wire.js";

const POLICY = { timeoutMs: 60_000, retries: 2, idempotency: true, surroundings: WORLD };
const MOST_BYTES = 16 * 2 ** 20;

/** The signal that cancels a call. */
export type Ending = AbortSignal | undefined;

export class Server {
  readonly #transport: Transport;

  /** Throws InputError for a key that is not valid in a header. */
  constructor(url: string, key: string) {
    this.#transport = new Transport(url, key || undefined, MOST_BYTES, undefined);
  }

  /** The response to a call. Rejects with the client's errors: a Refusal has the server's problem report. */
  async call(name: string, fields: JsonObject, ending: Ending): Promise<JsonObject> {
    const body = [new TextEncoder().encode(write(fields))];
    const headers = { "Content-Type": JSON_TYPE, Accept: JSON_TYPE };
    const keeps = listOf(fields["store"]).length > 0;
    return this.#ask({ method: "POST", path: `/v1/${name}`, headers, body, keeps }, ending);
  }

  /** The catalogue of ops. */
  ops(): Promise<JsonObject> {
    return this.#ask(catalogue(), undefined);
  }

  /** Dtype and shape of a resident tensor; undefined if the server has none of this name. */
  async resident(name: string, ending: Ending): Promise<JsonObject | undefined> {
    let after: string | undefined;
    do {
      const answer = await this.#ask(page("tensors", 1000, after), ending);
      const found = listOf(answer["tensors"]).map(objectOf).find((each) => each["tensor_id"] === name);
      if (found) return found;
      after = textOf(answer["next"]) || undefined;
    } while (after);
    return undefined;
  }

  async #ask(request: Request, ending: Ending): Promise<JsonObject> {
    return (await new Exchange(new Scope(POLICY, this.#transport, ending, undefined), request).run()).json();
  }
}
