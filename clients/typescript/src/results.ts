/** Results by node. */

import { InputError } from "./errors.js";
import type { Graph, Node, NodeLike } from "./graph.js";

/**
 * Results in the order of the request. Look them up by handle, name or id of their node, or by position.
 *
 * Look up results that belong to two nodes, such as the blocks of a Hessian, by both.
 */
export class Results<T> implements Iterable<T> {
  readonly #graph: Graph;
  readonly #nodes: readonly (readonly number[])[];
  readonly #results: readonly T[];

  constructor(graph: Graph, nodes: readonly (readonly number[])[], results: readonly T[]) {
    this.#graph = graph;
    this.#nodes = nodes;
    this.#results = results;
  }

  get length(): number {
    return this.#results.length;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#results[Symbol.iterator]();
  }

  /** Returns the result of a node. Throws InputError if the node has no result or is not in the graph. */
  get(...key: readonly NodeLike[]): T {
    const wanted = key.map((like) => this.#graph.find(like));
    const sought = wanted.map((node) => node.id).join();
    const place = this.#nodes.findIndex((ids) => ids.join() === sought);
    if (place < 0) {
      throw new InputError(`the answer has no result for ${wanted.map((node) => node.told).join(", ")}`);
    }
    return this.#results[place] as T;
  }

  /** Returns the result at a position; negative positions count from the end. Throws InputError if there is none. */
  at(place: number): T {
    if (!(place >= -this.length && place < this.length)) {
      throw new InputError(`the answer has no result ${place}; its result count is ${this.length}`);
    }
    return this.#results.at(place) as T;
  }

  /** Returns the only result. Throws InputError if there is not exactly one. */
  only(): T {
    if (this.length !== 1) throw new InputError(`expected exactly one result, but the answer has ${this.length}`);
    return this.at(0);
  }

  /** Iterates over the nodes with their results, in order. */
  *entries(): Generator<[readonly Node[], T]> {
    for (const [place, ids] of this.#nodes.entries()) {
      yield [ids.map((id) => this.#graph.find(id)), this.#results[place] as T];
    }
  }
}
