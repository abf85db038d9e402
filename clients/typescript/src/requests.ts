/** Requests: method, path, query, headers and body. Nothing here opens a connection. */

import type { Bytes } from "./bytes.js";
import { DTYPES, type Dtype, isDtype } from "./dtypes.js";
import { InputError } from "./errors.js";
import { type Graph, type GraphFunction, Node, type NodeLike } from "./graph.js";
import { type JsonObject } from "./json.js";
import { alone, type Fields, JSON_TYPE, Message, SAFETENSORS_TYPE } from "./message.js";
import { definitionToWire, type Model, type ModelDefinition } from "./models.js";
import { opsetOf } from "./opset.js";
import type { Asked, ByNode, Tensors, Types } from "./options.js";
import { etagOf, Resident, Rows, type Store } from "./resident.js";
import { Tensor, type TensorLike, tensor } from "./tensor.js";
import type { Form } from "./tensor-json.js";

/** One request. A request that `keeps` (stores) something is retried only under an Idempotency-Key. */
export interface Request {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly query?: { readonly [name: string]: string };
  readonly headers?: { readonly [name: string]: string };
  readonly body?: readonly Bytes[];
  readonly keeps?: boolean;
}

/** Returns the request with another header. */
export function withHeader(request: Request, name: string, value: string): Request {
  return { ...request, headers: { ...request.headers, [name]: value } };
}

/** Returns the same call on a registered graph. */
export function onGraph(request: Request, graphId: string): Request {
  return { ...request, path: `${pathOfGraph(graphId)}${request.path.slice(request.path.lastIndexOf("/"))}` };
}

/** Builds the request of a call on a graph. A registered graph is not sent. Throws InputError. */
export function computing(call: string, graph: Graph, asked: Asked, isRegistered: boolean): Request {
  const message = new Message();
  if (!isRegistered) message.fields["graph"] = stated(graph, message);
  for (const [name, write] of Object.entries(FIELDS)) {
    const value = asked[name as keyof Asked];
    if (value !== undefined) message.fields[name] = write(value as never, name, graph, message);
  }
  if (asked.cotangent !== undefined) {
    const of = graph.find(asked.of ?? graph.size - 1);
    message.place(fed(asked.cotangent, "cotangent", of), `cotangents.${of.id}`, message.fields, "cotangent");
  }
  if (asked.memoryBudget !== undefined) message.fields["memory_budget"] = asked.memoryBudget;
  Object.assign(message.fields, asked.extra);
  const form = message.form(asked.form);
  if (form !== "safetensors") message.fields["encoding"] = form;
  const { media, body } = message.encoded(form);
  const headers = { "Content-Type": media, Accept: accepted(media, asked) };
  const keeps = asked.store !== undefined && pairs(asked.store).length > 0;
  return { method: "POST", path: `/v1/${call}`, headers, body, keeps };
}

type Field<T> = (value: T, name: string, graph: Graph, message: Message) => unknown;

const asItIs: Field<unknown> = (value) => value;
const oneNode: Field<NodeLike> = (node, _name, graph) => graph.find(node).id;
const nodes: Field<readonly NodeLike[]> = (list, _name, graph) => list.map((node) => graph.find(node).id);

/** The fields of calls, each with its conversion to JSON, which places its tensors in the message. */
const FIELDS: { readonly [name: string]: Field<never> } = {
  call: asItIs,
  feeds: entries,
  types,
  of: oneNode,
  wrt: nodes,
  outputs: nodes,
  mapped: nodes,
  cotangents: entries,
  tangents: entries,
  vectors: entries,
  batched: asItIs,
  reduce: asItIs,
  block: asItIs,
  layout: asItIs,
  directions: asItIs,
  tolerance: asItIs,
  diagnose: asItIs,
  precision: asItIs,
  store: stores,
};

/**
 * The response uses the encoding of the request. If a feed is a resident tensor, results may be large, so the client
 * asks for safetensors.
 */
function accepted(media: string, asked: Asked): string {
  const isLarge = asked.form === undefined && pairs(asked.feeds ?? {}).some(([, fed]) => isKept(fed));
  return media === SAFETENSORS_TYPE || isLarge ? SAFETENSORS_TYPE : JSON_TYPE;
}

function isKept(value: unknown): value is Resident | Rows {
  return value instanceof Resident || value instanceof Rows;
}

function pairs<T>(stated: ByNode<T>): (readonly [NodeLike, T])[] {
  return Symbol.iterator in stated ? [...(stated as Iterable<readonly [NodeLike, T]>)] : Object.entries(stated);
}

