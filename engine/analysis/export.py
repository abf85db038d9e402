"""Export of a gradient as a program: the client's own statements, followed by statements that compute the gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.autodiff.bodies import derive_body, tidy
from engine.autodiff.calls import Gradients
from engine.autodiff.calls.call import FeedTypes
from engine.compiler.compiler import open_scope
from engine.ir.graph import Builder, Graph, Node, Value, ancestors
from engine.ir.kinds import key
from engine.ir.passes import Allowance, optimise
from engine.ir.program import Body, Function, Program, Statement
from engine.ir.run_context import NO_DEADLINE, Deadline, Limits
from engine.ir.tensor_type import TensorType
from engine.ops.common.numerics import fill_word


class PublicCopy:
    """Copy of a graph in ops of the registry, with internal ops written out; `values` maps nodes to their copies."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.values: dict[int, Value] = {}
        self._results: dict[int, Sequence[Value]] = {}

    def copy(self, index: int, node: Node) -> None:
        """Append a node whose operands have been copied."""
        operands = [self.values[i] for i in node.operands]
        if node.op.internal:
            self._results[index] = node.op.written_out(*operands, **node.attrs)
            self.values[index] = self._results[index][0]
        elif node.op.name == "get_output" and node.operands[0] in self._results:
            self.values[index] = self._results[node.operands[0]][node.attrs["index"]]
        else:
            self.values[index] = self.builder.copy(node, operands)


def body_written_out(body: Body) -> Body:
    """Return a body in ops of the registry. The bodies that it runs are not written out."""
    return body.cached("written out", lambda: _body(tidy(body)))


def _body(body: Body) -> Body:
    public_copy = PublicCopy(body.budget.builder(body.graph.registry))
    for index, node in enumerate(body.graph.nodes):
        if node.is_leaf:
            public_copy.values[index] = public_copy.builder.leaf(node.type, node.attrs["feed"])
        else:
            public_copy.copy(index, node)
    graph = public_copy.builder.graph([public_copy.values[i] for i in body.graph.outputs])
    return derive_body(body, graph, body.inputs)


class StatementWriter:
    """Writes nodes as a client would: as statements after those of a program, and as functions for bodies.

    Its `functions` are the program's own, then one for each body, after the functions that it calls.
    """

    def __init__(self, program: Program, limits: Limits) -> None:
        self.functions = list(program.functions)
        self._ops = program.registry.ops
        self._registry, self._limits = program.registry, limits
        self._function_by_body: dict[Body, int] = {}

    def append(self, statements: list[Statement], graph: Graph, statement_of: dict[int, int]) -> list[int]:
        """Append the nodes of a graph except leaves, and return the statement numbers of its outputs.

        `statement_of` maps nodes to statements, and must contain the leaves.
        """
        for index, node in enumerate(graph.nodes):
            if not node.is_leaf:
                statements += self._statements(node, [statement_of[i] for i in node.operands], len(statements))
                statement_of[index] = len(statements) - 1
        return [statement_of[i] for i in graph.outputs]

    def _statements(self, node: Node, operands: Sequence[int], count: int) -> list[Statement]:
        """Write a node as statement number `count`, or as two statements if its attributes have no JSON form."""
        if node.op.name == "full" and not math.isfinite(node.attrs["fill"]):
            value = np.full((), node.attrs["fill"], node.type.dtype)
            constant = Statement(self._ops["constant"], (), {"value": value})
            return [constant, Statement(self._ops["broadcast_to"], (count,), {"shape": list(node.type.shape)})]
        return [Statement(node.op, tuple(operands), self._stated_attrs(node))]

    def _stated_attrs(self, node: Node) -> dict[str, Any]:
        """Return the attributes that are not at their default, as a client writes them."""
        stated = {
            name: self._index(value) if isinstance(value, Body) else node.op.attrs[name].definition.stated(value)
            for name, value in node.attrs.items()
            if value is not None and key(value) != key(node.op.attrs[name].default)
        }
        if "fill_as" in node.op.attrs and (word := fill_word(node.attrs["fill"])):
            del stated["fill"]
            stated["fill_as"] = word
        return stated

    def _index(self, body: Body) -> int:
        """Return the index of a body's function, writing the function first if needed."""
        public_body = body_written_out(body)
        if public_body not in self._function_by_body:
            statements = [self._parameter(type) for type in public_body.inputs]
            leaves = {i: node.attrs["feed"] for i, node in enumerate(public_body.graph.nodes) if node.is_leaf}
            outputs = self.append(statements, public_body.graph, leaves)
            function = Function(self._registry, statements, outputs, self._limits, functions=self.functions)
            self._function_by_body[public_body] = len(self.functions)
            self.functions.append(function)
        return self._function_by_body[public_body]

    def _parameter(self, type: TensorType) -> Statement:
        """Return an input that declares its type."""
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
    """Return the program that computes the gradients of `call` for feeds of these types. Raises EngineError.

    Its first statements and functions are the program's own, under the same numbers. The rest reads them and is
    optimised separately: no pass crosses a client's node. If a rule writes a derivative with the result (exp' = y), the
    result is computed again. So the program may be differentiated with respect to any node, as with `grad` nodes.
    """
    needed = program.needed(call.roots)
    barriers = [i for i in needed if not program.statements[i].op.several]
    scope = open_scope(program, types, needed, barriers, limits, deadline)
    results, disconnected = call.write_graph(scope)
    gradients = [(label.nodes[0], value) for label, value in results if label.kind == "gradients"]
    gradient_graph = _gradient_graph(scope.builder, scope.nodes, [value for _, value in gradients])
    graph = optimise(gradient_graph, Allowance(limits.flops, deadline))
    writer, statements = StatementWriter(program, limits), list(program.statements)
    leaves = {i: node.attrs["feed"] for i, node in enumerate(graph.nodes) if node.is_leaf}
    outputs = writer.append(statements, graph, leaves)
    identity, first = program.registry.ops["identity"], len(statements)
    statements += [Statement(identity, (i,)) for i in outputs]  # each gradient must be a node of its own
    numbers = tuple((node, first + position) for position, (node, _) in enumerate(gradients))
    return Exported(tuple(statements), tuple(writer.functions), numbers, disconnected)


def _gradient_graph(builder: Builder, nodes: Mapping[int, Value], results: Sequence[Value]) -> Graph:
    """Return the graph of `results` with the client's nodes as leaves, each fed under its number."""
    client_node = {value.index: node for node, value in nodes.items() if not value.node.op.several}
    public_copy = PublicCopy(Builder(builder.registry, builder.limits, builder.deadline))
    roots = [r.index for r in results]
    for index in ancestors(roots, lambda i: () if i in client_node else builder.nodes[i].operands):
        node = builder.nodes[index]
        if index in client_node:
            public_copy.values[index] = public_copy.builder.leaf(node.type, client_node[index])
        else:
            public_copy.copy(index, node)
    return public_copy.builder.graph([public_copy.values[r.index] for r in results])
