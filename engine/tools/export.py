"""A gradient as a program: the client's own statements, and behind them those that compute it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.calls import Gradients
from engine.calls.call import FeedTypes
from engine.graph.ir import Builder, Graph, Node, Value, ancestors
from engine.graph.kinds import key
from engine.graph.limits import NO_DEADLINE, Deadline, Limits
from engine.graph.op import Definition
from engine.graph.program import Program
from engine.graph.statement import Statement
from engine.oplib.score_op import ScoreOp
from engine.passes.allowance import Allowance
from engine.passes.pipeline import optimise
from engine.planning.compiler import open_scope


class Exported(NamedTuple):
    """Statements, the one that each gradient is, and the nodes of `wrt` without a path."""

    statements: tuple[Statement, ...]
    gradients: tuple[tuple[int, int], ...]
    disconnected: tuple[int, ...]


def export_gradients(
    program: Program, types: FeedTypes, call: Gradients, limits: Limits, deadline: Deadline = NO_DEADLINE
) -> Exported:
    """The program that computes the gradients of `call`, for feeds of these types. Raises EngineError.

    Its first statements are the program's own, under their numbers. What is appended reads them, and is optimised
    by itself: no pass looks across one of the client's nodes. Where a rule writes a derivative with the result
    (exp' = y), that is written once more. So the result may be differentiated again by any node, to the same end as
    with `grad` nodes.
    """
    needed = program.needed(call.roots)
    single = [i for i in needed if not program.statements[i].op.several]
    scope = open_scope(program, types, needed, single, limits, deadline)
    results, disconnected = call.write_graph(scope)
    gradients = [(label.nodes[0], value) for label, value in results if label.kind == "gradients"]
    written = _beyond(scope.builder, scope.nodes, [value for _, value in gradients])
    graph = optimise(written, Allowance(limits.flops, deadline))
    statements, where = _appended(program, graph)
    found = tuple((node, i) for (node, _), i in zip(gradients, where, strict=True))
    return Exported(statements, found, disconnected)


def _beyond(builder: Builder, nodes: Mapping[int, Value], results: Sequence[Value]) -> Graph:
    """The graph of `results` with the client's nodes as its leaves, each fed under its number."""
    known = {value.index: node for node, value in nodes.items() if not value.node.op.several}
    writing, values = Builder(builder.registry, builder.limits, builder.deadline), dict[int, Value]()
    several: dict[int, Sequence[Value]] = {}
    roots = [r.index for r in results]
    for index in ancestors(roots, lambda i: () if i in known else builder.nodes[i].operands):
        node = builder.nodes[index]
        if index in known:
            values[index] = writing.leaf(node.type, known[index])
        elif isinstance(node.op, ScoreOp):
            several[index] = node.op.written_out(*(values[i] for i in node.operands), **node.attrs)
            values[index] = several[index][0]
        elif several.keys() & node.operands and node.op.name == "get_output":
            values[index] = several[node.operands[0]][node.attrs["index"]]
        else:
            values[index] = writing.copy(node, [values[i] for i in node.operands])
    return writing.graph([values[r.index] for r in results])


def _appended(program: Program, graph: Graph) -> tuple[tuple[Statement, ...], list[int]]:
    """The program's statements and those of `graph`, and the numbers of its outputs: each a node of its own."""
    statements, where = list(program.statements), dict[int, int]()
    for index, node in enumerate(graph.nodes):
        if node.is_leaf:
            where[index] = node.attrs["feed"]
            continue
        statements += _statements(graph.registry.ops, node, [where[i] for i in node.operands], len(statements))
        where[index] = len(statements) - 1
    identity, first = program.registry.ops["identity"], len(statements)
    statements += [Statement(identity, (where[i],)) for i in graph.outputs]
    return tuple(statements), list(range(first, len(statements)))


def _statements(ops: Mapping[str, Definition], node: Node, operands: Sequence[int], count: int) -> list[Statement]:
    """A node as a client would write it, as statement number `count`; where attributes cannot say it, in two."""
    if node.op.name == "full" and not math.isfinite(node.attrs["fill"]):
        value = np.full((), node.attrs["fill"], node.type.dtype)
        shape = {"shape": list(node.type.shape)}
        return [Statement(ops["constant"], (), {"value": value}), Statement(ops["broadcast_to"], (count,), shape)]
    return [Statement(node.op, tuple(operands), _stated(node))]


def _stated(node: Node) -> dict[str, Any]:
    """The attributes that are not at their default, as a client writes them."""
    return {
        name: node.op.attrs[name].definition.stated(value)
        for name, value in node.attrs.items()
        if value is not None and key(value) != key(node.op.attrs[name].default)
    }