function entries(tensors: Tensors, role: string, graph: Graph, message: Message): Fields[] {
  return pairs(tensors).map(([like, value]) => {
    const node = graph.find(like);
    if (value instanceof Rows) return { node: node.id, tensor_id: value.name, rows: [value.start, value.stop] };
    if (value instanceof Resident) return { node: node.id, tensor_id: value.name };
    const entry: Fields = { node: node.id };
    message.place(fed(value, role, node), `${role}.${node.id}`, entry, "tensor");
    return entry;
  });
}

/**
 * Converts a feed to a tensor. A value without a dtype, or with several possible ones, gets the dtype that the node
 * declares.
 */
function fed(value: TensorLike, role: string, node: Node): Tensor {
  const stated = node.attrs["dtype"] as Dtype | undefined;
  const hasItsOwn = value instanceof Tensor || (ArrayBuffer.isView(value) && !isHeldIn(stated, value));
  try {
    return hasItsOwn ? tensor(value) : tensor(value, stated);
  } catch (error) {
    throw error instanceof InputError ? new InputError(`${role} of ${node.told}: ${error.message}`) : error;
  }
}

function isHeldIn(dtype: unknown, array: ArrayBufferView): boolean {
  return isDtype(dtype) && array instanceof DTYPES[dtype].Elements;
}

function types(stated: Types, _name: string, graph: Graph): Fields[] {
  return pairs(stated).map(([node, type]) => {
    const [dtype, shape] = type instanceof Tensor ? ([type.dtype, type.shape] as const) : type;
    return { node: graph.find(node).id, dtype, shape };
  });
}

function stores(stated: ByNode<string | Store>, _name: string, graph: Graph): Fields[] {
  return pairs(stated).map(([node, target]) => {
    const store: Store = typeof target === "string" ? { name: target } : target;
    const { ifMatch, durable, gradient } = store;
    return { node: graph.find(node).id, tensor_id: store.name, if_match: ifMatch, durable, gradient };
  });
}

/** Returns the graph in its JSON form, with tensors as base64. */
export function toWire(graph: Graph): JsonObject {
  const message = new Message();
  message.fields["graph"] = stated(graph, message);
  message.intoJson("base64");
  return message.fields["graph"] as JsonObject;
}

function stated(graph: Graph, message: Message): Fields {
  if (graph.outer) {
    throw new InputError("the graph of a function cannot be sent by itself; send the graph that contains the function");
  }
  const functions = graph.functions.map((each) => statedFunction(each, message));
  return { opset: opsetOf(graph), functions: functions.length ? functions : undefined, nodes: allOf(graph, message, "") };
}

function statedFunction({ index, nodes, outputs, name }: GraphFunction, message: Message): Fields {
  const within = `functions.${index}.`;
  return { name: name || undefined, nodes: allOf(nodes, message, within), outputs: outputs.map(({ id }) => id) };
}

function allOf(graph: Graph, message: Message, within: string): readonly Fields[] {
  return [...graph].map((node) => statedNode(node, message, within));
}

function statedNode({ id, op, operands, attrs, name }: Node, message: Message, within: string): Fields {
  const stated: Fields = {};
  for (const [key, value] of Object.entries(attrs)) {
    if (value instanceof Tensor) message.place(value, `${within}constants.${id}`, stated, key);
    else stated[key] = value;
  }
  return {
    op,
    operands: operands.length ? operands : undefined,
    attrs: Object.keys(attrs).length ? stated : undefined,
    name: name || undefined,
  };
}

/** Builds the request that registers a graph. Repeating it changes nothing. */
export function registration(graph: Graph, description: string, form: Form | undefined): Request {
  const message = new Message({ description: description || undefined });
  message.fields["graph"] = stated(graph, message);
  const { media, body } = message.encoded(message.form(form));
  const headers = { "Content-Type": media, Accept: JSON_TYPE };
  return { method: "POST", path: "/v1/graphs", headers, body };
}

/** A version of a tensor that must or must not be stored: its handle, its etag, or "*" for any. */
export type Version = Resident | string;

/** Options of `put`. */
export interface Put {
  readonly ifMatch?: Version | undefined;
  readonly ifNoneMatch?: Version | undefined;
  readonly durable?: boolean | undefined;
  readonly form?: Form | undefined;
}

