"""Rewrites of loops before they are planned: hoisted invariants, merged and segmented loops, and lowering.

Loop-invariant code motion: nodes of a body that depend on consts alone are computed once, in front of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.bodies.runs_functions import RunsFunctions
from engine.bodies.tidy import derived, tidy
from engine.graph.body import Body
from engine.graph.dtypes import INTEGERS
from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_LIMITS
from engine.graph.tensor_type import TensorType
from engine.oplib.elementwise import Elementwise

#: bytes of a value in front of a loop that are worth nothing, where it is larger than what it is made of
_SMALL: Final = 1 << 12


def hoist(graph: Graph) -> Graph:
    """`graph` with such values as further consts of its loops. They have the same bits, and are computed once."""
    if not any(isinstance(node.op, RunsFunctions) and node.op.steps_body for node in graph.nodes):
        return graph
    return Builder(graph.registry, NO_LIMITS).rewrite(graph, _hoisted)


def _hoisted(node: Node, operands: Sequence[Value]) -> Value | None:
    """The loop with what it can have from outside; None where that is nothing, or it is no loop."""
    if not isinstance(node.op, RunsFunctions) or not node.op.steps_body:
        return None
    body: Body = node.attrs["body"]
    consts = node.op.consts(len(operands), **node.attrs)
    found = frontier(body, consts, is_run=node.op.name == "scan" and node.attrs["length"] > 0)
    if not found:
        return None
    graph = tidy(body).graph
    front = body.made(
        ("front", consts, found),
        lambda: derived(body, graph.rewritten(graph.nodes, found), body.inputs[:consts]),
    )
    made = front.inline_into(operands[0].builder, operands[:consts])
    attrs = {name: _with_more(value, body, consts, found) for name, value in node.attrs.items()}
    return operands[0].builder.emit(node.op, [*operands[:consts], *made, *operands[consts:]], attrs)


def frontier(body: Body, consts: int, *, is_run: bool) -> tuple[int, ...]:
    """Nodes of the (tidy) body that depend on the consts alone, and that others read, or that are results.

    Where it may be that no step `is_run`, none that would raise an error.
    """
    return body.made(("frontier", consts, is_run), lambda: _frontier(tidy(body).graph, consts, is_run=is_run))


def _frontier(graph: Graph, consts: int, *, is_run: bool) -> tuple[int, ...]:
    fixed, moved = set[int](), set[int]()
    for i, node in enumerate(graph.nodes):
        if node.is_leaf:
            is_fixed = node.attrs["feed"] < consts
        else:
            is_fixed = bool(node.operands) and fixed.issuperset(node.operands) and _is_worth(graph, node)
            is_fixed = is_fixed and (is_run or not _may_refuse(graph, node))
        if is_fixed:
            fixed.add(i)
    read = {*graph.outputs, *[o for i, node in enumerate(graph.nodes) if i not in fixed for o in node.operands]}
    moved = {i for i in fixed & read if not graph.nodes[i].is_leaf and not graph.nodes[i].op.several}
    return tuple(sorted(moved))


def _is_worth(graph: Graph, node: Node) -> bool:
    """Whether it is no larger than what it is made of, or small; several results are kept together, inside."""
    if node.op.several or node.op.name == "get_output":
        return False
    made_of = sum(graph.nodes[i].type.nbytes for i in node.operands)
    return node.type.nbytes <= max(made_of, _SMALL)


def _may_refuse(graph: Graph, node: Node) -> bool:
    """Whether it may find an index that is outside its axis."""
    if node.op.is_view or isinstance(node.op, Elementwise):
        return False
    return any(graph.nodes[i].type.dtype.name in INTEGERS for i in node.operands)


def _with_more(value: object, body: Body, consts: int, found: tuple[int, ...]) -> object:
    """A function of a loop whose consts have grown; anything else as it is."""
    if not isinstance(value, Body):
        return value
    types = [tidy(body).graph.nodes[i].type for i in found]
    return value.made(("with more", body.digest, consts, found), lambda: _widened(value, body, consts, found, types))


def _widened(value: Body, body: Body, consts: int, found: tuple[int, ...], types: Sequence[TensorType]) -> Body:
    graph = tidy(value).graph
    more = dict(zip(found, range(consts, consts + len(found)), strict=True)) if value == body else {}
    inputs = [*value.inputs[:consts], *types, *value.inputs[consts:]]
    builder = value.budget.builder(graph.registry)
    values: list[Value] = []
    for i, node in enumerate(graph.nodes):
        if node.is_leaf:
            feed = node.attrs["feed"]
            values.append(builder.leaf(node.type, feed if feed < consts else feed + len(found)))
        elif i in more:
            values.append(builder.leaf(node.type, more[i]))
        else:
            values.append(builder.copy(node, [values[o] for o in node.operands]))
    return derived(value, builder.graph([values[o] for o in graph.outputs]), inputs)
