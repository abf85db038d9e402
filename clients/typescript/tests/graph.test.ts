/** Graphs: what the builder refuses, and what it names. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph, InputError, type Node, tensor } from "../src/index.js";
import { toWire } from "../src/requests.js";
import { callersLine } from "../src/stack.js";

test("a node of another graph is refused, by the ops and lines of both", () => {
  const other = new Graph().input("x");
  const graph = new Graph();
  assert.throws(() => graph.tanh(other), {
    name: "InputError",
    message: /^tanh \(graph\.test\.js:\d+\), operand 0: input \(graph\.test\.js:\d+\) belongs to another graph$/,
  });
  assert.equal(graph.size, 0);
});

test("lines are those of the program, whatever calls it", () => {
  const graph = new Graph();
  const [a, b] = [graph.input(), graph.op("input")];
  assert.equal(a.line, b.line);
  assert.match(a.line, /^graph\.test\.js:\d+$/);
});

const STACKS = {
  "V8, of several files": [
    "Error\n    at callersLine (file:///m/src/stack.js:9:20)\n    at Graph.append (file:///m/src/graph.js:9:2)\n" +
      "    at Graph.tanh (file:///m/src/generated/ops.js:7:5)\n    at file:///it/train.js:12:3",
    "train.js:12",
  ],
  "V8, of a path with spaces": [
    "Error\n    at a (/m/stack.js:1:2)\n    at Object.<anonymous> (/my own/train.cjs:3:1)",
    "train.cjs:3",
  ],
  "V8, of Windows": ["Error\n    at a (C:\\m\\stack.js:1:2)\n    at b (C:\\it\\train.js:3:1)", "train.js:3"],
  "Firefox and Safari": [
    "callersLine@http://h/m/stack.js:9:20\nappend@http://h/m/graph.js:9:2\ntanh@http://h/m/generated/ops.js:7:5\n" +
      "@http://h/train.js:12:3",
    "train.js:12",
  ],
  "of a bundle": [
    "Error\n    at a (http://h/all.js:1:9)\n    at b (http://h/all.js:2:9)\n    at c (http://h/all.js:3:9)\n" +
      "    at train (http://h/all.js:44:9)\n    at http://h/all.js:50:1",
    "all.js:44",
  ],
  "of an engine that says nothing": ["", ""],
} as const;

for (const [name, [stack, line]] of Object.entries(STACKS)) {
  test(`the caller's line in a stack: ${name}`, () => assert.equal(callersLine(stack), line));
}

test("operands that may be left out are left out at the end alone", () => {
  const graph = new Graph();
  const x = graph.input();
  assert.deepEqual(graph.layerNorm(x).operands, [0]);
  assert.deepEqual(graph.layerNorm(x, x, undefined, { eps: 1e-3 }).operands, [0, 0]);
  assert.throws(() => graph.layerNorm(x, undefined, x), /operand 1: expected a node, got nothing/);
});

test("whole numbers have no sign of zero, and are refused where a number does not hold them", () => {
  const graph = new Graph();
  const x = graph.input();
  graph.sum(x, { axes: [-0] });
  graph.mulScalar(x, -0);
  graph.sum(x, { axes: [2n ** 60n] });
  const nodes = toWire(graph)["nodes"] as { attrs?: { axes?: unknown[]; scalar?: number } }[];
  const attrs = nodes.map((node) => node.attrs);
  assert.ok(Object.is(attrs[1]?.axes?.[0], 0));
  assert.ok(Object.is(attrs[2]?.scalar, -0));
  assert.equal(attrs[3]?.axes?.[0], 2n ** 60n);
  assert.throws(() => graph.sum(x, { axes: [2 ** 60] }), /sum \(graph.* attribute axes: .*; pass a bigint/);
});

test("what an attribute cannot be is refused by its name", () => {
  const graph = new Graph();
  const x = graph.input();
  assert.throws(() => graph.mulScalar(x, NaN), /mul_scalar \(graph.*, attribute scalar: JSON cannot represent NaN/);
  assert.throws(() => graph.op("new", [x], { at: new Date() as never }), /attribute at: Date is not a valid attribute/);
  assert.throws(() => graph.constant([[1], [2, 3]]), /constant \(graph.*, attribute value: .*unequal lengths/);
});

test("nodes are found by handle, name and id", () => {
  const graph = new Graph();
  const x = graph.input("x");
  graph.input("twice");
  graph.input("twice");
  assert.equal(graph.find("x"), x);
  assert.equal(graph.find(0), x);
  for (const missing of ["y", "twice", 3, -1, 0.5]) assert.throws(() => graph.find(missing), InputError);
});

test("a graph of an answer is sent as it came, whatever its ops are", () => {
  const stated = {
    opset: 1,
    nodes: [
      { op: "input", name: "x" },
      { op: "constant", attrs: { value: { dtype: "int64", shape: [1], data_b64: "/////////38=" } } },
      { op: "an_op_of_tomorrow", operands: [0, 1], attrs: { scale: -0, big: 2n ** 63n } },
    ],
  };
  const expected: unknown = JSON.parse(JSON.stringify(stated, text));
  assert.deepEqual(JSON.parse(JSON.stringify(toWire(Graph.fromWire(stated)), text)), expected);
});

function text(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

test("a graph says which opset it needs, unless its program says which it is of", () => {
  const written: [number | undefined, (graph: Graph) => unknown][] = [
    [2, (graph) => graph.randomKey(graph.input())],
    [2, (graph) => graph.op("random_key", [graph.input()])],
    [2, (graph) => graph.parameter("key", { dtype: "uint32" })],
    [2, (graph) => graph.cast(graph.input(), "uint32")],
    [2, (graph) => graph.constant(new Uint32Array([0, 2 ** 32 - 1]))],
    [2, (graph) => graph.constant(new Int16Array(2))],
    [2, (graph) => graph.constant({ re: 1, im: -2 })],
    [2, (graph) => graph.cast(graph.input(), "complex64")],
    [undefined, (graph) => graph.cast(graph.input(), "int32")],
    [undefined, (graph) => graph.op("toString", [], { dtype: "constructor", word: "uint32" })],
  ];
  for (const [opset, write] of written) {
    const [usual, stated] = [new Graph(), new Graph(1)];
    for (const graph of [usual, stated]) write(graph);
    assert.equal(toWire(usual)["opset"], opset, write.toString());
    assert.equal(toWire(stated)["opset"], 1);
  }
});

test("types hold what the ops' methods take", () => {
  const graph = new Graph();
  const x: Node = graph.input("x", { dtype: "float32", shape: [2, -1] });
  graph.op("concat", [x, x], { axis: 0 });
  graph.cat([x, x], { axis: 0 });
  graph.constant(tensor([1, 2], "float32"));
  graph.cast(x, "a_dtype_of_tomorrow");
  graph.randomUniform(x, [2, 3], "float32");
  // @ts-expect-error a dtype that is none of the choices
  graph.randomUniform(x, [2, 3], "int32");
  // @ts-expect-error an attribute that is not there
  graph.sum(x, { axis: 0 });
  // @ts-expect-error an attribute of another type
  graph.argmax(x, "0");
  // @ts-expect-error a word that is none of the choices
  graph.bceWithLogits(x, x, { reduction: "most" });
  // @ts-expect-error no list of nodes
  assert.throws(() => graph.cat(x, x));
  // @ts-expect-error a number is no node
  assert.throws(() => graph.add(x, 1), InputError);
});

test("a function is a graph within the graph", () => {
  const graph = new Graph();
  const step = graph.function((f) => {
    const [k, y] = [f.input("k"), f.input("y")];
    const next = f.add(y, f.mulScalar(f.mul(k, y), -0.5));
    return [next, next];
  }, "euler");
  const last = graph.scan([graph.parameter("k"), graph.input("y0")], step, { carries: 1, length: 4 });
  graph.sum(graph.getOutput(last, 1));
  assert.deepEqual([step.index, step.parameters.length, step.outputs.length], [0, 2, 2]);
  const wire = toWire(graph);
  assert.deepEqual([wire["opset"], last.attrs], [2, { body: 0, carries: 1, length: 4 }]);
  assert.deepEqual(toWire(Graph.fromWire(wire)), wire);
  assert.throws(() => toWire(step.nodes), InputError);
});

test("a function may make those that it uses", () => {
  const graph = new Graph();
  const outer = graph.function((f) => {
    const inner = f.function((g) => g.neg(g.input()));
    return f.getOutput(f.call([f.input()], inner), 0);
  });
  assert.deepEqual([outer.index, graph.functions.length], [1, 2]);
});

test("functions share neither nodes nor graphs", () => {
  const graph = new Graph();
  const x = graph.input();
  assert.throws(() => graph.function((f) => f.add(f.input(), x)), /operand 1: .* belongs to another graph/);
  assert.throws(() => graph.function((f) => [f.input(), x]), /output 1 is not a node of the function/);
  assert.equal(graph.functions.length, 0);
  const other = new Graph().function((f) => f.input());
  assert.throws(() => graph.call([x], other), /call \(graph\.test\.js:\d+\), attribute body: .* another graph/);
});
