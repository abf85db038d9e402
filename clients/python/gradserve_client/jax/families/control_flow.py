"""Loops and branches: `scan`, `while` and `cond`, whose bodies become functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import outputs_of
from gradserve_client.jax.bodies import build_function, constant_positions
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import Value

_WORKAROUND: Final = "pass a bound as `max_steps`, or use lax.fori_loop or lax.scan"


@RULES("scan")
def scan(call: Call) -> Results:
    """`scan` of a function; with `unroll`, its steps one after another."""
    consts, carries = int(call.params["num_consts"]), int(call.params["num_carry"])
    closed, length = call.params["jaxpr"], int(call.params["length"])
    if call.context.unroll:
        return _unroll(call, closed, consts, carries, length)
    constants = constant_positions(call.operands, range(consts))
    entries = [_entry_type(value) for value in call.operands[consts + carries :]]
    body = build_function(call.context, call.scope, closed, [*call.operands[: consts + carries], *entries], constants)
    loop = call.graph.scan(
        *(node for i, node in _passed(call, constants)),
        body=body,
        carries=carries,
        sequences=len(entries),
        length=length,
        reverse=bool(call.params["reverse"]) or None,
    )
    return outputs_of(loop, len(call.results))


def _passed(call: Call, constants: set[int]) -> list[tuple[int, Node]]:
    return [(i, call.node(i)) for i in range(len(call.operands)) if i not in constants]


def _entry_type(value: Value) -> Value:
    """Return a value of the type of one entry of a sequence."""
    return Value(value.shape[1:], value.dtype, value.is_key)


def _unroll(call: Call, closed: Any, consts: int, carries: int, length: int) -> Results:
    constants, carried = [*call.operands[:consts]], [*call.operands[consts : consts + carries]]
    sequences = call.operands[consts + carries :]
    rows: dict[int, list[Value]] = {}
    steps = range(length)
    for step in reversed(steps) if call.params["reverse"] else steps:
        call.context.budget.add_steps()
        entries = [_entry_type(value).with_node(call.scope.node_of(value).select(step)) for value in sequences]
        results = call.inline(closed, [*constants, *carried, *entries])
        carried, rows[step] = results[:carries], results[carries:]
    stacks = [
        call.graph.stack(*(call.scope.node_of(rows[step][i]) for step in steps), axis=0)
        if length
        else call.graph.full(shape=[*result.node_shape], dtype=result.dtype.name)
        for i, result in enumerate(call.results[carries:])
    ]
    return [*carried, *stacks]


@RULES("while")
def while_(call: Call) -> Results:
    """`while` of at most `max_steps` steps. If the loop has not ended by then, its floats are NaN."""
    max_steps = call.context.max_steps
    if max_steps is None:
        raise Blocked("the number of its steps depends on the data", _WORKAROUND)
    condition_consts, body_consts = int(call.params["cond_nconsts"]), int(call.params["body_nconsts"])
    carried = call.operands[condition_consts + body_consts :]
    constants = constant_positions(call.operands, range(condition_consts + body_consts))
    condition = _while_function(
        call, call.params["cond_jaxpr"], constants, (0, condition_consts), (condition_consts, body_consts)
    )
    body = _while_function(
        call, call.params["body_jaxpr"], constants, (condition_consts, body_consts), (0, condition_consts)
    )
    loop = call.graph.while_(
        *(node for _, node in _passed(call, constants)),
        condition=condition,
        body=body,
        carries=len(carried),
        max_steps=max_steps,
    )
    finished = loop.get_output(len(carried) + 1)
    return [
        finished.where(node, call.constant(np.nan, result.dtype)) if result.is_float else node
        for node, result in zip(outputs_of(loop, len(carried)), call.results, strict=True)
    ]


def _while_function(
    call: Call, closed: Any, constants: set[int], own: tuple[int, int], others: tuple[int, int]
) -> GraphFunction:
    """Build a function of all operands of a `while` from a jaxpr that reads its own constants and the carries.

    `own` and `others` are the first position and the number of the constants of this jaxpr and of the other one.
    """
    all_consts = own[1] + others[1]

    def select(values: Sequence[Value]) -> list[Value]:
        return [*values[own[0] : own[0] + own[1]], *values[all_consts:]]

    return build_function(call.context, call.scope, _SelectingJaxpr(closed, select), call.operands, constants)


class _SelectingJaxpr:
    """A jaxpr that reads only some of its operands, which `reads` selects."""

    def __init__(self, closed: Any, reads: Any) -> None:
        self.closed = closed
        self.reads = reads
        self.jaxpr = closed.jaxpr


@RULES("cond")
def cond(call: Call) -> Results:
    """`cond`, nested if there are more than two branches. A branch that a constant selects is inlined."""
    branches = call.params["branches"]
    last = len(branches) - 1
    operands = call.operands[1:]
    if call.is_constant(0) or not last:
        return call.inline(branches[min(max(0, int(call.constant_value(0))), last) if last else 0], operands)
    constants = constant_positions(operands, range(len(operands)))
    functions = [build_function(call.context, call.scope, branch, operands, constants) for branch in branches]
    passed = [call.scope.node_of(value) for i, value in enumerate(operands) if i not in constants]
    index = call.node() if call.dtype().kind != "b" else call.node().cast("int32")
    dtype = call.dtype() if call.dtype().kind != "b" else np.dtype(np.int32)
    node = _nested_cond(call.graph, index, dtype, 0, functions, passed, len(call.results))
    return outputs_of(node, len(call.results))


def _nested_cond(
    graph: Graph,
    index: Node,
    dtype: Any,
    first: int,
    functions: Sequence[GraphFunction],
    passed: Sequence[Node],
    results: int,
) -> Node:
    """Write a `cond` that runs the first function if the index is at most `first`, else chooses among the others."""
    is_later = index.greater(graph.constant(np.asarray(first, dtype)))
    if len(functions) == 2:
        return graph.cond(is_later, *passed, then=functions[1], otherwise=functions[0])

    def others(inner: Graph) -> Sequence[Node]:
        inner_index, *operands = (inner.input() for _ in range(len(passed) + 1))
        return outputs_of(_nested_cond(inner, inner_index, dtype, first + 1, functions[1:], operands, results), results)

    def first_branch(inner: Graph) -> Sequence[Node]:
        _, *operands = (inner.input() for _ in range(len(passed) + 1))
        return outputs_of(inner.call(*operands, body=functions[0]), results)

    then, otherwise = graph.function(others, "others"), graph.function(first_branch, "this")
    return graph.cond(is_later, index, *passed, then=then, otherwise=otherwise)


@RULES("platform_index")
def platform_index(call: Call) -> Results:
    """The index of the branch for all platforms or for the CPU, which is fixed when the graph is made."""
    platforms = call.params["platforms"]
    for i, names in enumerate(platforms):
        if names is None or "cpu" in names:
            return np.asarray(i, np.int32)
    raise Blocked("it has no branch for CPUs")
