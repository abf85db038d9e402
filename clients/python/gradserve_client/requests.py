"""What is sent: method, path, query, headers and body of every request. Nothing here opens a connection."""

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
#: the name under which a tensor that is put travels; the server does not look at it
_PUT: Final = "tensor"
_PIECE: Final = 1 << 20


@dataclass(frozen=True)
class Request:
    """One request. `takes_time` says whether its query may have a timeout.

    What `keeps` something is repeated under an Idempotency-Key alone.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Sequence[Buffer] = ()
    takes_time: bool = False
    keeps: bool = False

    def __repr__(self) -> str:
        return f"<{self.method} {self.path}>"

    def with_header(self, name: str, value: str) -> Request:
        """The same with one header more."""
        return replace(self, headers={**self.headers, name: value})

    def on_graph(self, graph_id: str) -> Request:
        """The same call on a registered graph."""
        call = self.path.rpartition("/")[2]
        return replace(self, path=f"{_path_of_graph(graph_id)}/{call}")

    def within(self, seconds: float | None) -> Request:
        """The same, saying how much time is left for it."""
        if seconds is None or not self.takes_time:
            return self
        return replace(self, query={**self.query, "timeout_ms": str(max(1, int(seconds * 1000)))})

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return sum(map(len, self.body))

    def pieces(self) -> Iterator[bytes]:
        """The body, so much at a time."""
        for part in self.body:
            view = memoryview(part)
            yield from (bytes(view[start : start + _PIECE]) for start in range(0, len(view), _PIECE))


class Message:
    """A request in JSON, and its tensors, which may come to stand in it or beside it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self._tensors: list[tuple[str, dict[str, Any], str, Array]] = []

    def place(self, array: Array, where: str, holder: dict[str, Any], key: str) -> None:
        """A tensor that is called `where` beside the JSON, or in it is what `holder` has under `key`."""
        self._tensors.append((where, holder, key, array))

    def form(self, asked: Form | None) -> Form:
        """The form that is asked for, or else the one that the tensors' size suggests."""
        return asked or default_form(sum(array.nbytes for *_, array in self._tensors))

    def encoded(self, form: Form) -> tuple[str, list[Buffer]]:
        """Media type and body. Raises InputError for fields that JSON has no words for."""
        if form == "safetensors":
            tensors = {where: array for where, _, _, array in self._tensors}
            return SAFETENSORS, safetensors.encode(tensors, {"request": _dumped(self.fields)})
        for _, holder, key, array in self._tensors:
            holder[key] = to_json(array, form)
        return JSON, [_dumped(self.fields).encode()]


