"""Translation of the bodies of `If`, `Loop` and `Scan` into functions of the graph.

A body reads names of the scope around it. A function of the graph sees only its own inputs, so every such name that is
not a constant becomes an operand, a *const*, in front of the body's own inputs. For a `Scan` body with a state `h` and
a sequence `x` that computes `h * w + x`, with `w` a parameter outside, the function is `body(w, h, x) -> (h * w + x,)`,
and the scan that runs it passes `w` unchanged to each step. Constants are copied into the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from onnx import GraphProto, NodeProto

from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.onnx.functions import read_around
from gradserve_client.onnx.reading import array_of
from gradserve_client.onnx.scope import Known, Scope, Unknown, Value
from gradserve_client.tensors import Array


class Walk(Protocol):
    """Translator of the nodes of a scope."""

    max_steps: int | None

    def walk(self, nodes: Iterable[NodeProto], scope: Scope) -> None:
        """Translate these nodes."""

    def fork(self) -> Walk:
        """Return another translator, whose obstacles and notes are kept separate."""


@dataclass(frozen=True)
class BodyInput:
    """Input of a body: the name under which the body reads it, None if it does not, and its value in the example."""

    name: str | None
    example: Array
    roots: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TranslatedBody:
    """A body in the graph of its function: its scope, the parameters that follow the consts, and its outputs."""

    scope: Scope
    parameters: tuple[Node, ...]
    outputs: tuple[Value, ...]

    @property
    def nodes(self) -> list[Node]:
        """Nodes of the outputs."""
        return [self.scope.node_of(output) for output in self.outputs]


#: maps a translated body to the outputs of its function
Finish = Callable[[TranslatedBody], Sequence[Node]]


class Bodies:
    """Translator of the bodies of one node, in its scope."""

    def __init__(self, walk: Walk, scope: Scope) -> None:
        self._walk = walk
        self._scope = scope

    @property
    def max_steps(self) -> int | None:
        """Maximum number of iterations of a loop that the file does not bound."""
        return self._walk.max_steps

    def consts(self, *bodies: GraphProto) -> list[Value]:
        """Return the non-constant values that bodies read from the scope around them, to pass as operands."""
        values = [self._scope.find(name) for name in read_around(bodies)]
        # aliases of a name share one value, which is passed once
        distinct = {id(value): value for value in values if value is not None and value.known is not Known.CONSTANT}
        return [*distinct.values()]

    def function(
        self, body: GraphProto, consts: Sequence[Value], inputs: Sequence[BodyInput], finish: Finish, **fixed: Any
    ) -> tuple[GraphFunction, TranslatedBody]:
        """Translate a body into a function of `consts` and `inputs`. `fixed` are names of the body that are constants.

        Raises Unknown if an output cannot be translated.
        """
        translated: list[TranslatedBody] = []

        def write(graph: Graph) -> Sequence[Node]:
            translated.append(self._written(graph, body, consts, inputs, fixed))
            return finish(translated[0])

        return self._scope.graph.function(write, body.name if body.name.isidentifier() else None), translated[0]

    def trial(
        self, body: GraphProto, consts: Sequence[Value], inputs: Sequence[BodyInput], **fixed: Any
    ) -> TranslatedBody:
        """Translate a body in a scratch graph, to inspect its outputs.

        Raises Unknown if an output cannot be translated.
        """
        scratch = Bodies(self._walk.fork(), self._scope)
        outer = SourceGraph(budget=self._scope.graph.budget)
        return scratch._written(SourceGraph(outer=outer), body, consts, inputs, fixed)

    def inline(self, body: GraphProto) -> list[Value]:
        """Translate a body without inputs into the graph of the scope, and return its outputs."""
        inside = Scope(self._scope.graph, self._scope.opsets, self._scope, self._scope.expanded)
        for each in body.initializer:
            inside[each.name] = Value(each.name, array_of(each), Known.CONSTANT)
        self._walk.walk(body.node, inside)
        return [_known_value(inside, output.name) for output in body.output]

    def _written(
        self,
        graph: Graph,
        body: GraphProto,
        consts: Sequence[Value],
        inputs: Sequence[BodyInput],
        fixed: dict[str, Any],
    ) -> TranslatedBody:
        assert isinstance(graph, SourceGraph)
        inside = Scope(graph, self._scope.opsets, self._scope, self._scope.expanded)
        for const in consts:
            operand = Value(const.name, const.example, Known.DATA, const.roots, graph.input())
            for name in self._names_of(const, body):
                inside[name] = operand
        parameters = tuple(graph.input() for _ in inputs)
        for each, node in zip(inputs, parameters, strict=True):
            if each.name is not None:
                inside[each.name] = Value(each.name, each.example, Known.DATA, each.roots, node)
        stated = {each.name: array_of(each) for each in body.initializer}
        for name, example in {**stated, **fixed}.items():
            inside[name] = Value(name, np.asarray(example), Known.CONSTANT)
        self._walk.walk(body.node, inside)
        return TranslatedBody(inside, parameters, tuple(_known_value(inside, output.name) for output in body.output))

    def _names_of(self, const: Value, body: GraphProto) -> list[str]:
        """Return the names under which a body reads a const: several if the scope has aliases of it."""
        return [name for name in read_around([body]) if self._scope.find(name) is const]


def _known_value(scope: Scope, name: str) -> Value:
    value = scope.find(name)
    if value is None or not value.has_example:
        raise Unknown(name)
    return value


def require_same(label: str, before: Array, after: Array) -> None:
    """Raise Blocked if the dtype or shape of a value differs between a loop's iterations, or between branches."""
    if (before.dtype, before.shape) != (after.dtype, after.shape):
        types = " and ".join(f"{each.dtype}{[*each.shape]}" for each in (before, after))
        raise Blocked(f"{label} has two types, {types}, but must have one")
