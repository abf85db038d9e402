"""Requests on graphs with functions: endless loops, oversized requests, and loops with known results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tests.guarantees.jobs import Json, feed, node, request

X, P = node("input"), node("parameter")
ONE = feed(0, [], [1.0])


def function(outputs: Sequence[int], *nodes: Json) -> Json:
    """A function of these nodes."""
    return {"nodes": list(nodes), "outputs": list(outputs)}


def result(i: int, index: int = 0) -> Json:
    """One result of a node that has several."""
    return node("get_output", i, index=index)


def running(functions: Sequence[Json], *nodes: Json, feeds: Sequence[Json] = (ONE,), **more: Any) -> bytes:
    """A request on a graph with functions."""
    graph = {"opset": 2, "functions": list(functions), "nodes": list(nodes)}
    return request([], list(feeds), graph=graph, **more)


# ---------------------------------------------------------------- endless loops

#: more steps than a loop can complete before it is stopped
_ENDLESS = 2 * 10**10
_ALWAYS = function([1], X, node("constant", value={"dtype": "bool", "shape": [], "data": [1]}))
#: a step that takes a few nanoseconds in machine code, and a step with an op that runs in Python
_STEPS = {
    "machine code": function([2], X, node("mul_scalar", 0, scalar=0.5), node("add_scalar", 1, scalar=1.0)),
    "Python": function([3], X, node("broadcast_to", 0, shape=[16]), node("sort", 1, axis=0), node("mean", 2)),
}


def endless() -> dict[str, bytes]:
    """Loops that run for minutes, by name."""
    return {f"{op} in {where}": loop(body) for where, body in _STEPS.items() for op, loop in _LOOPS.items()}


def _scan(body: Json) -> bytes:
    return running([body], X, node("scan", 0, body=0, carries=1, length=_ENDLESS), result(1))


def _while(body: Json) -> bytes:
    attrs = {"condition": 0, "body": 1, "carries": 1, "max_steps": _ENDLESS}
    return running([_ALWAYS, body], X, node("while", 0, **attrs), result(1))


_LOOPS: dict[str, Callable[[Json], bytes]] = {"scan": _scan, "while": _while}


# ---------------------------------------------------------------- oversized requests


def oversized() -> Iterator[tuple[str, bytes]]:
    """Small requests for gradients that exceed a default limit, by name."""
    step, stacking = function([1], X, node("sin", 0)), function([1, 1], X, node("sin", 0))
    loops = [node("scan", 0, body=k, carries=1, length=10**6) for k in range(2)]
    yield "nested scans", running([step, function([2], X, loops[0], result(1))], P, loops[1], result(1))
    double = [step, *(_repeated(k, 2) for k in range(40))]
    yield "40 functions that each call the previous one twice", running(double, P, node("call", 0, body=40), result(1))
    many = [step, *(_repeated(k, 32) for k in range(12))]
    yield "12 functions that each call the previous one 32 times", running(many, P, node("call", 0, body=12), result(1))
    rows = [P, node("broadcast_to", 0, shape=[64]), node("scan", 1, body=0, carries=1, length=10**9), result(2, 1)]
    yield "a stack of 10⁹ steps", running([stacking], *rows, node("sum", 3))
    carried = function([1], X, node("tanh", 0))
    wide = [P, node("broadcast_to", 0, shape=[10**5]), node("scan", 1, body=0, carries=1, length=10**9), result(2)]
    yield "carries of 10⁹ steps", running([carried], *wide, node("sum", 3))
    for steps in (10**12, 2**62):
        attrs = {"condition": 0, "body": 1, "carries": 1, "max_steps": steps}
        empty = function([0], X)
        yield f"{steps:.0e} empty steps", running([_ALWAYS, empty], P, node("while", 0, **attrs), result(1))
        iterated = node("fixed_point", 0, body=0, carries=1, tolerance=0.0, max_steps=steps)
        yield f"{steps:.0e} steps to a fixed point", running([step], P, iterated, result(1))
    entries = [P, node("broadcast_to", 0, shape=[10**7]), node("map", 1, body=1, sequences=1), result(2)]
    yield "a map over loops", running([step, function([2], X, loops[0], result(1))], *entries, node("sum", 3))


def large_draws() -> Iterator[tuple[str, bytes]]:
    """Small requests for the values of huge random tensors, by name."""
    ops: dict[str, Json] = {
        op: {"shape": [2**20, 2**20], "dtype": "float64"} for op in ("random_uniform", "random_normal")
    }
    ops["random_bits"] = {"shape": [2**20, 2**20], "dtype": "uint32"}
    ops |= {op: {"k": 2**40} for op in ("random_split", "random_permutation")}
    for op, attrs in ops.items():
        nodes = [X, node("random_key", 0), node(op, 1, **attrs), node("sum", 2)]
        yield f"{op} of 2⁴⁰", running([], *nodes, feeds=[feed(0, [], [7], "int64")])


def _repeated(body: int, times: int) -> Json:
    """A function that calls another one `times` times."""
    calls = [each for k in range(times) for each in (node("call", 2 * k, body=body), result(2 * k + 1))]
    return function([2 * times], X, *calls)


def of_many_shapes(nodes: int, shapes: int) -> bytes:
    """A request with one loop body of `nodes` nodes, used by loops over vectors of `shapes` lengths."""
    body = function([nodes - 1], X, *(node("sin", i) for i in range(nodes - 1)))
    graph, sums = [P], list[int]()
    for k in range(1, shapes + 1):
        first = len(graph)
        graph.append(node("broadcast_to", 0, shape=[k]))
        graph.append(node("scan", first, body=0, carries=1, length=2))
        graph += [result(first + 1), node("sum", first + 2)]
        sums.append(first + 3)
    return running([body], *graph, node("stack", *sums, axis=0))


# ---------------------------------------------------------------- known results

_DECAY = function([4, 4], X, X, node("mul", 0, 1), node("mul_scalar", 2, scalar=-0.5), node("add", 1, 3))


def decay(rng: np.random.Generator) -> tuple[bytes, dict[str, Any]]:
    """Σ y (1 − k/2)ᵗ, for t = 1 … n, and its gradient: the request and the expected results."""
    n, k, y = int(rng.choice([1, 4, 30, 400])), rng.uniform(0.1, 1.9), rng.standard_normal()
    scan = node("scan", 0, 1, body=0, carries=1, length=n)
    feeds = [feed(0, [], [k]), feed(1, [], [y])]
    body = running([_DECAY], P, P, scan, result(2, 1), node("sum", 3), feeds=feeds)
    t, left = np.arange(1, n + 1), 1 - k / 2
    by = {"gradients.0": -0.5 * y * np.sum(t * left ** (t - 1)), "gradients.1": np.sum(left**t)}
    return body, {"values.4": y * np.sum(left**t), **by}


def halving(rng: np.random.Generator) -> tuple[bytes, dict[str, Any]]:
    """The first x / 2ⁿ below 1, computed by a `while` that counts its steps."""
    x = float(rng.uniform(1, 1e6))
    n = int(np.floor(np.log2(x))) + 1
    above = function(
        [2], X, node("constant", value={"dtype": "float64", "shape": [], "data": [1.0]}), node("greater_equal", 0, 1)
    )
    half = function([1], X, node("mul_scalar", 0, scalar=0.5))
    loop = node("while", 0, condition=0, body=1, carries=1, max_steps=100)
    body = running([above, half], P, loop, result(1), result(1, 1), feeds=[feed(0, [], [x])], of=2, outputs=[2, 3])
    return body, {"values.2": x / 2**n, "values.3": n, "gradients.0": 0.5**n}
