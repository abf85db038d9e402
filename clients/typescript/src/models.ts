/** Models: registered graphs with names for what goes in and comes out, and with their weights at the server. */

import { type Dtype } from "./dtypes.js";
import { type JsonObject } from "./json.js";
import { maybe, number, numbers, objects, string } from "./reading.js";

/** What goes in or comes out of a model under a name: its node, dtype and shape, where -1 is a free extent. */
export interface ModelValue {
  readonly name: string;
  readonly node: number;
  readonly dtype: string;
  readonly shape: readonly number[];
}

/** A leaf whose value is a resident tensor, read at each call as it is then, of the dtype and shape that it has to have. */
export interface BoundLeaf {
  readonly node: number;
  readonly tensorName: string;
  readonly dtype: string;
  readonly shape: readonly number[];
}

/** A version of a model that the server keeps: `etag` says which, for conditions. Nodes are ids, as in its graph. */
export interface Model {
  readonly name: string;
  readonly etag: string;
  readonly graphId: string;
  readonly description: string;
  readonly inputs: readonly ModelValue[];
  readonly outputs: readonly ModelValue[];
  readonly bound: readonly BoundLeaf[];
}

/**
 * What a model is to be: names for leaves and outputs of a registered graph, and tensors for all other leaves.
 *
 * Nodes are ids. The types of outputs and of what is bound are found by the server. `description` is for people.
 */
export interface ModelDefinition {
  readonly graphId: string;
  readonly inputs: readonly (Omit<ModelValue, "dtype"> & { readonly dtype: Dtype | (string & {}) })[];
  readonly outputs: readonly Pick<ModelValue, "name" | "node">[];
  readonly bound?: readonly Pick<BoundLeaf, "node" | "tensorName">[] | undefined;
  readonly description?: string | undefined;
}

/** A model as it is put. */
export function definitionToWire({ graphId, inputs, outputs, bound = [], description }: ModelDefinition): object {
  return {
    graph_id: graphId,
    inputs: inputs.map(({ name, node, dtype, shape }) => ({ name, node, dtype, shape })),
    outputs: outputs.map(({ name, node }) => ({ name, node })),
    bound: bound.map(({ node, tensorName }) => ({ node, tensor_id: tensorName })),
    description: description || undefined,
  };
}

/** What an answer says of a model. Throws MalformedAnswerError. */
export function modelOf(stated: JsonObject): Model {
  return {
    name: string(stated, "name"),
    etag: string(stated, "etag"),
    graphId: string(stated, "graph_id"),
    description: maybe(string, stated, "description") ?? "",
    inputs: objects(stated, "inputs").map(valueOf),
    outputs: objects(stated, "outputs").map(valueOf),
    bound: objects(stated, "bound").map((leaf) => ({ tensorName: string(leaf, "tensor_id"), ...typeOf(leaf) })),
  };
}

function valueOf(stated: JsonObject): ModelValue {
  return { name: string(stated, "name"), ...typeOf(stated) };
}

function typeOf(stated: JsonObject): { node: number; dtype: string; shape: readonly number[] } {
  return { node: number(stated, "node"), dtype: string(stated, "dtype"), shape: numbers(stated, "shape") };
}
