/** Graphs. Every method appends a node and returns its handle. */

import { InputError } from "./errors.js";
import { type Json, type JsonObject, nameOf } from "./json.js";
import { Ops, TENSOR_ATTRIBUTES, WHOLE_ATTRIBUTES } from "./generated/ops.js";
import { callersLine } from "./stack.js";
import { Tensor, type TensorLike, tensor } from "./tensor.js";
import { fromJson } from "./tensor-json.js";

/** The attributes of an op in their JSON form. Tensors stay objects, because they have several encodings. */
export type Attributes = { readonly [name: string]: Json | Tensor };
/** Attributes as the caller passes them. Undefined ones are omitted. */
export type StatedAttributes = { readonly [name: string]: Json | TensorLike | GraphFunction | undefined };

/** A node of a graph: a handle to use as an operand, as a key of feeds, and to look up results. */
export class Node {
  constructor(
    readonly graph: Graph,
    /** The position of the node in the graph. */
    readonly id: number,
    readonly op: string,
    readonly operands: readonly number[],
    readonly attrs: Attributes,
    readonly name: string | undefined,
    /** The line that created the node, such as `train.js:12`. */
    readonly line: string,
  ) {}

  /** The description of the node in messages. */
  get told(): string {
    return told(this.op, this.line);
  }
}

/**
 * A function of a graph: a handle to pass to the ops that run it. A function sees only the operands that the op passes.
 *
 * `nodes` is the function's own graph, with its own ids. `outputs` are in the order of the results.
 */
export class GraphFunction {
  constructor(
    readonly graph: Graph,
    /** The index of the function in the graph. */
    readonly index: number,
    readonly nodes: Graph,
    readonly outputs: readonly Node[],
    readonly name: string | undefined,
  ) {}

  /** The inputs of the function, in the order of the operands. */
  get parameters(): readonly Node[] {
    return [...this.nodes].filter((node) => node.op === "input");
  }
}

/** A callback that creates the nodes of a function and returns its outputs. */
export type FunctionBody = (graph: Graph) => Node | readonly Node[];
/** A node: a handle, a name, or an id. */
export type NodeLike = Node | string | number;

/**
 * A computation graph. `opset` is the version of the op set. If you omit it, the client sends the lowest opset that has
 * everything the graph uses. `outer` is the enclosing graph if this is the graph of a function.
 */
export class Graph extends Ops implements Iterable<Node> {
  readonly #nodes: Node[] = [];
  readonly #functions: GraphFunction[] = [];

  constructor(
    readonly opset?: number,
    readonly outer?: Graph,
  ) {
    super();
  }

  /** The functions that ops of this graph can run. */
  get functions(): readonly GraphFunction[] {
    return this.#functions;
  }

  /** The number of nodes. */
  get size(): number {
    return this.#nodes.length;
  }

  [Symbol.iterator](): Iterator<Node> {
    return this.#nodes[Symbol.iterator]();
  }

  /**
   * Adds a function that ops of this graph can run. `body` receives the function's own graph, whose inputs are the
   * parameters, and returns one node or several: the outputs. It cannot use nodes of other graphs. Functions that it
   * defines itself are added before it.
   *
   * Throws InputError if an output is not a node of the function.
   */
  function(body: FunctionBody, name?: string): GraphFunction {
    if (this.outer) return this.outer.function(body, name);
    const inner = new Graph(undefined, this);
    const written = body(inner);
    const outputs = written instanceof Node ? [written] : written;
    const stray = outputs.findIndex((output) => !(output instanceof Node && output.graph === inner));
    if (stray >= 0) throw new InputError(`output ${stray} is not a node of the function`);
    return this.#appended(inner, outputs, name);
  }

  #appended(nodes: Graph, outputs: readonly Node[], name: string | undefined): GraphFunction {
    const made = new GraphFunction(this, this.#functions.length, nodes, [...outputs], name);
    this.#functions.push(made);
    return made;
  }

  /**
   * Appends any op by name, including ops that are newer than this client. Attributes have their API names.
   *
   * Throws InputError for an operand of another graph and for an invalid attribute.
   */
  op(op: string, operands: readonly Node[] = [], attrs: StatedAttributes = {}, name?: string): Node {
    return this.append(op, operands, attrs, name);
  }

  protected override append(
    op: string,
    operands: readonly (Node | undefined)[],
    attrs: StatedAttributes,
    name?: string,
    line = callersLine(),
  ): Node {
    const ids = withoutTheLast(operands).map((operand, place) => this.#own(operand, place, op, line));
    const sent = Object.entries(attrs).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, this.#stated(value, key, op, line)] as const],
    );
    const node = new Node(this, this.size, op, ids, Object.fromEntries(sent), name, line);
    this.#nodes.push(node);
    return node;
  }

