/** Servers for tests, on a free port of this machine for as long as a test lasts. */

import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

/** Its URL. */
export async function serving(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A promise, and what settles it. */
export function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}

/** Answers of JSON by the paths of requests, each made anew; what came is listed. */
export function answering(answers: { readonly [path: string]: () => { status?: number; json: unknown } }): {
  readonly listener: RequestListener;
  readonly came: string[];
} {
  const came: string[] = [];
  const listener: RequestListener = (request, response) => {
    const path = request.url?.replace(/\?.*/, "") ?? "";
    came.push(`${request.method} ${path}`);
    request.resume().on("end", () => {
      const { status = 200, json } = answers[path]?.() ?? { status: 500, json: {} };
      const type = status < 400 ? "application/json" : "application/problem+json";
      response.writeHead(status, { "Content-Type": type }).end(JSON.stringify(json));
    });
  };
  return { listener, came };
}
