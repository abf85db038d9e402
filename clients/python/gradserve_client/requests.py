"""Requests: method, path, query, headers and body of every call. Nothing here opens a connection."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

import numpy as np

from gradserve_client import safetensors
from gradserve_client.errors import InputError
from gradserve_client.fields import Tensors, Types
from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.opset import opset_of
from gradserve_client.resident import Resident, Rows, Store, Version, etag_of
from gradserve_client.tensors import Array, ArrayLike, Buffer, Form, as_array, default_form, dtype_name, to_json

JSON: Final = "application/json"
SAFETENSORS: Final = "application/vnd.safetensors"
#: the name of a stored tensor in its safetensors file; the server ignores it
_TENSOR_NAME: Final = "tensor"
#: bytes per chunk of a body
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Request:
    """One HTTP request. A request that `stores` something is retried only under an Idempotency-Key."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Sequence[Buffer] = ()
    stores: bool = False

    def __repr__(self) -> str:
        return f"<{self.method} {self.path}>"

    def with_header(self, name: str, value: str) -> Request:
        """Return a copy with one more header."""
        return replace(self, headers={**self.headers, name: value})

    def on_graph(self, graph_id: str) -> Request:
        """Return the same call on a registered graph."""
        call = self.path.rpartition("/")[2]
        return replace(self, path=f"{_graph_path(graph_id)}/{call}")

    def with_timeout(self, seconds: float | None) -> Request:
        """Return a copy that tells the server how many seconds are left, in whole milliseconds and at least 1."""
        if seconds is None:
            return self
        return replace(self, query={**self.query, "timeout_ms": str(max(1, int(seconds * 1000)))})

    @property
    def length(self) -> int:
        """The length of the body in bytes."""
        return sum(map(len, self.body))

    def pieces(self) -> Iterator[bytes]:
        """Iterate over the body in chunks of at most 1 MiB."""
        for part in self.body:
            view = memoryview(part)
            yield from (bytes(view[start : start + _CHUNK_BYTES]) for start in range(0, len(view), _CHUNK_BYTES))


