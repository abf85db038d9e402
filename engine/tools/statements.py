"""Nodes as a client would write them: statements, and functions in the place of bodies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.body import Body
from engine.graph.ir import Graph, Node
from engine.graph.kinds import key
from engine.graph.limits import Limits
from engine.graph.program import Function, Program
from engine.graph.statement import Statement
from engine.graph.tensor_type import TensorType
from engine.oplib.fill import word_of
from engine.tools.written_out import body_written_out


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
