"""Smaller requests that fail alike: fewer nodes, smaller extents, plainer numbers, until nothing can be left out."""

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
    """The smallest request found in that time for which `fails` holds, as it does for this one."""
    until, goes_on = time.monotonic() + seconds, True
    while goes_on:
        goes_on = False
        for candidate in candidates(request):
            if time.monotonic() > until:
                return request
            if candidate is not None and fails(candidate):
                request, goes_on = candidate, True
                break
    return request


def candidates(request: Request) -> Iterator[Request]:
    """Requests that are smaller by one thing, those that leave out most first."""
    if (run := _run_alone(request.body["graph"])) is not None:
        yield _changed(request, graph=run)
    yield from _with_fewer_roots(request)
    for node in reversed(range(len(_nodes(request)))):
        yield from _without(request, node)
    yield from _with_smaller_functions(request)
    yield from _with_smaller_extents(request)
    yield from _without_attributes(request)
    yield from _with_plainer_numbers(request)


def _nodes(request: Request) -> list[Body]:
    found: list[Body] = request.body["graph"]["nodes"]
    return found


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
        of = request.body.get("of", len(_nodes(request)) - 1)
        yield _pruned(Request("forward", {"outputs": [of], **kept}))


def _without(request: Request, node: int) -> Iterator[Request]:
    """One node left out, and read in its place one of its operands."""
    nodes = _nodes(request)
    for operand in _before(nodes, node):

        def instead(i: int, operand: int = operand) -> int:
            return operand if i == node else i

        read = _reading(nodes, instead)
        named = {k: v for k, v in request.body.items() if k not in ("graph", "feeds", "types")}
        named = renamed_fields(named, instead)
        yield _pruned(_with_nodes(_changed(request, **named), read))


def _before(nodes: Sequence[Body], node: int) -> list[int]:
    """What a node reads; of one of several results, what all of them are made of."""
    operands = nodes[node].get("operands", ())
    if nodes[node]["op"] == "get_output":
        operands = nodes[operands[0]].get("operands", ())
    return [i for i in dict.fromkeys(operands) if not registry().ops[nodes[i]["op"]].several]


def _reading(nodes: Sequence[Body], place: Callable[[int], int]) -> list[Body]:
    """Nodes whose operands are elsewhere."""
    return [{**n, "operands": list(map(place, n["operands"]))} if "operands" in n else n for n in nodes]


def renamed_fields(fields: Body, place: Callable[[int], int]) -> Body:
    """Fields of a request, the nodes that they name elsewhere."""
    return {name: _renamed_field(name, value, place) for name, value in fields.items()}


def _renamed_field(name: str, value: Any, place: Callable[[int], int]) -> Any:
    if name in _LISTS:
        return list(dict.fromkeys(map(place, value)))
    if name in _TENSORS:
        return [{**one, "node": place(one["node"])} for one in value]
    return place(value) if name == "of" else value


def _pruned(request: Request) -> Request:
    """Without the nodes that nothing asks for, the others numbered anew."""
    nodes, body = _nodes(request), request.body
    roots = {i for name in _LISTS for i in body.get(name, ())} | {body.get("of", len(nodes) - 1)}
    roots |= {one["node"] for name in _TENSORS[1:4] for one in body.get(name, ())}
    if "of" not in body and body.get("outputs"):
        roots.discard(len(nodes) - 1)
        roots |= set(body["outputs"])
    needed = ancestors(roots, lambda i: nodes[i].get("operands", ()))
    place = {node: k for k, node in enumerate(needed)}
    moved = _reading([nodes[i] for i in needed], place.__getitem__)
    fields: Body = {}
    for name, value in body.items():
        there = [one for one in value if one["node"] in place] if name in _TENSORS else value
        fields[name] = value if name == "graph" else _renamed_field(name, there, place.__getitem__)
    return _with_nodes(Request(request.call, fields), moved)


# ---------------------------------------------------------------- functions


def _with_smaller_functions(request: Request) -> Iterator[Request]:
    """A node of one of them left out; and loops of fewer steps."""
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
                        yield _changed(request, graph=_exchanged_node(graph, node, new))