class Message:
    """The JSON of a request and its tensors, which end up inside the JSON or beside it in safetensors."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self._tensors: list[tuple[str, dict[str, Any], str, Array]] = []

    def place(self, array: Array, name: str, holder: dict[str, Any], key: str) -> None:
        """Add a tensor: `name` in a safetensors file, or `holder[key]` in JSON."""
        self._tensors.append((name, holder, key, array))

    def form(self, requested: Form | None) -> Form:
        """Return the requested form, or the default for the total size of the tensors."""
        return requested or default_form(sum(array.nbytes for *_, array in self._tensors))

    def encode(self, form: Form) -> tuple[str, list[Buffer]]:
        """Return the media type and the body. Raises InputError if a field cannot be written as JSON."""
        if form == "safetensors":
            tensors = {name: array for name, _, _, array in self._tensors}
            return SAFETENSORS, safetensors.encode(tensors, {"request": _dump_json(self.fields)})
        for _, holder, key, array in self._tensors:
            holder[key] = to_json(array, form)
        return JSON, [_dump_json(self.fields).encode()]


def _dump_json(fields: object) -> str:
    try:
        return json.dumps(fields, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the request cannot be written as JSON: {error}") from None


def call_request(
    call: str, graph: Graph, options: Mapping[str, Any], *, registered_nodes: int | None = None
) -> Request:
    """Build the request of a call on a graph.

    With `registered_nodes`, the graph is not part of the body: the server has its first `registered_nodes` nodes
    already. `options` are the feeds and fields of the call. Raises InputError.
    """
    message = Message({})
    if registered_nodes is None:
        message.fields["graph"] = _graph_to_wire(graph, message)
    for name, value in options.items():
        if value is not None and name not in _CLIENT_FIELDS:
            message.fields[name] = _field_to_wire(name, value, graph, message)
    if options.get("cotangent") is not None:
        differentiated = graph.find(options.get("of", (registered_nodes or len(graph)) - 1))
        array = _array_for(differentiated, "cotangent", options["cotangent"])
        message.place(array, f"cotangents.{differentiated.id}", message.fields, "cotangent")
    message.fields.update(options.get("extra", {}))
    form = message.form(options.get("form"))
    if form != "safetensors":
        message.fields["encoding"] = form
    media, body = message.encode(form)
    headers = {"Content-Type": media, "Accept": _accept_header(media, options)}
    stores = bool(options.get("store"))
    return Request("POST", f"/v1/{call}", headers=headers, body=body, stores=stores)


#: options that are not fields of the request, and the cotangent, which is added once `of` is known
_CLIENT_FIELDS: Final = frozenset({"form", "timeout", "idempotency", "extra", "cotangent"})


def _accept_header(media: str, options: Mapping[str, Any]) -> str:
    """Return the media type to accept: that of the request, or safetensors if a feed stays on the server.

    A request that feeds resident tensors is small, but its results may be as large as those tensors.
    """
    resident = any(isinstance(feed, Resident | Rows) for _, feed in options.get("feeds", {}).items())
    return SAFETENSORS if media == SAFETENSORS or (resident and options.get("form") is None) else JSON


def _field_to_wire(name: str, value: Any, graph: Graph, message: Message) -> Any:
    """Convert a field to its form on the wire. Its tensors are added to the message."""
    match name:
        case "of":
            return graph.find(value).id
        case "wrt" | "outputs" | "mapped":
            return [graph.find(node).id for node in value]
        case "feeds" | "cotangents" | "tangents" | "vectors":
            return _tensor_entries(name, value, graph, message)
        case "types":
            return _type_entries(value, graph)
        case "store":
            return [_as_store(target).to_wire(graph.find(node).id) for node, target in value.items()]
    return value


def _as_store(target: str | Store) -> Store:
    return Store(target) if isinstance(target, str) else target


def _tensor_entries(role: str, tensors: Tensors, graph: Graph, message: Message) -> list[dict[str, Any]]:
    entries = []
    for key, tensor in tensors.items():
        node = graph.find(key)
        entry: dict[str, Any] = {"node": node.id}
        if isinstance(tensor, Resident | Rows):
            entry["tensor_id"] = tensor.name
            if isinstance(tensor, Rows):
                entry["rows"] = [tensor.start, tensor.stop]
        else:
            message.place(_array_for(node, role, tensor), f"{role}.{node.id}", entry, "tensor")
        entries.append(entry)
    return entries


def _array_for(node: Node, role: str, value: ArrayLike) -> Array:
    try:
        return as_array(value, node.attrs.get("dtype"))
    except InputError as error:
        raise InputError(f"{role} of {node.told}: {error}") from None


def _type_entries(types: Types, graph: Graph) -> list[dict[str, Any]]:
    entries = []
    for key, leaf_type in types.items():
        node = graph.find(key)
        dtype, shape = (leaf_type.dtype, leaf_type.shape) if isinstance(leaf_type, np.ndarray) else leaf_type
        try:
            entries.append({"node": node.id, "dtype": dtype_name(dtype), "shape": list(shape)})
        except InputError as error:
            raise InputError(f"types of {node.told}: {error}") from None
    return entries


def to_wire(graph: Graph) -> dict[str, Any]:
    """Return a graph as it is sent, with its tensors as base64."""
    message = Message({})
    message.fields = _graph_to_wire(graph, message)
    message.encode("base64")
    return message.fields


def _graph_to_wire(graph: Graph, message: Message) -> dict[str, Any]:
    if graph.outer is not None:
        raise InputError("the graph of a function cannot be sent by itself; send the graph that contains it")
    opset = opset_of(graph)
    wire_graph: dict[str, Any] = {} if opset is None else {"opset": opset}
    if graph.functions:
        wire_graph["functions"] = [_function(function, message) for function in graph.functions]
    return {**wire_graph, "nodes": _nodes(graph, message)}


def _function(function: GraphFunction, message: Message) -> dict[str, Any]:
    wire_function: dict[str, Any] = {"name": function.name} if function.name else {}
    nodes = _nodes(function.nodes, message, prefix=f"functions.{function.index}.")
    return {**wire_function, "nodes": nodes, "outputs": [output.id for output in function.outputs]}


def _nodes(graph: Graph, message: Message, prefix: str = "") -> list[dict[str, Any]]:
    nodes = []
    for node in graph:
        wire_node: dict[str, Any] = {"op": node.op}
        if node.operands:
            wire_node["operands"] = list(node.operands)
        if node.attrs:
            attrs = wire_node["attrs"] = dict(node.attrs)
            for name, value in node.attrs.items():
                if isinstance(value, np.ndarray):
                    message.place(attrs.pop(name), f"{prefix}constants.{node.id}", attrs, name)
        if node.name:
            wire_node["name"] = node.name
        nodes.append(wire_node)
    return nodes


def registration(graph: Graph, description: str, form: Form | None) -> Request:
    """Build the request that registers a graph. It is idempotent."""
    message = Message({"description": description} if description else {})
    message.fields["graph"] = _graph_to_wire(graph, message)
    media, body = message.encode(message.form(form))
    headers = {"Content-Type": media, "Accept": JSON}
    return Request("POST", "/v1/graphs", headers=headers, body=body)


def put(
    name: str,
    array: ArrayLike,
    *,
    if_match: Resident | str | None = None,
    if_none_match: Resident | str | None = None,
    durable: bool | None = None,
    form: Form | None = None,
) -> Request:
    """Build the request that stores a tensor. Without a condition it is idempotent. Raises InputError."""
    media, body = _encode_single(as_array(array), form)
    conditions = _conditions(if_match, if_none_match)
    query = {} if durable is None else {"durable": "true" if durable else "false"}
    headers = {"Content-Type": media, "Accept": JSON, **conditions}
    return Request("PUT", _tensor_path(name), query, headers, body, stores=bool(conditions))


def _encode_single(array: Array, form: Form | None) -> tuple[str, list[Buffer]]:
    """Encode a tensor that is the whole body."""
    form = form or default_form(array.nbytes)
    if form == "safetensors":
        return SAFETENSORS, safetensors.encode({_TENSOR_NAME: array}, {})
    return JSON, [_dump_json(to_json(array, form)).encode()]


def get(
    name: str, *, if_match: Resident | str | None = None, if_none_match: Resident | str | None = None, form: Form | None
) -> Request:
    """Build the request that downloads a tensor, as safetensors unless another form is given."""
    query = {} if form in (None, "safetensors") else {"encoding": str(form)}
    headers = {"Accept": JSON if query else SAFETENSORS, **_conditions(if_match, if_none_match)}
    return Request("GET", _tensor_path(name), query, headers)


def delete(name: str, *, if_match: Resident | str | None = None) -> Request:
    """Build the request that deletes a tensor."""
    return Request("DELETE", _tensor_path(name), headers=_conditions(if_match, None), stores=True)


def put_model(
    name: str, model_fields: Mapping[str, Any], if_match: Version | str | None, if_none_match: Version | str | None
) -> Request:
    """Build the request that stores a model. Without a condition it is idempotent. Raises InputError."""
    conditions = _conditions(if_match, if_none_match)
    headers = {"Content-Type": JSON, "Accept": JSON, **conditions}
    body = [_dump_json(model_fields).encode()]
    return Request("PUT", _model_path(name), {}, headers, body, stores=bool(conditions))


def model(name: str) -> Request:
    """Build the request for a model."""
    return Request("GET", _model_path(name))


def delete_model(name: str, *, if_match: Version | str | None = None) -> Request:
    """Build the request that deletes a model."""
    return Request("DELETE", _model_path(name), headers=_conditions(if_match, None), stores=True)


def catalogue() -> Request:
    """Build the request for the server's op catalogue."""
    return Request("GET", "/v1/ops")


def page(path: str, limit: int | None, after: str | None) -> Request:
    """Build the request for a page of a listing, of `limit` entries that follow the entry `after`."""
    parameters = {"limit": limit, "after": after}
    return Request("GET", path, {name: str(value) for name, value in parameters.items() if value is not None})


def graph(graph_id: str) -> Request:
    """Build the request for a registered graph."""
    return Request("GET", _graph_path(graph_id))


def delete_graph(graph_id: str) -> Request:
    """Build the request that deletes a registered graph."""
    return Request("DELETE", _graph_path(graph_id), stores=True)


def _graph_path(graph_id: str) -> str:
    return f"/v1/graphs/{quote(graph_id, safe='')}"


def _tensor_path(name: str) -> str:
    return f"/v1/tensors/{quote(name, safe='')}"


def _model_path(name: str) -> str:
    return f"/v1/models/{quote(name, safe='')}"


def _conditions(if_match: Version | str | None, if_none_match: Version | str | None) -> dict[str, str]:
    headers = {"If-Match": if_match, "If-None-Match": if_none_match}
    return {name: _quoted(etag_of(version)) for name, version in headers.items() if version is not None}


def _quoted(etag: str) -> str:
    return etag if etag == "*" else f'"{etag}"'
