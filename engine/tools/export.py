"""A gradient as a program: the client's own statements, and behind them those that compute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.calls import Gradients
from engine.calls.call import FeedTypes
from engine.graph.ir import Builder, Graph, Value, ancestors
from engine.graph.limits import NO_DEADLINE, Deadline, Limits
from engine.graph.program import Function, Program
from engine.graph.statement import Statement
from engine.passes.allowance import Allowance
from engine.passes.pipeline import optimise
from engine.planning.compiler import open_scope
from engine.tools.statements import StatementWriter
from engine.tools.written_out import WrittenOut


class Exported(NamedTuple):
    """Statements, the functions they run, the one that each gradient is, and the nodes of `wrt` without a path."""

    statements: tuple[Statement, ...]
    functions: tuple[Function, ...]
    gradients: tuple[tuple[int, int], ...]
    disconnected: tuple[int, ...]


def export_gradients(
    program: Program, types: FeedTypes, call: Gradients, limits: Limits, deadline: Deadline = NO_DEADLINE
) -> Exported:
    """The program that computes the gradients of `call`, for feeds of these types. Raises EngineError.

    Its first statements and functions are the program's own, under their numbers. What is appended reads them, and is
    optimised by itself: no pass looks across one of the client's nodes. Where a rule writes a derivative with the
    result (exp' = y), that is written once more. So the result may be differentiated again by any node, to the same end
    as with `grad` nodes.
    """
    needed = program.needed(call.roots)
    single = [i for i in needed if not program.statements[i].op.several]
    scope = open_scope(program, types, needed, single, limits, deadline)
    results, disconnected = call.write_graph(scope)
    gradients = [(label.nodes[0], value) for label, value in results if label.kind == "gradients"]
    written = _beyond(scope.builder, scope.nodes, [value for _, value in gradients])
    graph = optimise(written, Allowance(limits.flops, deadline))
    writer, statements = StatementWriter(program, limits), list(program.statements)
    leaves = {i: node.attrs["feed"] for i, node in enumerate(graph.nodes) if node.is_leaf}
    outputs = writer.append(statements, graph, leaves)
    identity, first = program.registry.ops["identity"], len(statements)
    statements += [Statement(identity, (i,)) for i in outputs]  # so that each is a node of its own
    found = tuple((node, first + place) for place, (node, _) in enumerate(gradients))
    return Exported(tuple(statements), tuple(writer.functions), found, disconnected)


def _beyond(builder: Builder, nodes: Mapping[int, Value], results: Sequence[Value]) -> Graph:
    """The graph of `results` with the client's nodes as its leaves, each fed under its number."""
    known = {value.index: node for node, value in nodes.items() if not value.node.op.several}
    writing = WrittenOut(Builder(builder.registry, builder.limits, builder.deadline))
    roots = [r.index for r in results]
    for index in ancestors(roots, lambda i: () if i in known else builder.nodes[i].operands):
        node = builder.nodes[index]
        if index in known:
            writing.values[index] = writing.builder.leaf(node.type, known[index])
        else:
            writing.copy(index, node)
    return writing.builder.graph([writing.values[r.index] for r in results])
