/** What calls are asked beside graph and feeds. */

import type { Json } from "./json.js";
import type { NodeLike } from "./graph.js";
import type { DtypeName, Optional } from "./generated/ops.js";
import type { Resident, Rows, Store } from "./resident.js";
import type { Shape, Tensor, TensorLike } from "./tensor.js";
import type { Form } from "./tensor-json.js";

/** Something for each of some nodes: a Map, pairs, or an object by names of nodes. */
export type ByNode<T> = Iterable<readonly [NodeLike, T]> | { readonly [name: string]: T };
/** Tensors for nodes, or handles of some that the server keeps, or rows of these. */
export type Tensors = ByNode<TensorLike | Resident | Rows>;
/** Dtype and shape of what leaves would be fed, or tensors that have both. */
export type Types = ByNode<readonly [DtypeName, Shape] | Tensor>;

/** What all requests take. `timeoutMs`, for all tries together, is the client's unless given here; null: no end. */
export type RequestOptions = Optional<{ signal: AbortSignal; timeoutMs: number | null }>;

/**
 * What every call on a graph takes.
 *
 * `form` is how tensors travel; by default small ones as base64 and large ones as safetensors. `idempotency` is the
 * client's unless given here. `extra` has fields of the request that are newer than this client.
 */
export type CallOptions = RequestOptions &
  Optional<{ form: Form; idempotency: boolean; extra: { readonly [name: string]: Json } }>;

/** How products and convolutions may read float32 on a GPU, the most exact first; a processor computes float32. */
export type Precision = "float32" | "tf32x3" | "tf32" | "bfloat16";

type Computing = Optional<{ memoryBudget: number; precision: Precision }>;

/** What calls take that give values back. */
export type RunOptions = CallOptions &
  Computing &
  Optional<{ outputs: readonly NodeLike[]; diagnose: boolean; store: ByNode<string | Store> }>;

type OfWrt = Optional<{ of: NodeLike; wrt: readonly NodeLike[] }>;

/** What `gradients` takes: by default the last node is differentiated, by every parameter. */
export type GradientsOptions = RunOptions & OfWrt & Optional<{ cotangent: TensorLike }>;
/** What `vjp` takes: a cotangent for each output. */
export type VjpOptions = RunOptions & Optional<{ cotangents: Tensors; wrt: readonly NodeLike[]; batched: boolean }>;
/** What `jvp` takes: tangents of leaves; others stay. */
export type JvpOptions = RunOptions & Optional<{ tangents: Tensors }>;
/** What `jacobian` takes. */
export type JacobianOptions = RunOptions & Optional<{ wrt: readonly NodeLike[] }>;
/** What `hessian` takes. */
export type HessianOptions = RunOptions & OfWrt;
/** What `hvp` takes: a vector for each node of `wrt`. */
export type HvpOptions = HessianOptions & Optional<{ vectors: Tensors }>;
/** What is made of many examples: nothing, their sum or their mean. */
export type Reduction = "none" | "sum" | "mean";

type Summing = Optional<{ reduce: Reduction; block: number }>;

/**
 * What `batch` takes: the leaves whose feeds have a leading axis. With `reduce`, examples are added up, `block` of them
 * at a time; by default as many as the server finds right.
 */
export type BatchOptions = HessianOptions & Summing & Optional<{ mapped: readonly NodeLike[] }>;
/** What `check` takes. */
export type CheckOptions = CallOptions & Computing & OfWrt & Optional<{ directions: number; tolerance: number }>;
/** What `differentiate` takes. */
export type DifferentiateOptions = CallOptions & OfWrt;
/** What `plan` takes: the call that is to be planned, and what that would take. */
export type PlanOptions = DifferentiateOptions &
  Computing &
  Summing &
  Optional<{ call: string; mapped: readonly NodeLike[]; outputs: readonly NodeLike[] }>;

/** Everything that a call may be asked. */
export type Asked = GradientsOptions &
  VjpOptions &
  JvpOptions &
  HvpOptions &
  BatchOptions &
  CheckOptions &
  PlanOptions &
  Optional<{ feeds: Tensors; types: Types }>;
