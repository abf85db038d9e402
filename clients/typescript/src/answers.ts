/** What comes back: tensors of an answer by handle, by name, or in order. */

import { Graph, type Node, type NodeLike } from "./graph.js";
import type { Json, JsonObject } from "./json.js";
import { list, maybe, number, objects, promised, string, truth } from "./reading.js";
import { Resident } from "./resident.js";
import type { Parts, Response } from "./response.js";
import { Results } from "./results.js";
import { named } from "./safetensors.js";
import type { Tensor } from "./tensor.js";
import { fromJson } from "./tensor-json.js";

/** What came, by its names on the wire, tensors as tensors. */
export type AnswerFields = { readonly [name: string]: AnswerField };
export type AnswerField = Json | Tensor | readonly AnswerField[] | AnswerFields;
/** A kind of answer, as it is made of what came. */
export type AnswerType<A> = new (parts: Parts, graph: Graph) => A;

/** What in the entries of a field names the nodes that their tensors belong to. */
const NODES: { readonly [field: string]: readonly string[] } = {
  values: ["node"],
  gradients: ["node"],
  tangents: ["node"],
  hvp: ["node"],
  jacobian: ["of", "wrt"],
  hessian: ["row", "column"],
};


/** The answer that came. Throws MalformedAnswerError. */
export function answerOf<A>(Kind: AnswerType<A>, response: Response, graph: Graph): A {
  return promised(() => new Kind(response.parts(), graph));
}

/** An answer to a call on a graph. */
export abstract class Answer {
  readonly #graph: Graph;
  readonly #beside: ReadonlyMap<string, Tensor>;
  readonly #fields: { [name: string]: AnswerField };

  constructor({ fields, beside }: Parts, graph: Graph) {
    this.#fields = { ...fields };
    this.#beside = beside;
    this.#graph = graph;
  }

  /** All that came, by its names on the wire, tensors as tensors. */
  get fields(): AnswerFields {
    return this.#fields;
  }

  /** The receipt: what running it took, and on what. */
  get stats(): AnswerField {
    return this.#fields["stats"] ?? {};
  }

  /** The tensors of a field, which stand in the answer or beside it. */
  protected tensors(name: string): Results<Tensor> {
    const entries = objects(this.#fields as JsonObject, name);
    const nodes = entries.map((entry) => (NODES[name] ?? []).map((member) => number(entry, member)));
    const tensors = entries.map((entry, i) => this.#tensor(entry, [name, ...(nodes[i] ?? [])].join(".")));
    this.#fields[name] = entries.map((entry, i) => ({ ...entry, tensor: tensors[i] as Tensor }));
    return new Results(this.#graph, nodes, tensors);
  }

  #tensor(entry: JsonObject, place: string): Tensor {
    return "tensor" in entry ? fromJson(entry["tensor"]) : named(this.#beside, place);
  }

  /** What is read in the entries of a field, each of which belongs to a node. */
  protected byNode<T>(name: string, read: (entry: JsonObject) => T): Results<T> {
    const entries = name in this.#fields ? objects(this.#fields as JsonObject, name) : [];
    return new Results(this.#graph, entries.map((entry) => [number(entry, "node")]), entries.map(read));
  }

  /** Nodes that a field lists; none where it is not there. */
  protected nodes(name: string): readonly Node[] {
    return (maybe(list, this.#fields as JsonObject, name) ?? []).map((id) => this.find(id as number));
  }

  protected find(node: NodeLike): Node {
    return this.#graph.find(node);
  }
}

/** Values of nodes. */
export class Values extends Answer {
  /** By output. */
  readonly values = this.tensors("values");
  /** By node: the handles of what the call had the server keep. */
  readonly stored = this.byNode("stored", Resident.fromWire);

  /** The value of the only output. Throws InputError where there are several. */
  get value(): Tensor {
    return this.values.only();
  }
}

/** Values and gradients. */
export class Gradients extends Values {
  /** By node of `wrt`, each of its node's shape; where that is batched, behind the leading axis. */
  readonly gradients = this.tensors("gradients");
  /** The nodes of `wrt` that have no path to what was differentiated; their gradients are zeros. */
  readonly disconnected = this.nodes("disconnected");
}

/**
 * Values and gradients with a leading axis; values alone, where there is nothing to differentiate. In a graph of
 * opset 2 whose `of` has several elements, gradients are Jacobians: the shape of `of`, then the node's.
 */
export class Batched extends Gradients {
  constructor({ fields, beside }: Parts, graph: Graph) {
    super({ fields: { gradients: [], ...fields }, beside }, graph);
  }
}

/** Values, and their derivatives along the tangents of leaves. */
export class Tangents extends Values {
  /** By output. */
  readonly tangents = this.tensors("tangents");
}

/** Values and Jacobians. */
export class Jacobian extends Values {
  /** By output and node of `wrt`: of the shape of the one, then that of the other. */
  readonly jacobian = this.tensors("jacobian");
}

/** Values, gradients, and the Hessian times vectors. */
export class Hvp extends Gradients {
  /** By node of `wrt`. */
  readonly hvp = this.tensors("hvp");
}

/** Values, gradients and Hessians. */
export class Hessian extends Gradients {
  /** By pairs of nodes of `wrt`: of the shape of the one, then that of the other. */
  readonly hessian = this.tensors("hessian");
}

/** How far gradients are from central differences. */
export class Certificate extends Answer {
  /** Whether every node was compared, and within the tolerance. */
  readonly passed = truth(this.fields as JsonObject, "passed");
  /** Relative errors, by the nodes that were compared. */
  readonly errors = this.byNode("errors", (entry) => number(entry, "relative_error"));
  /** Why the others were not compared. */
  readonly uncertified = this.byNode("uncertified", (entry) => string(entry, "reason"));
}

/** What a call would take, in `fields` by its names on the wire. */
export class Forecast extends Answer {
  /** Whether the call would be within the server's limits. */
  readonly admitted = truth(this.fields as JsonObject, "admitted");
}

/** The gradient as a graph, whose first nodes are those that were sent. */
export class Derivative extends Answer {
  readonly graph: Graph;
  /** By node of `wrt` as it was sent: where its gradient is computed. */
  readonly gradients: Results<Node>;
  /** The nodes of `wrt`, as they were sent, that have no path to what was differentiated. */
  readonly disconnected = this.nodes("disconnected");

  constructor(parts: Parts, sent: Graph) {
    super(parts, sent);
    this.graph = Graph.fromWire(parts.fields["graph"], parts.beside);
    this.gradients = this.byNode("gradients", (entry) => this.graph.find(number(entry, "gradient_node")));
  }

  /** What a node of the graph that was sent is in this one. */
  inGradient(node: NodeLike): Node {
    return this.graph.find(this.find(node).id);
  }
}