def _dumped(fields: object) -> str:
    try:
        return json.dumps(fields, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the request cannot be written as JSON: {error}") from None


def computing(call: str, graph: Graph, asked: Mapping[str, Any], *, registered_nodes: int | None = None) -> Request:
    """A call on a graph, or on so many of its nodes as are registered, which are not sent.

    `asked` are `feeds` and fields of the call. Raises InputError.
    """
    message = Message({})
    if registered_nodes is None:
        message.fields["graph"] = _stated(graph, message)
    for name, value in asked.items():
        if value is not None and name not in _OF_THE_CLIENT:
            message.fields[name] = _field(name, value, graph, message)
    if asked.get("cotangent") is not None:
        of = graph.find(asked.get("of", (registered_nodes or len(graph)) - 1))
        array = _array_for(of, "cotangent", asked["cotangent"])
        message.place(array, f"cotangents.{of.id}", message.fields, "cotangent")
    message.fields.update(asked.get("extra", {}))
    form = message.form(asked.get("form"))
    if form != "safetensors":
        message.fields["encoding"] = form
    media, body = message.encoded(form)
    headers = {"Content-Type": media, "Accept": _accepted(media, asked)}
    keeps = bool(asked.get("store"))
    return Request("POST", f"/v1/{call}", headers=headers, body=body, takes_time=True, keeps=keeps)


#: what is no field of the request, and the cotangent, which needs to know another one
_OF_THE_CLIENT: Final = frozenset({"form", "timeout", "idempotency", "extra", "cotangent"})


def _accepted(media: str, asked: Mapping[str, Any]) -> str:
    """The answer is to come as the request goes; where a tensor stays with the server, its like may well be large."""
    resident = any(isinstance(fed, Resident | Rows) for _, fed in asked.get("feeds", {}).items())
    return SAFETENSORS if media == SAFETENSORS or (resident and asked.get("form") is None) else JSON


def _field(name: str, value: Any, graph: Graph, message: Message) -> Any:
    """A field as the wire has it; its tensors are placed in the message."""
    match name:
        case "of":
            return graph.find(value).id
        case "wrt" | "outputs" | "mapped":
            return [graph.find(node).id for node in value]
        case "feeds" | "cotangents" | "tangents" | "vectors":
            return _entries(name, value, graph, message)
        case "types":
            return _types(value, graph)
        case "store":
            return [_stored(target).to_wire(graph.find(node).id) for node, target in value.items()]
    return value


def _stored(target: str | Store) -> Store:
    return Store(target) if isinstance(target, str) else target


def _entries(role: str, tensors: Tensors, graph: Graph, message: Message) -> list[dict[str, Any]]:
    entries = []
    for like, tensor in tensors.items():
        node = graph.find(like)
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


def _types(types: Types, graph: Graph) -> list[dict[str, Any]]:
    entries = []
    for like, stated in types.items():
        node = graph.find(like)
        dtype, shape = (stated.dtype, stated.shape) if isinstance(stated, np.ndarray) else stated
        try:
            entries.append({"node": node.id, "dtype": dtype_name(dtype), "shape": list(shape)})
        except InputError as error:
            raise InputError(f"types of {node.told}: {error}") from None
    return entries


def to_wire(graph: Graph) -> dict[str, Any]:
    """A graph as it would be sent, its tensors in it as base64."""
    message = Message({})
    message.fields = _stated(graph, message)
    message.encoded("base64")
    return message.fields


def _stated(graph: Graph, message: Message) -> dict[str, Any]:
    if graph.outer is not None:
        raise InputError("the graph of a function is sent within the graph around it, and not by itself")
    opset = opset_of(graph)
    stated: dict[str, Any] = {} if opset is None else {"opset": opset}
    if graph.functions:
        stated["functions"] = [_function(function, message) for function in graph.functions]
    return {**stated, "nodes": _nodes(graph, message)}


def _function(function: GraphFunction, message: Message) -> dict[str, Any]:
    stated: dict[str, Any] = {"name": function.name} if function.name else {}
    nodes = _nodes(function.nodes, message, within=f"functions.{function.index}.")
    return {**stated, "nodes": nodes, "outputs": [output.id for output in function.outputs]}


def _nodes(graph: Graph, message: Message, within: str = "") -> list[dict[str, Any]]:
    nodes = []
    for node in graph:
        stated: dict[str, Any] = {"op": node.op}
        if node.operands:
            stated["operands"] = list(node.operands)
        if node.attrs:
            attrs = stated["attrs"] = dict(node.attrs)
            for name, value in node.attrs.items():
                if isinstance(value, np.ndarray):
                    message.place(attrs.pop(name), f"{within}constants.{node.id}", attrs, name)
        if node.name:
            stated["name"] = node.name
        nodes.append(stated)
    return nodes


def registration(graph: Graph, description: str, form: Form | None) -> Request:
    """Have the server keep a graph. To repeat it changes nothing."""
    message = Message({"description": description} if description else {})
    message.fields["graph"] = _stated(graph, message)
    media, body = message.encoded(message.form(form))
    headers = {"Content-Type": media, "Accept": JSON}
    return Request("POST", "/v1/graphs", headers=headers, body=body, takes_time=True)


def put(
    name: str,
    array: ArrayLike,
    *,
    if_match: Resident | str | None = None,
    if_none_match: Resident | str | None = None,
    durable: bool | None = None,
    form: Form | None = None,
) -> Request:
    """Have the server keep a tensor. Without a condition, to repeat it changes nothing. Raises InputError."""
    media, body = _alone(as_array(array), form)
    conditions = _conditions(if_match, if_none_match)
    query = {} if durable is None else {"durable": "true" if durable else "false"}
    headers = {"Content-Type": media, "Accept": JSON, **conditions}
    return Request("PUT", _path_of(name), query, headers, body, takes_time=True, keeps=bool(conditions))


def _alone(array: Array, form: Form | None) -> tuple[str, list[Buffer]]:
    """A tensor that is all of a body."""
    form = form or default_form(array.nbytes)
    if form == "safetensors":
        return SAFETENSORS, safetensors.encode({_PUT: array}, {})
    return JSON, [_dumped(to_json(array, form)).encode()]


def get(
    name: str, *, if_match: Resident | str | None = None, if_none_match: Resident | str | None = None, form: Form | None
) -> Request:
    """Ask for a tensor that the server keeps: for its bytes, unless another form is asked for."""
    query = {} if form in (None, "safetensors") else {"encoding": str(form)}
    headers = {"Accept": JSON if query else SAFETENSORS, **_conditions(if_match, if_none_match)}
    return Request("GET", _path_of(name), query, headers, takes_time=True)


def delete(name: str, *, if_match: Resident | str | None = None) -> Request:
    """Have the server keep a tensor no more."""
    return Request("DELETE", _path_of(name), headers=_conditions(if_match, None), keeps=True)


def put_model(
    name: str, stated: Mapping[str, Any], if_match: Version | str | None, if_none_match: Version | str | None
) -> Request:
    """Have the server keep a model. Without a condition, to repeat it changes nothing. Raises InputError."""
    conditions = _conditions(if_match, if_none_match)
    headers = {"Content-Type": JSON, "Accept": JSON, **conditions}
    body = [_dumped(stated).encode()]
    return Request("PUT", _path_of_model(name), {}, headers, body, takes_time=True, keeps=bool(conditions))


def model(name: str) -> Request:
    """Ask for a model that the server keeps."""
    return Request("GET", _path_of_model(name))


def delete_model(name: str, *, if_match: Version | str | None = None) -> Request:
    """Have the server keep a model no more."""
    return Request("DELETE", _path_of_model(name), headers=_conditions(if_match, None), keeps=True)


def catalogue() -> Request:
    """Ask for the ops that the server has."""
    return Request("GET", "/v1/ops")


def page(path: str, limit: int | None, after: str | None) -> Request:
    """A page of a listing, from behind an entry on."""
    stated = {"limit": limit, "after": after}
    return Request("GET", path, {name: str(value) for name, value in stated.items() if value is not None})


def graph(graph_id: str) -> Request:
    """Ask for a graph that the server keeps."""
    return Request("GET", _path_of_graph(graph_id))


def delete_graph(graph_id: str) -> Request:
    """Have the server keep a graph no more."""
    return Request("DELETE", _path_of_graph(graph_id), keeps=True)


def _path_of_graph(graph_id: str) -> str:
    return f"/v1/graphs/{quote(graph_id, safe='')}"


def _path_of(name: str) -> str:
    return f"/v1/tensors/{quote(name, safe='')}"


def _path_of_model(name: str) -> str:
    return f"/v1/models/{quote(name, safe='')}"


def _conditions(if_match: Version | str | None, if_none_match: Version | str | None) -> dict[str, str]:
    stated = {"If-Match": if_match, "If-None-Match": if_none_match}
    return {name: _quoted(etag_of(version)) for name, version in stated.items() if version is not None}


def _quoted(etag: str) -> str:
    return etag if etag == "*" else f'"{etag}"'
