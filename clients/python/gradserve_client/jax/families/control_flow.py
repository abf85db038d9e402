"""Loops and branches: bodies as functions, which `scan`, `while` and `cond` run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import several
from gradserve_client.jax.bodies import function, known_places
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import Value

_BOUND: Final = "state a bound as `max_steps`, or count the steps by lax.fori_loop or lax.scan"


@RULES("scan")
def scan(call: Call) -> Said:
    """`scan` of a function; its steps one behind the other with `unroll`."""
    consts, carries = int(call.params["num_consts"]), int(call.params["num_carry"])
    closed, length = call.params["jaxpr"], int(call.params["length"])
    if call.context.unroll:
        return _unrolled(call, closed, consts, carries, length)
    places = known_places(call.operands, range(consts))
    entries = [_entry(value) for value in call.operands[consts + carries :]]
    body = function(call.context, call.scope, closed, [*call.operands[: consts + carries], *entries], places)
    found = call.graph.scan(
        *(node for i, node in _passed(call, places)),
        body=body,
        carries=carries,
        sequences=len(entries),
        length=length,
        reverse=bool(call.params["reverse"]) or None,
    )
    return several(found, len(call.results))


def _passed(call: Call, inside: set[int]) -> list[tuple[int, Node]]:
    return [(i, call.node(i)) for i in range(len(call.operands)) if i not in inside]


def _entry(value: Value) -> Value:
    """A value of the type of what a step reads of a sequence."""
    return Value(value.shape[1:], value.dtype, value.is_key)


def _unrolled(call: Call, closed: Any, consts: int, carries: int, length: int) -> Said:
    given, carried = [*call.operands[:consts]], [*call.operands[consts : consts + carries]]
    sequences = call.operands[consts + carries :]
    rows: dict[int, list[Value]] = {}
    steps = range(length)
    for step in reversed(steps) if call.params["reverse"] else steps:
        call.context.budget.add_steps()
        entries = [_entry(value).with_node(call.scope.node_of(value).select(step)) for value in sequences]
        results = call.inline(closed, [*given, *carried, *entries])
        carried, rows[step] = results[:carries], results[carries:]
    stacks = [
        call.graph.stack(*(call.scope.node_of(rows[step][i]) for step in steps), axis=0)
        if length
        else call.graph.full(shape=[*result.node_shape], dtype=result.dtype.name)
        for i, result in enumerate(call.results[carries:])
    ]
    return [*carried, *stacks]


@RULES("while")
def while_(call: Call) -> Said:
    """`while`, of at most `max_steps` steps. Floats of a loop that these did not end are NaN."""
    most = call.context.max_steps
    if most is None:
        raise Blocked("it goes on until its data say otherwise", _BOUND)
    tests, consts = int(call.params["cond_nconsts"]), int(call.params["body_nconsts"])
    carried = call.operands[tests + consts :]
    inside = known_places(call.operands, range(tests + consts))
    condition = _beside(call, call.params["cond_jaxpr"], inside, (0, tests), (tests, consts))
    body = _beside(call, call.params["body_jaxpr"], inside, (tests, consts), (0, tests))
    found = call.graph.while_(
        *(node for _, node in _passed(call, inside)),
        condition=condition,
        body=body,
        carries=len(carried),
        max_steps=most,
    )
    finished = found.get_output(len(carried) + 1)
    return [
        finished.where(node, call.constant(np.nan, result.dtype)) if result.is_float else node
        for node, result in zip(several(found, len(carried)), call.results, strict=True)
    ]


def _beside(call: Call, closed: Any, inside: set[int], own: tuple[int, int], others: tuple[int, int]) -> GraphFunction:
    """A function of all consts and the carries, of which the jaxpr reads its own consts and the carries.

    `own` and `others` say where which consts begin among the operands, and how many they are.
    """
    all_consts = own[1] + others[1]

    def reads(values: Sequence[Value]) -> list[Value]:
        return [*values[own[0] : own[0] + own[1]], *values[all_consts:]]

    return function(call.context, call.scope, _Reading(closed, reads), call.operands, inside)


class _Reading:
    """A jaxpr that reads some of what it is given."""

    def __init__(self, closed: Any, reads: Any) -> None:
        self.closed = closed
        self.reads = reads
        self.jaxpr = closed.jaxpr


@RULES("cond")
def cond(call: Call) -> Said:
    """`cond`, one within the other where there are more than two branches. A choice that is known is put inline."""
    branches = call.params["branches"]
    last = len(branches) - 1
    operands = call.operands[1:]
    if call.is_constant(0) or not last:
        return call.inline(branches[min(max(0, int(call.known(0))), last) if last else 0], operands)
    inside = known_places(operands, range(len(operands)))
    functions = [function(call.context, call.scope, branch, operands, inside) for branch in branches]
    passed = [call.scope.node_of(value) for i, value in enumerate(operands) if i not in inside]
    index = call.node() if call.dtype().kind != "b" else call.node().cast("int32")
    dtype = call.dtype() if call.dtype().kind != "b" else np.dtype(np.int32)
    found = _chosen(call.graph, index, dtype, 0, functions, passed, len(call.results))
    return several(found, len(call.results))


def _chosen(
    graph: Graph,
    index: Node,
    dtype: Any,
    first: int,
    functions: Sequence[GraphFunction],
    passed: Sequence[Node],
    results: int,
) -> Node:
    """The branch `first` where the index is not beyond it; else one of the others."""
    beyond = index.greater(graph.constant(np.asarray(first, dtype)))
    if len(functions) == 2:
        return graph.cond(beyond, *passed, then=functions[1], otherwise=functions[0])

    def others(inner: Graph) -> Sequence[Node]:
        further, *given = (inner.input() for _ in range(len(passed) + 1))
        return several(_chosen(inner, further, dtype, first + 1, functions[1:], given, results), results)

    def this(inner: Graph) -> Sequence[Node]:
        _, *given = (inner.input() for _ in range(len(passed) + 1))
        return several(inner.call(*given, body=functions[0]), results)

    then, otherwise = graph.function(others, "others"), graph.function(this, "this")
    return graph.cond(beyond, index, *passed, then=then, otherwise=otherwise)


@RULES("platform_index")
def platform_index(call: Call) -> Said:
    """The branch for all platforms, or that for processors: which one a graph is, stands when it is made."""
    platforms = call.params["platforms"]
    for i, names in enumerate(platforms):
        if names is None or "cpu" in names:
            return np.asarray(i, np.int32)
    raise Blocked("it is for platforms that are no processors")
