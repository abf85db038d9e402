/** Results of calls: tensors by node, by name, or in order. */

import { Graph, type Node, type NodeLike } from "./graph.js";
import type { Json, JsonObject } from "./json.js";
import { list, maybe, number, object, objects, promised, string, truth, whole } from "./reading.js";
import { Resident } from "./resident.js";
import type { Parts, Response } from "./response.js";
import { Results } from "./results.js";
import { named } from "./safetensors.js";
import type { Tensor } from "./tensor.js";
import { fromJson } from "./tensor-json.js";

/** The members of a response by their API names, with tensors as `Tensor` objects. */
export type AnswerFields = { readonly [name: string]: AnswerField };
export type AnswerField = Json | Tensor | readonly AnswerField[] | AnswerFields;
/** A class of results, constructed from the members of a response. */
export type AnswerType<A> = new (parts: Parts, graph: Graph) => A;

/** The members of an entry that name the nodes of its tensor, by field. */
const NODES: { readonly [field: string]: readonly string[] } = {
  values: ["node"],
  gradients: ["node"],
  tangents: ["node"],
  hvp: ["node"],
  jacobian: ["of", "wrt"],
  hessian: ["row", "column"],
};


/** Reads a response. Throws MalformedAnswerError. */
export function answerOf<A>(Kind: AnswerType<A>, response: Response, graph: Graph): A {
  return promised(() => new Kind(response.parts(), graph));
}

/** The result of a call on a graph. */
export abstract class Answer {
  readonly #graph: Graph;
  readonly #beside: ReadonlyMap<string, Tensor>;
  readonly #fields: { [name: string]: AnswerField };

  constructor({ fields, beside }: Parts, graph: Graph) {
    this.#fields = { ...fields };
    this.#beside = beside;
    this.#graph = graph;
  }

  /** All members of the response by their API names, with tensors as `Tensor` objects. */
  get fields(): AnswerFields {
    return this.#fields;
  }

  /** The run statistics: time, memory and hardware. */
  get stats(): AnswerField {
    return this.#fields["stats"] ?? {};
  }

