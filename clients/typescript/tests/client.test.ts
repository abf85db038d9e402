/** What the cases of conformance do not hold: calls that are given up, are made at the same time, or never end. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  AnswerTooLargeError,
  Client,
  ConnectionError,
  DeadlineError,
  DeadlineRefusal,
  Graph,
  InputError,
  Refusal,
  type Surroundings,
} from "../src/index.js";
import { WORLD } from "../src/retries.js";
import { answering, deferred, serving } from "./server.js";

const VALUES = { values: [{ node: 1, tensor: { dtype: "float64", shape: [], data: [9] } }] };

function squared(): Graph {
  const graph = new Graph();
  graph.square(graph.parameter("w"));
  return graph;
}

test("a signal that is aborted already ends a call before anything is sent", async (t) => {
  const { listener, came } = answering({ "/v1/forward": () => ({ json: VALUES }) });
  const client = new Client(await serving(t, listener));
  const reason = new Error("no more");
  await assert.rejects(client.forward(squared(), { w: 3 }, { signal: AbortSignal.abort(reason) }), reason);
  assert.deepEqual(came, []);
});

test("a signal ends a call that waits for its answer, and the connection with it", async (t) => {
  const came = deferred<void>();
  const closed = deferred<void>();
  const url = await serving(t, (request) => {
    request.resume().on("end", () => came.resolve());
    request.socket.on("close", () => closed.resolve());
  });
  const control = new AbortController();
  const call = new Client(url).forward(squared(), { w: 3 }, { signal: control.signal });
  await came.promise;
  control.abort();
  await assert.rejects(call, { name: "AbortError" });
  await closed.promise;
});

test("a signal ends the wait before another try", async (t) => {
  const url = await serving(t, (_, response) => response.writeHead(503, { "Retry-After": "3600" }).end());
  const control = new AbortController();
  const surroundings: Surroundings = {
    ...WORLD,
    wait: (ms, signal) => {
      const waited = WORLD.wait(ms, signal);
      setImmediate(() => control.abort());
      return waited;
    },
  };
  const client = new Client(url, { surroundings, timeoutMs: null });
  await assert.rejects(client.forward(squared(), { w: 3 }, { signal: control.signal }), { name: "AbortError" });
});

test("an answer that never ends is read no further than it may be", async (t) => {
  const closed = deferred<void>();
  const url = await serving(t, (request, response) => {
    request.socket.on("close", () => closed.resolve());
    response.writeHead(200, { "Content-Type": "application/json" });
    const chunk = Buffer.alloc(1 << 16, " ");
    const more = (): void => {
      if (!request.socket.destroyed) response.write(chunk, more);
    };
    more();
  });
  const client = new Client(url, { maxResponseBytes: 1 << 20 });
  await assert.rejects(client.forward(squared(), { w: 3 }), AnswerTooLargeError);
  await closed.promise;
});

test("an answer that stops in its middle is given up at the deadline", async (t) => {
  const begun = deferred<void>();
  const url = await serving(t, (_, response) => {
    response.writeHead(200, { "Content-Type": "application/json" });
    response.write("{", () => begun.resolve());
  });
  let end = (): void => assert.fail("there is no deadline");
  const surroundings: Surroundings = { ...WORLD, timer: (_, act) => ((end = act), () => {}) };
  const call = new Client(url, { surroundings }).forward(squared(), { w: 3 });
  await begun.promise;
  end();
  await assert.rejects(call, DeadlineError);
});

test("calls at the same time on a graph that is not registered yet register it once", async (t) => {
  const graphId = "ab".repeat(32);
  const { listener, came } = answering({
    "/v1/graphs": () => ({ status: 201, json: { graph_id: graphId } }),
    [`/v1/graphs/${graphId}/forward`]: () => ({ json: VALUES }),
  });
  const client = new Client(await serving(t, listener));
  const graph = await client.register(squared(), { atOnce: false });
  const answers = await Promise.all([1, 2, 3].map((w) => graph.forward({ w })));
  assert.deepEqual(answers.map(({ value }) => value.item()), [9, 9, 9]);
  assert.equal(came.filter((request) => request === "POST /v1/graphs").length, 1);
});

test("calls at the same time that find a graph forgotten register it once more", async (t) => {
  const [first, second] = ["ab".repeat(32), "cd".repeat(32)];
  let registrations = 0;
  let calls = 0;
  const answered = deferred<void>();
  const { listener, came } = answering({
    "/v1/graphs": () => ({ status: 201, json: { graph_id: (registrations += 1) === 1 ? first : second } }),
    [`/v1/graphs/${first}/forward`]: () => ({ status: 404, json: { code: "not_found", status: 404 } }),
    [`/v1/graphs/${second}/forward`]: () => ({ json: VALUES }),
  });
  const url = await serving(t, (request, response) => {
    // The second call learns that the graph is forgotten when the first has seen to that already.
    const isLate = request.url?.startsWith(`/v1/graphs/${first}/`) && (calls += 1) === 2;
    void (isLate ? answered.promise : Promise.resolve()).then(() => listener(request, response));
  });
  const graph = await new Client(url).register(squared());
  const both = [1, 2].map((w) => graph.forward({ w }));
  await Promise.race(both);
  answered.resolve();
  await Promise.all(both);
  assert.equal(came.filter((request) => request === "POST /v1/graphs").length, 2);
});

test("a call that is given up while it registers leaves it to those that wait", async (t) => {
  const graphId = "ab".repeat(32);
  const came = deferred<void>();
  const again = answering({
    "/v1/graphs": () => ({ status: 201, json: { graph_id: graphId } }),
    [`/v1/graphs/${graphId}/forward`]: () => ({ json: VALUES }),
  });
  let requests = 0;
  const url = await serving(t, (request, response) => {
    if ((requests += 1) > 1) again.listener(request, response);
    else came.resolve();
  });
  const control = new AbortController();
  const graph = await new Client(url).register(squared(), { atOnce: false });
  const given = graph.forward({ w: 1 }, { signal: control.signal });
  const waiting = graph.forward({ w: 2 });
  await came.promise;
  control.abort();
  await assert.rejects(given, { name: "AbortError" });
  assert.equal((await waiting).value.item(), 9);
});

test("a refusal of the server's for time is a DeadlineError and a Refusal", async (t) => {
  const problem = { code: "deadline_exceeded", detail: "too late", status: 504 };
  const { listener } = answering({ "/v1/forward": () => ({ status: 504, json: problem }) });
  const error: unknown = await new Client(await serving(t, listener)).forward(squared(), { w: 3 }).catch((e) => e);
  assert.ok(error instanceof DeadlineError && error instanceof Refusal && error instanceof DeadlineRefusal);
  assert.ok(!(new ConnectionError("gone") instanceof DeadlineError));
});

test("a refusal names the line that wrote the node", async (t) => {
  const problem = { code: "shape_mismatch", detail: "no", status: 422, node: 1 };
  const { listener } = answering({ "/v1/forward": () => ({ status: 422, json: problem }) });
  const call = new Client(await serving(t, listener)).forward(squared(), { w: 3 });
  await assert.rejects(call, /node 1 was written at client\.test\.js:\d+/);
});

test("the key is neither in what is printed of a client nor in what is thrown for a bad one", () => {
  assert.ok(!inspect(new Client("http://127.0.0.1:1", { apiKey: "gs_secret" }), { depth: 9 }).includes("gs_secret"));
  assert.throws(
    () => new Client("http://127.0.0.1:1", { apiKey: "gs_secret\n" }),
    (error) => error instanceof InputError && !inspect(error).includes("gs_secret"),
  );
});

test("what is no URL of a server is refused", () => {
  for (const url of ["", "127.0.0.1:8000", "ftp://127.0.0.1", "http://user:word@127.0.0.1"]) {
    assert.throws(() => new Client(url), InputError, url);
  }
});

test("a precision travels", async () => {
  const sent: unknown[] = [];
  const fetch = async (_: string, init: RequestInit): Promise<Response> => {
    sent.push(JSON.parse(await new Response(init.body ?? null).text()).precision);
    return Response.json(VALUES);
  };
  const client = new Client("http://there.example/", { fetch });
  const precisions = ["float32", "tf32x3", "tf32", "bfloat16"] as const;
  await client.forward(squared(), { w: 3 }, { form: "json" });
  for (const precision of precisions) await client.forward(squared(), { w: 3 }, { form: "json", precision });
  assert.deepEqual(sent, [undefined, ...precisions]);
});

test("the layout of a Hessian is sent, and its matrix is looked up by node", async () => {
  const place = (node: number, offset: number, size: number) => ({ node, offset, size });
  const tensor = { dtype: "float64", shape: [3, 3], data: [0, 1, 2, 3, 4, 5, 6, 7, 8] };
  const matrix = { offsets: [place(1, 0, 1), place(0, 1, 2)], tensor };
  const answers = [{}, { matrix }].map((more) => ({ ...VALUES, gradients: [], hessian: [], ...more }));
  const sent: unknown[] = [];
  const fetch = async (_: string, init: RequestInit): Promise<Response> => {
    sent.push(JSON.parse(await new Response(init.body ?? null).text()).layout);
    return Response.json(answers.shift());
  };
  const client = new Client("http://there.example/", { fetch });
  const graph = squared();
  assert.equal((await client.hessian(graph, { w: [3, 4] })).matrix, undefined);
  const answer = await client.hessian(graph, { w: [3, 4] }, { layout: "matrix", wrt: [1, "w"] });
  assert.deepEqual(sent, [undefined, "matrix"]);
  assert.deepEqual(answer.matrix?.tensor.shape, [3, 3]);
  assert.deepEqual(answer.matrix?.offsets.get("w"), { offset: 1, size: 2 });
  assert.deepEqual(answer.matrix?.offsets.get(graph.find(1)), { offset: 0, size: 1 });
  assert.equal(answer.hessian.length, 0);
});

test("a memory budget travels with each call that runs, and with plan", async () => {
  const sent: unknown[] = [];
  const fetch = async (_: string, init: RequestInit): Promise<Response> => {
    sent.push(JSON.parse(await new Response(init.body ?? null).text()).memory_budget);
    return Response.json(VALUES);
  };
  const client = new Client("http://there.example/", { fetch });
  const asked = { form: "json", memoryBudget: 2 ** 40 + 1 } as const;
  await client.forward(squared(), { w: 3 }, { form: "json" });
  await client.forward(squared(), { w: 3 }, asked);
  await client.check(squared(), { w: 3 }, asked).catch(() => {});
  await client.plan(squared(), { w: ["float64", []] }, asked).catch(() => {});
  assert.deepEqual(sent, [undefined, ...Array(3).fill(2 ** 40 + 1)]);
});

test("another fetch takes the place of the platform's", async () => {
  const asked: string[] = [];
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    asked.push(`${init.method} ${url} ${await new Response(init.body ?? null).text()}`);
    return Response.json(VALUES);
  };
  const client = new Client("http://there.example/under/", { fetch });
  const answer = await client.forward(squared(), { w: 3 }, { form: "json" });
  assert.equal(answer.value.item(), 9);
  const graph = '{"nodes":[{"op":"parameter","name":"w"},{"op":"square","operands":[0]}]}';
  const feeds = '[{"node":0,"tensor":{"dtype":"float64","shape":[],"data":[3]}}]';
  assert.deepEqual(asked, [
    `POST http://there.example/under/v1/forward?timeout_ms=${asked[0]?.match(/timeout_ms=(\d+)/)?.[1]} ` +
      `{"graph":${graph},"feeds":${feeds},"encoding":"json"}`,
  ]);
});
