"""Cases of graphs with functions: how clients build and send them, and what a real server returns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from clients.conformance.bits import Bits, Json, bits_of
from clients.conformance.cases import Case
from clients.conformance.compare import plain
from clients.conformance.making.exchange_parts import (
    CREATED,
    GRAPH_ID,
    REQUEST_ID,
    SEEN_REGISTERING,
    STATS,
    exchange,
    raised,
)
from clients.conformance.steps import graph_of, leaf, on

_INPUT: Final = {"error": {"type": "input"}}
_FORMS: Final = ("json", "binary")
_IN: Final = leaf("input")
_FIRST, _SECOND, _THIRD = ({"function": i} for i in range(3))


def function(outputs: Sequence[Any], *steps: Json, **more: Any) -> Json:
    """Return a function as a case states it."""
    return more | {"steps": list(steps), "outputs": list(outputs)}


def _result(step: int, index: int = 0) -> Json:
    return on("get_output", step, index=index)


def _constant(*values: float) -> Json:
    return {"op": "constant", "attrs": {"value": bits_of(np.array(values))}}


_DOUBLE: Final = function([1], _IN, on("mul_scalar", 0, scalar=2.0))
_NARROW: Final = function([1], _IN, on("add_scalar", 0, scalar=-1.0))
_POSITIVE: Final = function([2], _IN, leaf("full", shape=[], fill=0.0), on("greater", 0, 1))
#: one step of a decay: y − k · y / 2, carried and stacked
_EULER: Final = function(
    [4, 4],
    leaf("input", "k"),
    leaf("input", "y"),
    on("mul", 0, 1),
    on("mul_scalar", 2, scalar=-0.5),
    on("add", 1, 3),
    name="euler",
)
#: four steps of the decay: at k = 1 and y0 = 16 the sum is 8 + 4 + 2 + 1 and its derivative with respect to k is −26;
#: also the third test vector of graph ids
DECAY: Final[Json] = {
    "functions": [_EULER],
    "steps": [
        leaf("parameter", "k"),
        leaf("input", "y0"),
        on("scan", 0, 1, body=_FIRST, carries=1, length=4),
        _result(2, 1),
        on("sum", 3),
    ],
}
#: a constant in a function and one in the graph, with the same node id
_CONSTANTS: Final[Json] = {
    "functions": [_DOUBLE, function([2], _IN, _constant(1.0, 2.5), on("mul", 0, 1), name="scaled")],
    "steps": [leaf("input", "x"), _constant(3.0, -0.0), on("call", 1, body=_SECOND), _result(2), on("add", 0, 3)],
}


def _seen(stated: Json) -> Json:
    """Return a graph as the server receives it, its tensors as bits."""
    graph: Json = plain(graph_of(stated))
    return graph


def _stated(functions: Sequence[Json], *steps: Json) -> Json:
    return {"functions": list(functions), "steps": list(steps)}


def build_cases() -> Iterator[Case]:
    """Yield how clients build functions, and functions that they refuse."""
    for name, stated in (_ops() | _forms()).items():
        want = {name: json.dumps(member) for name, member in graph_of(stated).items() if name != "opset"}
        yield {"id": f"build-{name}", "kind": "build"} | stated | {"want": want}
    for name, stated in _invalid().items():
        yield {"id": f"build-refused-{name}", "kind": "build"} | stated | {"want": _INPUT}


def _ops() -> dict[str, Json]:
    """Return every op that runs functions, with all of its attributes."""
    pair = function([2, 0], _IN, _IN, on("add", 0, 1))
    nonlinear = function([3], *[_IN] * 3, on("mul", 0, 2))
    return {
        "op-scan": _stated([pair], _IN, _IN, on("scan", 0, 1, body=_FIRST, carries=1, sequences=1), _result(2)),
        "op-scan-reverse": _stated(
            [pair], _IN, _IN, on("scan", 0, 1, body=_FIRST, carries=1, sequences=1, length=3, reverse=True), _result(2)
        ),
        "op-scan-of-nothing": _stated(
            [function([0], leaf("arange", stop=3.0))], leaf("scan", body=_FIRST, length=2), _result(0)
        ),
        "op-map": _stated([_DOUBLE], _IN, on("map", 0, body=_FIRST, sequences=1), _result(1)),
        "op-map-at-once": _stated(
            [pair], _IN, _IN, on("map", 0, 1, body=_FIRST, sequences=2, at_once=8), _result(2, 1)
        ),
        "op-while": _stated(
            [_POSITIVE, _NARROW],
            _IN,
            on("while", 0, condition=_FIRST, body=_SECOND, carries=1, max_steps=20),
            *(_result(1, index) for index in range(3)),
        ),
        "op-cond": _stated([_DOUBLE, _NARROW], _IN, _IN, on("cond", 0, 1, then=_FIRST, otherwise=_SECOND), _result(2)),
        "op-cond-of-nothing": _stated(
            [function([0], _constant(1.0)), function([0], _constant(2.0))],
            _IN,
            on("cond", 0, then=_SECOND, otherwise=_FIRST),
            _result(1),
        ),
        "op-call": _stated([_DOUBLE], _IN, on("call", 0, body=_FIRST), _result(1)),
        "op-call-derivative": _stated(
            [_DOUBLE, nonlinear], _IN, on("call", 0, body=_FIRST, derivative=_SECOND, recompute=True), _result(1)
        ),
        "op-fixed-point": _stated(
            [function([2], _IN, _IN, on("mul", 0, 1))],
            _IN,
            _IN,
            on("fixed_point", 0, 1, body=_FIRST, carries=1, tolerance=1e-9, max_steps=50),
            *(_result(2, index) for index in range(3)),
        ),
    }


def _forms() -> dict[str, Json]:
    """Return functions of every form."""
    called = (_IN, on("call", 0, body=_FIRST))
    typed = [leaf("input", "x", dtype="float32", shape=[2, -1]), leaf("input", dtype="bool", zero_d=True)]
    many = [_IN, on("neg", 0), on("exp", 0), on("sum", 2)]
    inner = function([2], _IN, on("call", 0, body=_FIRST), _result(1))
    return {
        "function-decay": DECAY,
        "function-constants": _CONSTANTS,
        "function-unused": _stated([_DOUBLE], _IN, on("neg", 0)),
        "function-typed-parameters": _stated(
            [function([0], *typed)], _IN, _IN, on("call", 0, 1, body=_FIRST), _result(2)
        ),
        "function-outputs-in-another-order": _stated([function([3, 1, 2, 1], *many)], *called, _result(1, 3)),
        "function-outputs-are-parameters": _stated([function([1, 0, 0], _IN, _IN)], _IN, on("call", 0, 0, body=_FIRST)),
        "function-without-outputs": _stated([function([], _IN)], *called),
        "function-name": _stated([function([1], *many, name="wéight → “w”")], *called),
        "functions-of-one-name": _stated([_DOUBLE | {"name": "f"}, _NARROW | {"name": "f"}], *called),
        "function-in-a-function": _stated(
            [_DOUBLE, inner, function([2], _IN, on("call", 0, body=_SECOND), _result(1))],
            _IN,
            on("call", 0, body=_THIRD),
            _result(1),
        ),
        "functions-in-another-order": _stated(
            [_DOUBLE, _NARROW, inner], _IN, *(on("call", 0, body={"function": i}) for i in (2, 0, 1, 0))
        ),
        "function-of-random-numbers": _stated(
            [function([1], _IN, on("random_normal", 0, shape=[2], dtype="float32"))], *called
        ),
        "function-with-a-gradient": _stated([function([2], _IN, on("square", 0), on("grad", 1, 0))], *called),
        "function-of-an-unknown-op": _stated([_DOUBLE], _IN, on("an_op_of_tomorrow", 0, body=_FIRST, scale=2.0)),
        "function-with-an-unknown-op": _stated([function([1], _IN, on("an_op_of_tomorrow", 0))], *called),
    }


def _invalid() -> dict[str, Json]:
    """Return functions that refer to nodes or functions outside of them."""
    called = (_IN, on("call", 0, body=_FIRST))
    return {
        "outer-node-in-a-function": _stated([function([1], _IN, on("add", 0, "outer"))], *called),
        "outer-node-of-a-list-in-a-function": _stated([function([1], _IN, on("cat", 0, "outer", axis=0))], *called),
        "outer-node-as-an-output": _stated([function([0, "outer"], _IN)], *called),
        "node-of-another-graph-in-a-function": _stated([function([1], _IN, on("add", 0, "other"))], *called),
        "node-of-another-graph-as-an-output": _stated([function(["other"], _IN)], *called),
        "function-of-another-graph": _stated([_DOUBLE], _IN, on("call", 0, body={"function": "other"})),
        "function-of-another-graph-in-a-function": _stated(
            [_DOUBLE, function([1], _IN, on("call", 0, body={"function": "other"}))], *called
        ),
        "nan-in-a-function": _stated([function([1], _IN, on("mul_scalar", 0, scalar={"float": "nan"}))], *called),
    }


# -------------------------------------------------------------------- exchanges


def exchange_cases() -> Iterator[Case]:
    """Yield functions in both forms, in a registration, in the graph of an answer, and in errors."""
    answer: Json = {"json": {"values": [], "stats": STATS}}
    returned: list[Json] = [{"returned": {"values": []}}]
    for name, stated in {"decay": DECAY, "constants": _CONSTANTS, "unused": _stated([_DOUBLE], _IN)}.items():
        for form in _FORMS:
            seen = {"method": "POST", "path": "/v1/forward", "form": form, "body": {"graph": _seen(stated)}}
            calls = [{"do": "forward", "graph": stated, "form": form}]
            yield exchange(f"functions-{name}-{form}", [answer], [seen], returned, calls=calls)
    opset = _stated([_DOUBLE], _IN) | {"opset": 7}
    seen = {"method": "POST", "path": "/v1/forward", "body": {"graph": _seen(opset)}}
    calls = [{"do": "forward", "graph": opset}]
    yield exchange("functions-of-a-stated-opset", [answer], [seen], returned, calls=calls)
    yield from _registered()
    yield from _in_answers()
    yield from _in_errors()


def _registered() -> Iterator[Case]:
    for name, stated in {"decay": DECAY, "constants": _CONSTANTS}.items():
        seen = SEEN_REGISTERING | {"body": {"graph": _seen(stated)}}
        results = [{"returned": {"graph_id": GRAPH_ID, "node_count": 2}}]
        yield exchange(f"functions-registered-{name}", [CREATED], [seen], results, calls=[{"do": "register"} | stated])
    other = DECAY | {"functions": [_EULER | {"outputs": [1, 4]}]}
    created = [{"status": 201, "json": CREATED["json"] | {"graph_id": GRAPH_ID[::-1], "graph": graph_of(other)}}]
    both = [{"returned": {"graph_id": graph_id}} for graph_id in (GRAPH_ID, GRAPH_ID[::-1])]
    saw = [SEEN_REGISTERING | {"body": {"graph": _seen(stated)}} for stated in (DECAY, other)]
    calls = [{"do": "register"} | stated for stated in (DECAY, other)]
    yield exchange("functions-registered-each-by-itself", [CREATED, *created], saw, both, calls=calls)


def _in_answers() -> Iterator[Case]:
    """Yield the graph of a derivative, with its constants inline and separate."""
    graph, constant = graph_of(_CONSTANTS), bits_of(np.array([1.0, 2.5]))
    answer: Json = {"gradients": [], "disconnected": [], "stats": STATS}
    call = {"do": "differentiate", "graph": {"steps": [leaf("parameter")]}}
    seen = {"method": "POST", "path": "/v1/differentiate"}
    returned = [{"returned": {"graph": json.dumps(graph)}}]
    yield exchange("functions-answered-json", [{"json": answer | {"graph": graph}}], [seen], returned, calls=[call])
    bare = json.loads(json.dumps(graph))
    del bare["functions"][1]["nodes"][1]["attrs"], bare["nodes"][1]["attrs"]
    tensors = {"functions.1.constants.1": constant, "constants.1": _CONSTANTS["steps"][1]["attrs"]["value"]}
    file = {"file": {"response": answer | {"graph": bare}, "tensors": tensors}}
    yield exchange("functions-answered-binary", [file], [seen], returned, calls=[call])


def _in_errors() -> Iterator[Case]:
    locations: dict[str, Json] = {
        "use": {"node": 2, "function": 0, "function_node": 3, "operand": 1, "pointer": "/graph/functions/0/nodes/3"},
        "form": {"function": 1, "function_node": 0, "pointer": "/graph/functions/1/nodes/0"},
        "result": {"node": 2, "function": 1, "pointer": "/graph/functions/1"},
    }
    for name, location in locations.items():
        problem = {"status": 422, "code": "shape_mismatch", "detail": "It does not fit.", "request_id": REQUEST_ID}
        sent = problem | {"type": "/docs/errors/shape_mismatch", "title": "Shapes do not fit"} | location
        error = raised("graph", 422, "shape_mismatch", detail="It does not fit.", request_id=REQUEST_ID, **location)
        seen = {"method": "POST", "path": "/v1/forward"}
        calls = [{"do": "forward", "graph": DECAY}]
        answer: Json = {"status": 422, "json": sent}
        yield exchange(f"functions-refused-{name}", [answer], [seen], [error], calls=calls)
        errors = [sent, sent | {"function": 2}]
        error = raised("graph", 422, "shape_mismatch", errors=[location, location | {"function": 2}])
        answer = {"status": 422, "json": sent | {"errors": errors}}
        yield exchange(f"functions-refused-{name}-and-more", [answer], [seen], [error], calls=calls)


# -------------------------------------------------------------------- a real server


def live_cases() -> Iterator[Case]:
    """Yield calls on graphs with functions, and refused ones."""
    number, fed = bits_of(np.array(1.0)), [_fed(0, 1.0), _fed(1, 16.0)]
    direction = [{"node": 0, "tensor": number}]
    calls: dict[str, Json] = {
        "forward": {"feeds": fed, "outputs": [4, 3]},
        "gradients": {"feeds": fed, "wrt": [0, 1]},
        "vjp": {"feeds": fed, "cotangents": [{"node": 4, "tensor": number}]},
        "jvp": {"feeds": fed, "tangents": direction},
        "jacobian": {"feeds": fed, "outputs": [3]},
        "hvp": {"feeds": fed, "vectors": direction},
        "hessian": {"feeds": fed},
        "batch": {"feeds": [_fed(0, 1.0, 0.5), fed[1]], "mapped": [0]},
        "plan": {"types": [{"node": n, "dtype": "float64", "shape": []} for n in (0, 1)], "call": "gradients"},
        "check": {"feeds": fed, "directions": 2},
        "differentiate": {"types": [{"node": n, "dtype": "float64", "shape": []} for n in (0, 1)]},
    }
    for call, fields in calls.items():
        for form in _FORMS:
            graph = DECAY | ({"registered": True} if form == "binary" else {})
            yield _live(f"decay-{call}-{form}", {"do": call, "graph": graph, "form": form} | fields)
    yield _live("registration", {"do": "register"} | DECAY, {"do": "list_graphs"})
    for name, stated in _ops().items():
        if name != "op-call-derivative":  # its derivative would have to be linear
            outputs = [i for i, step in enumerate(stated["steps"]) if step["op"] == "get_output"]
            yield _live(name, {"do": "forward", "graph": stated, "feeds": _feeds(stated), "outputs": outputs})
    scaled: Json = {"do": "forward", "graph": _CONSTANTS, "feeds": [_fed(0, 0.5, 0.25)]}
    for form in _FORMS:
        yield _live(f"constants-{form}", scaled | {"form": form})
    yield _live("unused", {"do": "forward", "graph": _forms()["function-unused"], "feeds": [_fed(0, 1.0)]})
    yield from _refusals()


def _live(name: str, *calls: Json) -> Case:
    return {"id": f"live-functions-{name}", "kind": "live", "calls": list(calls)}


def _fed(node: int, *values: float) -> Json:
    """Return a feed of a vector, or of a scalar for a single number."""
    return {"node": node, "tensor": bits_of(np.array(values[0] if len(values) == 1 else values))}


def _feeds(stated: Json) -> list[Json]:
    """Return feeds for the inputs of a graph, of the shapes that its op takes."""
    inputs = [i for i, step in enumerate(stated["steps"]) if step["op"] == "input"]
    op = next(step for step in stated["steps"] if "get_output" != step["op"] != "input")
    truth: Bits = bits_of(np.array(True))
    fed = [_fed(i, 0.5, 0.25, 1.5) if op["op"] == "map" else _fed(i, 0.5) for i in inputs]
    if op["op"] == "scan" and fed:
        fed[-1] = _fed(inputs[-1], 0.5, 0.25, 1.5)
    if op["op"] == "cond":
        fed[0] = {"node": 0, "tensor": truth}
    return fed


def _refusals() -> Iterator[Case]:
    """Yield invalid functions. The error names the function and the node in it."""
    clash = function([2], _IN, _constant(1.0, 2.0), on("add", 0, 1))
    looped = (_IN, on("scan", 0, body=_FIRST, carries=1, length=2), _result(1))
    three = [_fed(0, 1.0, 2.0, 3.0)]
    called = (_IN, on("call", 0, body=_FIRST), _result(1))
    invalid: dict[str, tuple[Json, list[Json]]] = {
        "in-it": (_stated([clash], *called), three),
        "in-a-function-in-it": (
            _stated([clash, function([2], *called)], _IN, on("call", 0, body=_SECOND), _result(1)),
            three,
        ),
        "carry": (_stated([function([1], _IN, on("sum", 0))], *looped), three),
        "unknown-op": (_stated([function([1], _IN, on("an_op_that_nobody_has", 0))], *called), three),
        "unused-and-wrong": (_stated([_DOUBLE, function([1], _IN, on("unheard_of", 0))], *called), three),
        "parameters": (_stated([_DOUBLE], _IN, on("call", 0, 0, body=_FIRST), _result(1)), three),
        "branches": (
            _stated([_DOUBLE, clash], _IN, _IN, on("cond", 0, 1, then=_FIRST, otherwise=_SECOND), _result(2)),
            [{"node": 0, "tensor": bits_of(np.array(True))}, _fed(1, 1.0)],
        ),
        "opset": (_stated([_DOUBLE], *called) | {"opset": 1}, three),
    }
    for name, (stated, feeds) in invalid.items():
        yield _live(f"refused-{name}", {"do": "forward", "graph": stated, "feeds": feeds})