def _smaller(function: Body) -> Iterator[Body]:
    needed = _needed(function)
    if len(needed["nodes"]) < len(function["nodes"]):
        yield needed
    nodes = function["nodes"]
    for node in reversed(range(len(nodes))):
        for operand in _before(nodes, node):

            def instead(i: int, node: int = node, operand: int = operand) -> int:
                return operand if i == node else i

            outputs = list(map(instead, function["outputs"]))
            yield _needed({**function, "nodes": _reading(nodes, instead), "outputs": outputs})


def _needed(function: Body) -> Body:
    """A function without nodes that nothing reads; what is passed to it stays."""
    nodes = function["nodes"]
    inputs = [i for i, node in enumerate(nodes) if node["op"] == "input"]
    needed = ancestors({*function["outputs"], *inputs}, lambda i: nodes[i].get("operands", ()))
    place = {i: k for k, i in enumerate(needed)}
    kept = _reading([nodes[i] for i in needed], place.__getitem__)
    return {**function, "nodes": kept, "outputs": [place[i] for i in function["outputs"]]}


def _exchanged_node(graph: Body, node: Body, new: Body) -> Body:
    """The graph with another node in the place of this very one."""
    parts = [
        {**part, "nodes": [new if n is node else n for n in part["nodes"]]}
        for part in (graph, *graph.get("functions", []))
    ]
    return parts[0] | {"functions": parts[1:]} if "functions" in graph else parts[0]


def _run_alone(graph: Body) -> Body | None:
    """The graph without functions that nothing runs; None where all are run."""
    known = graph.get("functions", [])
    run: set[int] = set()
    todo = [graph]
    while todo:
        found = {k for node in todo.pop()["nodes"] for k in _functions_of(node).values()} - run
        run |= found
        todo += [known[k] for k in found]
    if len(run) == len(known):
        return None
    place = {k: i for i, k in enumerate(sorted(run))}

    def renumbered(part: Body) -> Body:
        return {**part, "nodes": [_with_functions(node, place) for node in part["nodes"]]}

    less = {name: value for name, value in renumbered(graph).items() if name != "functions"}
    return less | {"functions": [renumbered(known[k]) for k in sorted(run)]} if run else less


def _functions_of(node: Body) -> dict[str, int]:
    """The functions that a node runs, by its attributes."""
    names = registry().ops[node["op"]].functions
    return {name: node["attrs"][name] for name in names if name in node.get("attrs", {})}


def _with_functions(node: Body, place: Mapping[int, int]) -> Body:
    named = {name: place[k] for name, k in _functions_of(node).items()}
    return {**node, "attrs": node["attrs"] | named} if named else node


# ---------------------------------------------------------------- extents and attributes


def _with_smaller_extents(request: Request) -> Iterator[Request]:
    """One extent smaller wherever it occurs: in tensors, in types and in attributes."""
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
        # from behind: what is odd often stands at the end
        cut = tuple(slice(-smaller, None) if e == extent else slice(None) for e in array.shape)
        return encode(np.ascontiguousarray(array[cut]), "base64")

    def attribute(value: Any) -> Any:
        if isinstance(value, list):
            return [attribute(each) for each in value]
        return smaller if value == extent and not isinstance(value, bool) else value

    def node(stated: Body) -> Body:
        if "attrs" not in stated:
            return stated
        return {**stated, "attrs": {k: attribute(v) for k, v in stated["attrs"].items()} | _functions_of(stated)}

    def part(stated: Body) -> Body:
        return {**stated, "nodes": list(map(node, stated["nodes"]))}

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
    return decode(tensor, Limits())  # type: ignore[arg-type] # read as it was written


def _with_plainer_numbers(request: Request) -> Iterator[Request]:
    """Of one tensor at a time: all of them one half, those of one half of it, all but one; and whole numbers."""
    for name, i, tensor in _tensors(request):
        if name == "types":
            continue
        array = array_of(tensor)
        for plain in _plainer(array):
            if plain.tobytes() != array.tobytes():
                yield _with_tensors(request, partial(_exchanged, (name, i), plain))


def _exchanged(at: tuple[str, int], by: Array, name: str, i: int, tensor: Body) -> Body:
    """The tensor, or another in its place where it is the one that there is another for."""
    return encode(by, "base64") if (name, i) == at else tensor


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
            yield np.where(array == usual, array, np.round(array))  # else one half and 0 would follow each other
