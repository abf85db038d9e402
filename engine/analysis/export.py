"""A gradient as a program: the client's own statements, followed by statements that compute it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.autodiff.bodies import derived, tidy
from engine.autodiff.calls import Gradients
from engine.autodiff.calls.call import FeedTypes
from engine.compiler.compiler import open_scope
from engine.ir.graph import Builder, Graph, Node, Value, ancestors
from engine.ir.kinds import key
from engine.ir.passes import Allowance, optimise
from engine.ir.program import Body, Function, Program, Statement
from engine.ir.run_context import NO_DEADLINE, Deadline, Limits
from engine.ir.tensor_type import TensorType
from engine.ops.common.numerics import word_of


class WrittenOut:
    """Copy of a graph in ops of the registry, with the engine's internal ops written out; `values` maps its nodes."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.values: dict[int, Value] = {}
        self._several: dict[int, Sequence[Value]] = {}

    def copy(self, index: int, node: Node) -> None:
        """Append a node, whose operands are there."""
        operands = [self.values[i] for i in node.operands]
        if node.op.internal:
            self._several[index] = node.op.written_out(*operands, **node.attrs)
            self.values[index] = self._several[index][0]
        elif node.op.name == "get_output" and node.operands[0] in self._several:
            self.values[index] = self._several[node.operands[0]][node.attrs["index"]]
        else:
            self.values[index] = self.builder.copy(node, operands)


def body_written_out(body: Body) -> Body:
    """Write out a body, but not the bodies that it runs."""
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


class StatementWriter:
    """Writer of nodes as a client would write them: statements behind those of a program, and functions for bodies.

    Its `functions` are the program's own, then one for each body, after those that it runs.
    """

    def __init__(self, program: Program, limits: Limits) -> None:
        self.functions = list(program.functions)
        self._ops = program.registry.ops
        self._registry, self._limits = program.registry, limits
        self._written: dict[Body, int] = {}

    def append(self, statements: list[Statement], graph: Graph, where: dict[int, int]) -> list[int]:
        """Append the nodes of a graph, but for leaves, and return the numbers of its outputs.

        `where` maps nodes to statements, and has the leaves already.
        """
        for index, node in enumerate(graph.nodes):
            if not node.is_leaf:
                statements += self._statements(node, [where[i] for i in node.operands], len(statements))
                where[index] = len(statements) - 1
        return [where[i] for i in graph.outputs]

    def _statements(self, node: Node, operands: Sequence[int], count: int) -> list[Statement]:
        """Write a node as statement number `count`, or as two statements if its attributes have no JSON form."""
        if node.op.name == "full" and not math.isfinite(node.attrs["fill"]):
            value = np.full((), node.attrs["fill"], node.type.dtype)
            constant = Statement(self._ops["constant"], (), {"value": value})
            return [constant, Statement(self._ops["broadcast_to"], (count,), {"shape": list(node.type.shape)})]
        return [Statement(node.op, tuple(operands), self._stated(node))]

    def _stated(self, node: Node) -> dict[str, Any]:
        """List the attributes that are not at their default, as a client writes them."""
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
        """Find or write the function of a body, and return its index."""
        public = body_written_out(body)
        if public not in self._written:
            statements = [self._parameter(type) for type in public.inputs]
            leaves = {i: node.attrs["feed"] for i, node in enumerate(public.graph.nodes) if node.is_leaf}
            outputs = self.append(statements, public.graph, leaves)
            function = Function(self._registry, statements, outputs, self._limits, functions=self.functions)
            self._written[public] = len(self.functions)
            self.functions.append(function)
        return self._written[public]

    def _parameter(self, type: TensorType) -> Statement:
        """Write an input that declares its type."""
        shape: dict[str, Any] = {"shape": list(type.shape)} if type.shape else {"zero_d": True}
        return Statement(self._ops["input"], (), {"dtype": type.dtype.name, **shape})


class Exported(NamedTuple):
    """Statements, their functions, the statement of each gradient, and the nodes of `wrt` without a path."""

    statements: tuple[Statement, ...]
    functions: tuple[Function, ...]
    gradients: tuple[tuple[int, int], ...]
    disconnected: tuple[int, ...]


def export_gradients(
    program: Program, types: FeedTypes, call: Gradients, limits: Limits, deadline: Deadline = NO_DEADLINE
) -> Exported:
    """Write the program that computes the gradients of `call`, for feeds of these types. Raises EngineError.

    Its first statements and functions are the program's own, under their numbers. The others read them, and are
    optimised by themselves: no pass looks across one of the client's nodes. If a rule writes a derivative with the
    result (exp' = y), the result is computed once more. So the program may be differentiated again with respect to any
    node, as with `grad` nodes.
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
    numbers = tuple((node, first + place) for place, (node, _) in enumerate(gradients))
    return Exported(tuple(statements), tuple(writer.functions), numbers, disconnected)


def _beyond(builder: Builder, nodes: Mapping[int, Value], results: Sequence[Value]) -> Graph:
    """Make the graph of `results` with the client's nodes as its leaves, each fed under its number."""
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
