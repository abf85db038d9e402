/**
 * The TypeScript client of gradserve: build a computation graph, send it with its tensors, get gradients back.
 *
 *     const graph = new Graph();
 *     const x = graph.input("x");
 *     const w = graph.parameter("w");
 *     graph.sum(graph.tanh(graph.mul(x, w)));
 *     const client = new Client("http://127.0.0.1:8000");
 *     const answer = await client.gradients(graph, { x: [1, 2], w: [0.5, 0.5] });
 *     console.log(answer.value.item(), answer.gradients.get(w).data);
 */

export * from "./answers.js";
export { Client, type ClientOptions, type GraphLike } from "./client.js";
export { type ComplexDtype, type Dtype, type Elements, type TypedArray } from "./dtypes.js";
export * from "./errors.js";
export {
  type Attributes,
  type FunctionBody,
  Graph,
  GraphFunction,
  Node,
  type NodeLike,
  type StatedAttributes,
} from "./graph.js";
export type { Json, JsonObject } from "./json.js";
export type { BoundLeaf, Model, ModelDefinition, ModelValue } from "./models.js";
export type { DtypeName, Float, Int, Ints } from "./generated/ops.js";
export * from "./options.js";
export { type GraphSummary, RegisteredGraph } from "./registered.js";
export type { ModelVersion, Put, PutModel, Version } from "./requests.js";
export { Resident, type ResidentTensor, Rows, type Store } from "./resident.js";
export { Results } from "./results.js";
export { type Surroundings } from "./retries.js";
export { type Complex, type Nested, type Scalar, type Shape, Tensor, type TensorLike, tensor } from "./tensor.js";
export type { Form } from "./tensor-json.js";
export type { Fetch } from "./transport.js";