  /** Returns the tensors of a field, which are in the JSON or in the safetensors file. */
  protected tensors(name: string): Results<Tensor> {
    const entries = objects(this.#fields as JsonObject, name);
    const nodes = entries.map((entry) => (NODES[name] ?? []).map((member) => number(entry, member)));
    const tensors = entries.map((entry, i) => this.#tensor(entry, [name, ...(nodes[i] ?? [])].join(".")));
    this.#fields[name] = entries.map((entry, i) => ({ ...entry, tensor: tensors[i] as Tensor }));
    return new Results(this.#graph, nodes, tensors);
  }

  /** Reads the matrix of a Hessian, if there is one. */
  protected hessianMatrix(name: string): HessianMatrix | undefined {
    const stated = maybe((from, member) => object(from[member], member), this.#fields as JsonObject, name);
    if (!stated) return undefined;
    const entries = objects(stated, "offsets");
    const nodes = entries.map((entry) => [whole(entry, "node")]);
    const places = entries.map((entry) => ({ offset: whole(entry, "offset"), size: whole(entry, "size") }));
    const tensor = this.#tensor(stated, name);
    this.#fields[name] = { ...stated, tensor };
    return { tensor, offsets: new Results(this.#graph, nodes, places) };
  }

  #tensor(entry: JsonObject, place: string): Tensor {
    return "tensor" in entry ? fromJson(entry["tensor"]) : named(this.#beside, place);
  }

  /** Reads the entries of a field, each of which belongs to a node. */
  protected byNode<T>(name: string, read: (entry: JsonObject) => T): Results<T> {
    const entries = name in this.#fields ? objects(this.#fields as JsonObject, name) : [];
    return new Results(this.#graph, entries.map((entry) => [number(entry, "node")]), entries.map(read));
  }

  /** Returns the nodes that a field lists, or no nodes if the field is absent. */
  protected nodes(name: string): readonly Node[] {
    return (maybe(list, this.#fields as JsonObject, name) ?? []).map((id) => this.find(id as number));
  }

  protected find(node: NodeLike): Node {
    return this.#graph.find(node);
  }
}

/** Values of nodes. */
export class Values extends Answer {
  /** The results by output. */
  readonly values = this.tensors("values");
  /** The handles of the tensors that the call stored, by node. */
  readonly stored = this.byNode("stored", Resident.fromWire);

  /** The value of the only output. Throws InputError if there are several outputs. */
  get value(): Tensor {
    return this.values.only();
  }
}

/** Values and gradients. */
export class Gradients extends Values {
  /** The gradients by node of `wrt`, each with the shape of its node. Batched gradients have a leading axis. */
  readonly gradients = this.tensors("gradients");
  /** The nodes of `wrt` that have no path to the differentiated node. Their gradients are zero. */
  readonly disconnected = this.nodes("disconnected");
}

/**
 * Values and gradients with a leading axis. There are only values if there is nothing to differentiate. In a graph of
 * opset 2 whose `of` has several elements, gradients are Jacobians: the shape of `of` followed by the shape of the
 * node.
 */
export class Batched extends Gradients {
  constructor({ fields, beside }: Parts, graph: Graph) {
    super({ fields: { gradients: [], ...fields }, beside }, graph);
  }
}

/** Values, and their derivatives along the tangents of leaves. */
export class Tangents extends Values {
  /** The results by output. */
  readonly tangents = this.tensors("tangents");
}

/** Values and Jacobians. */
export class Jacobian extends Values {
  /** The blocks by output and node of `wrt`: the shape of the output followed by the shape of the node. */
  readonly jacobian = this.tensors("jacobian");
}

/** Values, gradients and Hessian-vector products. */
export class Hvp extends Gradients {
  /** The products by node of `wrt`. */
  readonly hvp = this.tensors("hvp");
}

/** The rows and columns of a node in a matrix: `size` of them (the number of its elements), starting at `offset`. */
export interface NodeOffset {
  readonly offset: number;
  readonly size: number;
}

/**
 * A Hessian as one square matrix over the elements of all nodes of `wrt`. Nodes are in the order of `wrt`, the elements
 * of a node in row-major order.
 */
export interface HessianMatrix {
  readonly tensor: Tensor;
  /** The place of each node. */
  readonly offsets: Results<NodeOffset>;
}

/** Values, gradients and Hessians. */
export class Hessian extends Gradients {
  /**
   * The blocks by pairs of nodes of `wrt`: the shape of the row's node followed by the shape of the column's. There are
   * none with the layout "matrix".
   */
  readonly hessian = this.tensors("hessian");
  /** All blocks as one matrix; undefined unless the call had the layout "matrix". */
  readonly matrix = this.hessianMatrix("matrix");
}

/** The result of a gradient check: how far gradients are from central differences. */
export class Certificate extends Answer {
  /** Whether every node was compared and is within the tolerance. */
  readonly passed = truth(this.fields as JsonObject, "passed");
  /** Relative errors, by node, of the nodes that were compared. */
  readonly errors = this.byNode("errors", (entry) => number(entry, "relative_error"));
  /** Reasons, by node, why the other nodes were not compared. */
  readonly uncertified = this.byNode("uncertified", (entry) => string(entry, "reason"));
}

/** The dry run of a call: its estimates, in `fields` by their API names. */
export class Forecast extends Answer {
  /** Whether the call is within the server's limits. */
  readonly admitted = truth(this.fields as JsonObject, "admitted");
}

/** The gradient as a graph. Its first nodes are those of the graph that was sent. */
export class Derivative extends Answer {
  readonly graph: Graph;
  /** The nodes that compute the gradients, by node of `wrt` in the graph that was sent. */
  readonly gradients: Results<Node>;
  /** The nodes of `wrt`, in the graph that was sent, that have no path to the differentiated node. */
  readonly disconnected = this.nodes("disconnected");

  constructor(parts: Parts, sent: Graph) {
    super(parts, sent);
    this.graph = Graph.fromWire(parts.fields["graph"], parts.beside);
    this.gradients = this.byNode("gradients", (entry) => this.graph.find(number(entry, "gradient_node")));
  }

  /** Returns the node of this graph that corresponds to a node of the graph that was sent. */
  inGradient(node: NodeLike): Node {
    return this.graph.find(this.find(node).id);
  }
}
