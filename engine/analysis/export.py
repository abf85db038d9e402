"""A gradient as a program: the client's own statements, and behind them those that compute it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.autodiff.bodies import derived, tidy
from engine.autodiff.calls import Gradients
from engine.autodiff.calls.call import FeedTypes
from engine.compiler.compiler import open_scope
from engine.ir.body import Body
from engine.ir.graph import Builder, Graph, Node, Value, ancestors
from engine.ir.kinds import key
from engine.ir.limits import NO_DEADLINE, Deadline, Limits
from engine.ir.passes import Allowance, optimise
from engine.ir.program import Function, Program
from engine.ir.statement import Statement
from engine.ir.tensor_type import TensorType
from engine.ops.common.source import word_of

# Nodes in ops of the registry alone: what the engine writes for itself is written out.


class WrittenOut:
    """Nodes of a graph as they are copied into another; `values` says where each went."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.values: dict[int, Value] = {}
        self._several: dict[int, Sequence[Value]] = {}

    def copy(self, index: int, node: Node) -> None:
        """Append a node, what it reads being there."""
        operands = [self.values[i] for i in node.operands]
        if node.op.internal:
            self._several[index] = node.op.written_out(*operands, **node.attrs)
            self.values[index] = self._several[index][0]
        elif node.op.name == "get_output" and node.operands[0] in self._several:
            self.values[index] = self._several[node.operands[0]][node.attrs["index"]]
        else:
            self.values[index] = self.builder.copy(node, operands)


def body_written_out(body: Body) -> Body:
    """The body in these ops; what bodies in it run is left as it is."""
    return body.made("written out", lambda: _body(tidy(body)))


def _body(body: Body) -> Body:
    copied = WrittenOut(body.budget.builder(body.graph.registry))
    for index, node in enumerate(body.graph.nodes):
        if node.is_leaf:
            copied.values[index] = copied.builder.leaf(node.type, node.attrs["feed"])
        else:
            copied.copy(index, node)
    graph = copied.builder.graph([copied.values[i] for i in body.graph.outputs])
    return derived(body, graph, body.inputs)


# Nodes as a client would write them: statements, and functions in the place of bodies.


class StatementWriter:
    """Writer of nodes behind the statements of a program.

    Its `functions` are the program's own, and behind them one for each body, after those that it runs.
    """

    def __init__(self, program: Program, limits: Limits) -> None:
        self.functions = list(program.functions)
        self._ops = program.registry.ops
        self._registry, self._limits = program.registry, limits
        self._written: dict[Body, int] = {}

    def append(self, statements: list[Statement], graph: Graph, where: dict[int, int]) -> list[int]:
        """Append the nodes of a graph, but for leaves, and find the numbers of its outputs.

        `where` says where each node went, leaves being there already.
        """
        for index, node in enumerate(graph.nodes):
            if not node.is_leaf:
                statements += self._statements(node, [where[i] for i in node.operands], len(statements))
                where[index] = len(statements) - 1
        return [where[i] for i in graph.outputs]

    def _statements(self, node: Node, operands: Sequence[int], count: int) -> list[Statement]:
        """A node as statement number `count`; where attributes cannot say it, in two."""
        if node.op.name == "full" and not math.isfinite(node.attrs["fill"]):
            value = np.full((), node.attrs["fill"], node.type.dtype)
            constant = Statement(self._ops["constant"], (), {"value": value})
            return [constant, Statement(self._ops["broadcast_to"], (count,), {"shape": list(node.type.shape)})]
        return [Statement(node.op, tuple(operands), self._stated(node))]

    def _stated(self, node: Node) -> dict[str, Any]:
        """The attributes that are not at their default, as a client writes them."""
        stated = {
            name: self._index(value) if isinstance(value, Body) else node.op.attrs[name].definition.stated(value)
            for name, value in node.attrs.items()
            if value is not None and key(value) != key(node.op.attrs[name].default)
        }
        if "fill_as" in node.op.attrs and (word := word_of(node.attrs["fill"])):
            del stated["fill"]
            stated["fill_as"] = word
        return stated

    def _index(self, body: Body) -> int:
        """The index of the function that says what a body does."""
        public = body_written_out(body)
        if public not in self._written:
            function = self._function(public)
            self._written[public] = len(self.functions)
            self.functions.append(function)
        return self._written[public]

    def _function(self, body: Body) -> Function:
        statements = [self._parameter(type) for type in body.inputs]
        fed = {i: node.attrs["feed"] for i, node in enumerate(body.graph.nodes) if node.is_leaf}
        outputs = self.append(statements, body.graph, fed)
        return Function(self._registry, statements, outputs, self._limits, functions=self.functions)

    def _parameter(self, type: TensorType) -> Statement:
        """An input that declares its type."""
        shape: dict[str, Any] = {"shape": list(type.shape)} if type.shape else {"zero_d": True}
        return Statement(self._ops["input"], (), {"dtype": type.dtype.name, **shape})


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
