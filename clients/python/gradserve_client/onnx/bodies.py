"""Bodies of `If`, `Loop` and `Scan` as functions of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from onnx import GraphProto, NodeProto

from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.onnx.expanding import read_around
from gradserve_client.onnx.reading import array_of
from gradserve_client.onnx.scope import Known, Scope, Unknown, Value
from gradserve_client.tensors import Array


class Walk(Protocol):
    """What says nodes in a scope."""

    max_steps: int | None

    def walk(self, nodes: Iterable[NodeProto], scope: Scope) -> None:
        """Say all of these."""

    def apart(self) -> Walk:
        """Another that keeps to itself what it finds."""


@dataclass(frozen=True)
class Given:
    """What a function is passed: under which name its body sees it, if it does, and what that is in the example."""

    name: str | None
    example: Array
    roots: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Made:
    """A body in the graph of its function: the parameters behind the consts, and its outputs."""

    scope: Scope
    parameters: tuple[Node, ...]
    outputs: tuple[Value, ...]

    @property
    def nodes(self) -> list[Node]:
        """The nodes of its outputs."""
        return [self.scope.node_of(output) for output in self.outputs]


#: the outputs of a function, of its body
Finish = Callable[[Made], Sequence[Node]]


class Bodies:
    """Writes bodies of one node, in its scope."""

    def __init__(self, walk: Walk, scope: Scope) -> None:
        self._walk = walk
        self._scope = scope

    @property
    def max_steps(self) -> int | None:
        """How many steps a loop has at most whose file does not say it."""
        return self._walk.max_steps

    def consts(self, *bodies: GraphProto) -> list[Value]:
        """What bodies read of the scope around them that is no constant, and so is passed to them."""
        found = [self._scope.find(name) for name in read_around(bodies)]
        read = {id(value): value for value in found if value is not None and value.known is not Known.CONSTANT}
        return [*read.values()]

    def function(
        self, body: GraphProto, consts: Sequence[Value], given: Sequence[Given], finish: Finish, **fixed: Any
    ) -> tuple[GraphFunction, Made]:
        """A function of consts and what is given. `fixed` are names of the body that are constants.

        Raises Unknown where an output cannot be said.
        """
        made: list[Made] = []

        def write(graph: Graph) -> Sequence[Node]:
            made.append(self._written(graph, body, consts, given, fixed))
            return finish(made[0])

        return self._scope.graph.function(write, body.name if body.name.isidentifier() else None), made[0]

    def tried(self, body: GraphProto, consts: Sequence[Value], given: Sequence[Given], **fixed: Any) -> Made:
        """A body in a graph of its own, to be looked at. Raises Unknown where an output cannot be said."""
        apart = Bodies(self._walk.apart(), self._scope)
        outer = SourceGraph(budget=self._scope.graph.budget)
        return apart._written(SourceGraph(outer=outer), body, consts, given, fixed)

    def inline(self, body: GraphProto) -> list[Value]:
        """The outputs of a body without inputs, whose nodes are put into the graph of the scope."""
        inside = Scope(self._scope.graph, self._scope.opsets, self._scope, self._scope.expanded)
        for each in body.initializer:
            inside[each.name] = Value(each.name, array_of(each), Known.CONSTANT)
        self._walk.walk(body.node, inside)
        return [_told(inside, output.name) for output in body.output]

    def _written(
        self, graph: Graph, body: GraphProto, consts: Sequence[Value], given: Sequence[Given], fixed: dict[str, Any]
    ) -> Made:
        assert isinstance(graph, SourceGraph)
        inside = Scope(graph, self._scope.opsets, self._scope, self._scope.expanded)
        for const in consts:
            passed = Value(const.name, const.example, Known.DATA, const.roots, graph.input())
            for name in self._names_of(const, body):
                inside[name] = passed
        parameters = tuple(graph.input() for _ in given)
        for each, node in zip(given, parameters, strict=True):
            if each.name is not None:
                inside[each.name] = Value(each.name, each.example, Known.DATA, each.roots, node)
        stated = {each.name: array_of(each) for each in body.initializer}
        for name, example in {**stated, **fixed}.items():
            inside[name] = Value(name, np.asarray(example), Known.CONSTANT)
        self._walk.walk(body.node, inside)
        return Made(inside, parameters, tuple(_told(inside, output.name) for output in body.output))

    def _names_of(self, const: Value, body: GraphProto) -> list[str]:
        """The names under which a body reads a const: several where the scope has it under several."""
        return [name for name in read_around([body]) if self._scope.find(name) is const]


def _told(scope: Scope, name: str) -> Value:
    found = scope.find(name)
    if found is None or not found.is_told:
        raise Unknown(name)
    return found


def require_same(what: str, before: Array, after: Array) -> None:
    """Raise Blocked where what a loop carries changes its type."""
    if (before.dtype, before.shape) != (after.dtype, after.shape):
        told = " and ".join(f"{each.dtype}{[*each.shape]}" for each in (before, after))
        raise Blocked(f"{what} is of two types, {told}, and a loop's is of one")
