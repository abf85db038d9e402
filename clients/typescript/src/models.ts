/** Models: registered graphs with named inputs and outputs, and with their weights on the server. */

import { type Dtype } from "./dtypes.js";
import { type JsonObject } from "./json.js";
import { maybe, number, numbers, objects, string } from "./reading.js";

/** A named input or output of a model: its node, dtype and shape. An extent of -1 is free. */
export interface ModelValue {
  readonly name: string;
  readonly node: number;
  readonly dtype: string;
  readonly shape: readonly number[];
}

/**
 * A leaf that is bound to a resident tensor, with the dtype and shape that the tensor must have. Each call reads the
 * current version.
 */
export interface BoundLeaf {
  readonly node: number;
  readonly tensorName: string;
  readonly dtype: string;
  readonly shape: readonly number[];
}

/**
 * One version of a model on the server. `etag` identifies the version, for conditions. Nodes are ids in the model's
 * graph.
 */
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
 * The definition of a model: names for leaves and outputs of a registered graph, and tensors for all other leaves.
 *
 * Nodes are ids. The server determines the types of outputs and bound leaves. `description` is for people.
 */
export interface ModelDefinition {
  readonly graphId: string;
  readonly inputs: readonly (Omit<ModelValue, "dtype"> & { readonly dtype: Dtype | (string & {}) })[];
  readonly outputs: readonly Pick<ModelValue, "name" | "node">[];
  readonly bound?: readonly Pick<BoundLeaf, "node" | "tensorName">[] | undefined;
  readonly description?: string | undefined;
}

/** Returns a definition in its JSON form. */
export function definitionToWire({ graphId, inputs, outputs, bound = [], description }: ModelDefinition): object {
  return {
    graph_id: graphId,
    inputs: inputs.map(({ name, node, dtype, shape }) => ({ name, node, dtype, shape })),
    outputs: outputs.map(({ name, node }) => ({ name, node })),
    bound: bound.map(({ node, tensorName }) => ({ node, tensor_id: tensorName })),
    description: description || undefined,
  };
}

/** Reads the metadata of a model from a response. Throws MalformedAnswerError. */
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