/** Builds the request that stores a tensor. Without a condition, repeating it changes nothing. Throws InputError. */
export function put(name: string, value: TensorLike, { ifMatch, ifNoneMatch, durable, form }: Put): Request {
  const { media, body } = alone(tensor(value), form);
  const conditions = conditionsOf(ifMatch, ifNoneMatch);
  return {
    method: "PUT",
    path: pathOf(name),
    query: stringified({ durable }),
    headers: { "Content-Type": media, Accept: JSON_TYPE, ...conditions },
    body,
    keeps: Object.keys(conditions).length > 0,
  };
}

/** Builds the request that downloads a tensor, as safetensors unless another form is given. */
export function get(name: string, { ifMatch, ifNoneMatch, form }: Put): Request {
  const isBinary = form === undefined || form === "safetensors";
  const headers = { Accept: isBinary ? SAFETENSORS_TYPE : JSON_TYPE, ...conditionsOf(ifMatch, ifNoneMatch) };
  return { method: "GET", path: pathOf(name), query: isBinary ? {} : { encoding: form }, headers };
}

/** Builds the request that deletes a tensor. */
export function remove(name: string, ifMatch: Version | undefined): Request {
  return { method: "DELETE", path: pathOf(name), headers: conditionsOf(ifMatch, undefined), keeps: true };
}

/** A version of a model that must or must not be stored: the model, its etag, or "*" for any. */
export type ModelVersion = Model | string;

/** Conditions of `putModel`. */
export interface PutModel {
  readonly ifMatch?: ModelVersion | undefined;
  readonly ifNoneMatch?: ModelVersion | undefined;
}

/** Builds the request that stores a model. Without a condition, repeating it changes nothing. Throws InputError. */
export function putModel(name: string, definition: ModelDefinition, { ifMatch, ifNoneMatch }: PutModel): Request {
  const { media, body } = new Message({ ...definitionToWire(definition) }).encoded("json");
  const conditions = conditionsOf(ifMatch, ifNoneMatch);
  return {
    method: "PUT",
    path: pathOfModel(name),
    headers: { "Content-Type": media, Accept: JSON_TYPE, ...conditions },
    body,
    keeps: Object.keys(conditions).length > 0,
  };
}

/** Builds the request for a model. */
export function getModel(name: string): Request {
  return { method: "GET", path: pathOfModel(name) };
}

/** Builds the request that deletes a model. */
export function removeModel(name: string, ifMatch: ModelVersion | undefined): Request {
  return { method: "DELETE", path: pathOfModel(name), headers: conditionsOf(ifMatch, undefined), keeps: true };
}

/** Builds the request for the op catalogue. */
export function catalogue(): Request {
  return { method: "GET", path: "/v1/ops" };
}

/** Builds the request for a page of a listing, which starts after an entry. */
export function page(kind: string, limit: number | undefined, after: string | undefined): Request {
  return { method: "GET", path: `/v1/${kind}`, query: stringified({ limit, after }) };
}

/** Builds the request for a registered graph. */
export function graphOf(graphId: string): Request {
  return { method: "GET", path: pathOfGraph(graphId) };
}

/** Builds the request that deletes a registered graph. */
export function removeGraph(graphId: string): Request {
  return { method: "DELETE", path: pathOfGraph(graphId), keeps: true };
}

function stringified(stated: { readonly [name: string]: unknown }): { [name: string]: string } {
  const there = Object.entries(stated).filter(([, value]) => value !== undefined);
  return Object.fromEntries(there.map(([name, value]) => [name, String(value)]));
}

function pathOfGraph(graphId: string): string {
  return `/v1/graphs/${segment(graphId)}`;
}

function pathOf(name: string): string {
  return `/v1/tensors/${segment(name)}`;
}

function pathOfModel(name: string): string {
  return `/v1/models/${segment(name)}`;
}

/** Encodes a name as a path segment. Rejects `.`, `..` and empty names, because URLs drop these segments. */
function segment(name: string): string {
  if (["", ".", ".."].includes(name)) throw new InputError(`'${name}' is not a valid name or id`);
  return encodeURIComponent(name);
}

type Any = Version | ModelVersion;

function conditionsOf(ifMatch: Any | undefined, ifNoneMatch: Any | undefined): { [name: string]: string } {
  const stated = { "If-Match": ifMatch, "If-None-Match": ifNoneMatch };
  const there = Object.entries(stated).filter((entry): entry is [string, Any] => entry[1] !== undefined);
  return Object.fromEntries(there.map(([name, version]) => [name, quoted(etagOf(version))]));
}

function quoted(etag: string): string {
  return etag === "*" ? etag : `"${etag}"`;
}
