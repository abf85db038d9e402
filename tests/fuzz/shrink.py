"""Shrinking: fewer nodes, smaller extents and simpler numbers, as long as the request still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from engine import HostArray, registry
from engine.ir.graph import ancestors
from engine.ir.run_context import Limits
from service.api.tensors import decode, encode
from tests.fuzz.graphs import Request
from tests.fuzz.values import Array

Body = dict[str, Any]
Fails = Callable[[Request], bool]
#: fields that name nodes, and those that hold tensors of nodes
_LISTS: Final = ("outputs", "wrt", "mapped")
_TENSORS: Final = ("feeds", "cotangents", "tangents", "vectors", "types")
_LEAVES: Final = ("input", "parameter")


def shrunk(request: Request, fails: Fails, seconds: float) -> Request:
    """The smallest request found in that time for which `fails` still holds."""
    until, improves = time.monotonic() + seconds, True
    while improves:
        improves = False
        for candidate in candidates(request):
            if time.monotonic() > until:
                return request
            if candidate is not None and fails(candidate):
                request, improves = candidate, True
                break
    return request


def candidates(request: Request) -> Iterator[Request]:
    """Requests that are one step smaller, those that remove most first."""
    if (run := _without_unused_functions(request.body["graph"])) is not None:
        yield _changed(request, graph=run)
    yield from _with_fewer_roots(request)
    for node in reversed(range(len(_nodes(request)))):
        yield from _without(request, node)
    yield from _with_smaller_functions(request)
    yield from _with_smaller_extents(request)
    yield from _without_attributes(request)
    yield from _with_plainer_numbers(request)


def _nodes(request: Request) -> list[Body]:
    nodes: list[Body] = request.body["graph"]["nodes"]
    return nodes


def _changed(request: Request, **fields: Any) -> Request:
    return Request(request.call, {**request.body, **fields})


def _with_nodes(request: Request, nodes: Sequence[Body]) -> Request:
    return _changed(request, graph=request.body["graph"] | {"nodes": list(nodes)})


# ---------------------------------------------------------------- roots and nodes


def _with_fewer_roots(request: Request) -> Iterator[Request]:
    for name in (*_LISTS, "cotangents", "tangents", "vectors"):
        listed = request.body.get(name, [])
        for i in range(len(listed) if len(listed) > 1 else 0):
            fewer = [*listed[:i], *listed[i + 1 :]]
            yield _pruned(_changed(request, **{name: fewer}))
    if request.call != "forward" and "feeds" in request.body:
        kept = {name: value for name, value in request.body.items() if name in ("graph", "feeds", "outputs")}
        output = request.body.get("of", len(_nodes(request)) - 1)
        yield _pruned(Request("forward", {"outputs": [output], **kept}))


def _without(request: Request, node: int) -> Iterator[Request]:
    """Remove a node, and replace it by one of its operands."""
    nodes = _nodes(request)
    for operand in _inputs_of(nodes, node):

        def instead(i: int, operand: int = operand) -> int:
            return operand if i == node else i

        read = _renumbered(nodes, instead)
        named = {k: v for k, v in request.body.items() if k not in ("graph", "feeds", "types")}
        named = renamed_fields(named, instead)
        yield _pruned(_with_nodes(_changed(request, **named), read))


def _inputs_of(nodes: Sequence[Body], node: int) -> list[int]:
    """The operands of a node; for `get_output`, those of the op behind it."""
    operands = nodes[node].get("operands", ())
    if nodes[node]["op"] == "get_output":
        operands = nodes[operands[0]].get("operands", ())
    return [i for i in dict.fromkeys(operands) if not registry().ops[nodes[i]["op"]].several]


def _renumbered(nodes: Sequence[Body], place: Callable[[int], int]) -> list[Body]:
    """The nodes with renumbered operands."""
    return [{**n, "operands": list(map(place, n["operands"]))} if "operands" in n else n for n in nodes]


def renamed_fields(fields: Body, place: Callable[[int], int]) -> Body:
    """The fields of a request with renumbered nodes."""
    return {name: _renamed_field(name, value, place) for name, value in fields.items()}


def _renamed_field(name: str, value: Any, place: Callable[[int], int]) -> Any:
    if name in _LISTS:
        return list(dict.fromkeys(map(place, value)))
    if name in _TENSORS:
        return [{**one, "node": place(one["node"])} for one in value]
    return place(value) if name == "of" else value


def _pruned(request: Request) -> Request:
    """Remove the nodes that no output needs, and renumber the others."""
    nodes, body = _nodes(request), request.body
    roots = {i for name in _LISTS for i in body.get(name, ())} | {body.get("of", len(nodes) - 1)}
    roots |= {one["node"] for name in _TENSORS[1:4] for one in body.get(name, ())}
    if "of" not in body and body.get("outputs"):
        roots.discard(len(nodes) - 1)
        roots |= set(body["outputs"])
    needed = ancestors(roots, lambda i: nodes[i].get("operands", ()))
    place = {node: k for k, node in enumerate(needed)}
    moved = _renumbered([nodes[i] for i in needed], place.__getitem__)
    fields: Body = {}
    for name, value in body.items():
        there = [one for one in value if one["node"] in place] if name in _TENSORS else value
        fields[name] = value if name == "graph" else _renamed_field(name, there, place.__getitem__)
    return _with_nodes(Request(request.call, fields), moved)


# ---------------------------------------------------------------- functions


def _with_smaller_functions(request: Request) -> Iterator[Request]:
    """Remove a node of a function, or reduce the steps of a loop."""
    graph = request.body["graph"]
    known: list[Body] = graph.get("functions", [])
    for k, function in enumerate(known):
        for smaller in _smaller(function):
            yield _changed(request, graph=graph | {"functions": [*known[:k], smaller, *known[k + 1 :]]})
    for part in (graph, *known):
        for node in part["nodes"]:
            for name in ("length", "max_steps"):
                steps = node.get("attrs", {}).get(name, 0)
                for fewer in dict.fromkeys([1, 2, steps // 2, steps - 1]):
                    if 0 < fewer < steps:
                        new = {**node, "attrs": node["attrs"] | {name: fewer}}
                        yield _changed(request, graph=_with_replaced_node(graph, node, new))


def _smaller(function: Body) -> Iterator[Body]:
    needed = _needed(function)
    if len(needed["nodes"]) < len(function["nodes"]):
        yield needed
    nodes = function["nodes"]
    for node in reversed(range(len(nodes))):
        for operand in _inputs_of(nodes, node):

            def instead(i: int, node: int = node, operand: int = operand) -> int:
                return operand if i == node else i

            outputs = list(map(instead, function["outputs"]))
            yield _needed({**function, "nodes": _renumbered(nodes, instead), "outputs": outputs})


def _needed(function: Body) -> Body:
    """A function without unused nodes, except for its inputs."""
    nodes = function["nodes"]
    inputs = [i for i, node in enumerate(nodes) if node["op"] == "input"]
    needed = ancestors({*function["outputs"], *inputs}, lambda i: nodes[i].get("operands", ()))
    place = {i: k for k, i in enumerate(needed)}
    kept = _renumbered([nodes[i] for i in needed], place.__getitem__)
    return {**function, "nodes": kept, "outputs": [place[i] for i in function["outputs"]]}


def _with_replaced_node(graph: Body, node: Body, new: Body) -> Body:
    """Replace this node object in the graph."""
    parts = [
        {**part, "nodes": [new if n is node else n for n in part["nodes"]]}
        for part in (graph, *graph.get("functions", []))
    ]
    return parts[0] | {"functions": parts[1:]} if "functions" in graph else parts[0]


def _without_unused_functions(graph: Body) -> Body | None:
    """The graph without unused functions; None if all are used."""
    known = graph.get("functions", [])
    reached: set[int] = set()
    todo = [graph]
    while todo:
        used = {k for node in todo.pop()["nodes"] for k in _functions_of(node).values()} - reached
        reached |= used
        todo += [known[k] for k in used]
    if len(reached) == len(known):
        return None
    place = {k: i for i, k in enumerate(sorted(reached))}

    def renumbered(part: Body) -> Body:
        return {**part, "nodes": [_with_functions(node, place) for node in part["nodes"]]}

    smaller = {name: value for name, value in renumbered(graph).items() if name != "functions"}
    return smaller | {"functions": [renumbered(known[k]) for k in sorted(reached)]} if reached else smaller


def _functions_of(node: Body) -> dict[str, int]:
    """The functions that a node runs, by attribute."""
    names = registry().ops[node["op"]].functions
    return {name: node["attrs"][name] for name in names if name in node.get("attrs", {})}


def _with_functions(node: Body, place: Mapping[int, int]) -> Body:
    named = {name: place[k] for name, k in _functions_of(node).items()}
    return {**node, "attrs": node["attrs"] | named} if named else node


# ---------------------------------------------------------------- extents and attributes


def _with_smaller_extents(request: Request) -> Iterator[Request]:
    """Reduce one extent everywhere: in tensors, in types and in attributes."""
    extents = {extent for _, _, one in _tensors(request) for extent in one["shape"]}
    for extent in sorted(extents, reverse=True):
        for smaller in dict.fromkeys([1, extent // 2, extent * 3 // 4, extent - 1]):
            if 0 < smaller < extent:
                yield _resized(request, extent, smaller)


def _tensors(request: Request) -> Iterator[tuple[str, int, Body]]:
    for name in _TENSORS:
        for i, one in enumerate(request.body.get(name, ())):
            yield name, i, one if name == "types" else one["tensor"]
    if "cotangent" in request.body:
        yield "cotangent", 0, request.body["cotangent"]


def _with_tensors(request: Request, change: Callable[[str, int, Body], Body]) -> Request:
    fields: Body = {}
    for name, i, tensor in _tensors(request):
        new = change(name, i, tensor)
        if name == "cotangent":
            fields[name] = new
        else:
            one = request.body[name][i]
            fields.setdefault(name, []).append(new if name == "types" else {**one, "tensor": new})
    return _changed(request, **fields)


def _resized(request: Request, extent: int, smaller: int) -> Request:
    def change(name: str, _: int, tensor: Body) -> Body:
        if name == "types":
            return {**tensor, "shape": [smaller if e == extent else e for e in tensor["shape"]]}
        array = array_of(tensor)
        # keep the end, where odd numbers often are
        cut = tuple(slice(-smaller, None) if e == extent else slice(None) for e in array.shape)
        return encode(np.ascontiguousarray(array[cut]), "base64")

    def attribute(value: Any) -> Any:
        if isinstance(value, list):
            return [attribute(each) for each in value]
        return smaller if value == extent and not isinstance(value, bool) else value

    def node(given: Body) -> Body:
        if "attrs" not in given:
            return given
        return {**given, "attrs": {k: attribute(v) for k, v in given["attrs"].items()} | _functions_of(given)}

    def part(given: Body) -> Body:
        return {**given, "nodes": list(map(node, given["nodes"]))}

    graph = part(request.body["graph"])
    if "functions" in graph:
        graph["functions"] = list(map(part, graph["functions"]))
    return _with_tensors(_changed(request, graph=graph), change)


def _without_attributes(request: Request) -> Iterator[Request]:
    nodes = _nodes(request)
    for i, node in enumerate(nodes):
        for name in node.get("attrs", ()):
            fewer = {key: value for key, value in node["attrs"].items() if key != name}
            yield _with_nodes(request, [*nodes[:i], {**node, "attrs": fewer}, *nodes[i + 1 :]])


# ---------------------------------------------------------------- numbers


def array_of(tensor: Mapping[str, Any]) -> HostArray:
    """The array that a tensor of a request stands for."""
    return decode(tensor, Limits())  # type: ignore[arg-type] # as it was encoded


def _with_plainer_numbers(request: Request) -> Iterator[Request]:
    """Simplify one tensor at a time: set all, or a part, of its numbers to one half, or round them."""
    for name, i, tensor in _tensors(request):
        if name == "types":
            continue
        array = array_of(tensor)
        for plain in _plainer(array):
            if plain.tobytes() != array.tobytes():
                yield _with_tensors(request, partial(_replaced_tensor, (name, i), plain))


def _replaced_tensor(target: tuple[str, int], replacement: Array, name: str, i: int, tensor: Body) -> Body:
    """The tensor, or its replacement if it is the chosen one."""
    return encode(replacement, "base64") if (name, i) == target else tensor


def _plainer(array: Array) -> Iterator[Array]:
    usual = np.array(0.5 if array.dtype.kind in "fc" else 0).astype(array.dtype)
    yield np.full(array.shape, usual)
    odd = np.flatnonzero(array.reshape(-1) != usual)
    parts = 2
    while parts <= min(len(odd), 64):
        for part in np.array_split(odd, parts):
            plain = np.array(array)
            plain.reshape(-1)[part] = usual
            yield plain
        parts *= 2
    if array.dtype.kind in "fc":
        with np.errstate(all="ignore"):
            yield np.where(array == usual, array, np.round(array))  # otherwise one half and 0 would alternate