  #own(operand: unknown, place: number, op: string, line: string): number {
    if (!(operand instanceof Node)) {
      const got = operand === undefined ? "nothing" : nameOf(operand);
      throw new InputError(`${told(op, line)}, operand ${place}: expected a node, got ${got}`);
    }
    if (operand.graph !== this) {
      throw new InputError(`${told(op, line)}, operand ${place}: ${operand.told} belongs to another graph`);
    }
    return operand.id;
  }

  #stated(value: Json | TensorLike | GraphFunction, key: string, op: string, line: string): Json | Tensor {
    if (!(value instanceof GraphFunction)) return attribute(value, key, op, line);
    if (value.graph !== (this.outer ?? this)) {
      throw new InputError(`${told(op, line)}, attribute ${key}: the function belongs to another graph`);
    }
    return value.index;
  }

  /** Returns a node of this graph. Throws InputError if there is no such node, or several with this name. */
  find(node: NodeLike): Node {
    if (node instanceof Node) {
      if (node.graph !== this) throw new InputError(`${node.told} belongs to another graph`);
      return node;
    }
    if (typeof node === "string") return this.#named(node);
    const found = this.#nodes[node];
    if (!found) throw new InputError(`the graph has no node ${node}; its node count is ${this.size}`);
    return found;
  }

  #named(name: string): Node {
    const [found, ...others] = this.#nodes.filter((node) => node.name === name);
    if (!found) throw new InputError(`the graph has no node named '${name}'`);
    if (others[0]) {
      throw new InputError(
        `${others.length + 1} nodes are named '${name}', including ${found.told} and ${others[0].told}`,
      );
    }
    return found;
  }

  /**
   * Reads the graph of a response. It can have ops that the client does not know. `beside` are the tensors sent beside
   * the JSON, by their position.
   */
  static fromWire(stated: Json | undefined, beside: ReadonlyMap<string, Tensor> = new Map()): Graph {
    return Graph.#received(stated as unknown as WireGraph, beside, "");
  }

  static #received(stated: WireGraph, beside: ReadonlyMap<string, Tensor>, within: string, outer?: Graph): Graph {
    const { opset, functions = [], nodes } = stated;
    const graph = new Graph(opset, outer);
    for (const [index, each] of functions.entries()) {
      const inner = Graph.#received(each, beside, `functions.${index}.`, graph);
      graph.#appended(inner, each.outputs.map((output) => inner.find(output)), each.name);
    }
    for (const [id, { op, operands = [], attrs = {}, name }] of nodes.entries()) {
      const received = Object.entries(attrs).map(([key, value]) => [key, isTensor(value) ? fromJson(value) : value]);
      const constant = beside.get(`${within}constants.${id}`);
      const all = { ...Object.fromEntries(received), ...(constant && { value: constant }) } as Attributes;
      graph.append(op, operands.map((operand) => graph.find(operand)), all, name, "the server");
    }
    return graph;
  }
}

interface WireGraph {
  readonly opset?: number;
  readonly functions?: readonly WireFunction[];
  readonly nodes: readonly WireNode[];
}

interface WireFunction extends WireGraph {
  readonly outputs: readonly number[];
  readonly name?: string;
}

interface WireNode {
  readonly op: string;
  readonly operands?: readonly number[];
  readonly attrs?: JsonObject;
  readonly name?: string;
}

/** Drops absent operands at the end of the list. An absent operand before a given one stays. */
function withoutTheLast(operands: readonly (Node | undefined)[]): readonly (Node | undefined)[] {
  const behind = [...operands].reverse().findIndex((operand) => operand !== undefined);
  return behind < 0 ? [] : operands.slice(0, operands.length - behind);
}

/** Converts an attribute to JSON. Tensors stay objects. */
function attribute(value: Json | TensorLike, name: string, op: string, line: string): Json | Tensor {
  try {
    if (value instanceof Tensor) return value;
    if (TENSOR_ATTRIBUTES.has(name)) return tensor(value as TensorLike);
    return plain(value, WHOLE_ATTRIBUTES.has(name));
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new InputError(`${told(op, line)}, attribute ${name}: ${error.message}`);
  }
}

function plain(value: unknown, isWhole: boolean): Json {
  if (typeof value === "number") return numberOf(value, isWhole);
  if (Array.isArray(value)) return value.map((each) => plain(each, isWhole));
  if (["bigint", "boolean", "string"].includes(typeof value) || nameOf(value) === "Object") return value as Json;
  throw new InputError(`${nameOf(value)} is not a valid attribute value`);
}

/** Converts −0 to 0 for integer attributes: `-i` is −0 if i is 0, and integers have no sign of zero. */
function numberOf(value: number, isWhole: boolean): number {
  if (!Number.isFinite(value)) throw new InputError(`JSON cannot represent ${value}`);
  if (!isWhole) return value;
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new InputError(`${value} is not a safe integer; pass a bigint`);
  }
  return value + 0;
}

function isTensor(value: Json): boolean {
  return typeof value === "object" && value !== null && "dtype" in value && "shape" in value;
}

function told(op: string, line: string): string {
  return line ? `${op} (${line})` : op;
}
