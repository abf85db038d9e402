/** Options of calls. */

import type { Json } from "./json.js";
import type { NodeLike } from "./graph.js";
import type { DtypeName, Optional } from "./generated/ops.js";
import type { Resident, Rows, Store } from "./resident.js";
import type { Shape, Tensor, TensorLike } from "./tensor.js";
import type { Form } from "./tensor-json.js";

/** Values by node: a Map, pairs, or an object by node name. */
export type ByNode<T> = Iterable<readonly [NodeLike, T]> | { readonly [name: string]: T };
/** Tensors, handles of resident tensors, or rows of these, by node. */
export type Tensors = ByNode<TensorLike | Resident | Rows>;
/** The dtypes and shapes of leaves, or tensors that have both, by node. */
export type Types = ByNode<readonly [DtypeName, Shape] | Tensor>;

/** Options of all requests. `timeoutMs`, for all attempts together, defaults to the client's; null means no limit. */
export type RequestOptions = Optional<{ signal: AbortSignal; timeoutMs: number | null }>;

/**
 * Options of every call on a graph.
 *
 * `form` is the encoding of tensors. By default, small ones are sent as base64 and large ones as safetensors.
 * `idempotency` defaults to the client's setting. `extra` has fields of the request that are newer than this client.
 */
export type CallOptions = RequestOptions &
  Optional<{ form: Form; idempotency: boolean; extra: { readonly [name: string]: Json } }>;

/**
 * The precision of float32 matrix products and convolutions on a GPU, most exact first. CPUs always compute in float32.
 */
export type Precision = "float32" | "tf32x3" | "tf32" | "bfloat16";

type Computing = Optional<{ memoryBudget: number; precision: Precision }>;

/** Options of calls that return values. */
export type RunOptions = CallOptions &
  Computing &
  Optional<{ outputs: readonly NodeLike[]; diagnose: boolean; store: ByNode<string | Store> }>;

type OfWrt = Optional<{ of: NodeLike; wrt: readonly NodeLike[] }>;

/** Options of `gradients`. By default, the last node is differentiated with respect to every parameter. */
export type GradientsOptions = RunOptions & OfWrt & Optional<{ cotangent: TensorLike }>;
/** Options of `vjp`: a cotangent for each output. */
export type VjpOptions = RunOptions & Optional<{ cotangents: Tensors; wrt: readonly NodeLike[]; batched: boolean }>;
/** Options of `jvp`: tangents of leaves. Leaves without a tangent are held constant. */
export type JvpOptions = RunOptions & Optional<{ tangents: Tensors }>;
/** Options of `jacobian`. */
export type JacobianOptions = RunOptions & Optional<{ wrt: readonly NodeLike[] }>;
/** The layout of a Hessian: a block for each pair of nodes, or one matrix over all nodes of `wrt`. */
export type HessianLayout = "blocks" | "matrix";
/** Options of `hessian`. For the layout "matrix", the nodes of `wrt` must have the same dtype. */
export type HessianOptions = RunOptions & OfWrt & Optional<{ layout: HessianLayout }>;
/** Options of `hvp`: a vector for each node of `wrt`. */
export type HvpOptions = RunOptions & OfWrt & Optional<{ vectors: Tensors }>;
/** How the results of many examples are combined: not at all, summed, or averaged. */
export type Reduction = "none" | "sum" | "mean";

type Summing = Optional<{ reduce: Reduction; block: number }>;

/**
 * Options of `batch`. `mapped` are the leaves whose feeds have a leading axis. With `reduce`, the results are summed or
 * averaged over the examples, `block` examples at a time. By default, the server chooses the block size.
 */
export type BatchOptions = RunOptions & OfWrt & Summing & Optional<{ mapped: readonly NodeLike[] }>;
/** Options of `check`. */
export type CheckOptions = CallOptions & Computing & OfWrt & Optional<{ directions: number; tolerance: number }>;
/** Options of `differentiate`. */
export type DifferentiateOptions = CallOptions & OfWrt;
/** Options of `plan`: the name of the call to plan, and the options of that call. */
export type PlanOptions = DifferentiateOptions &
  Computing &
  Summing &
  Optional<{ call: string; mapped: readonly NodeLike[]; outputs: readonly NodeLike[] }>;

/** All options of calls. */
export type Asked = GradientsOptions &
  VjpOptions &
  JvpOptions &
  HvpOptions &
  HessianOptions &
  BatchOptions &
  CheckOptions &
  PlanOptions &
  Optional<{ feeds: Tensors; types: Types }>;
