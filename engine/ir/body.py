"""A body: a function for operands of given types, as ops run it, differentiate it and batch it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, Self, TypeVar, cast

from engine.ir.errors import BadAttribute, counted
from engine.ir.graph import Builder, Graph, Value
from engine.ir.inference import attributes_key
from engine.ir.kinds.function import Callee
from engine.ir.limits import NO_DEADLINE, NO_LIMITS, Deadline, Limits
from engine.ir.registry import Registry
from engine.ir.tensor_type import TensorType

_Made = TypeVar("_Made")


@dataclass(eq=False, slots=True)
class BodyBudget:
    """Nodes that all bodies of one request may have together, those of their derivatives included, and its time."""

    limits: Limits
    deadline: Deadline = NO_DEADLINE
    spent: int = field(default=0, init=False)

    def admit(self, nodes: int) -> None:
        """Count further nodes. Raises TooManyNodes when all together are over the limit."""
        self.spent += nodes
        self.limits.admit_nodes(self.spent)

    def builder(self, registry: Registry) -> Builder:
        """Return an empty builder for one body."""
        return Builder(registry, self.limits, self.deadline)


NO_BUDGET: Final = BodyBudget(NO_LIMITS)


class Body(Callee):
    """A graph as a function: its leaves are fed under 0, 1, …, with values of the types `inputs`.

    An input that nothing reads need not be a leaf. Bodies of equal digests are equal. Bodies derived from a body are
    cached in it (`made`), and count towards its `budget`. `function` is the index of the client's function.
    """

    __slots__ = ("_known", "budget", "function", "graph", "inputs")

    def __init__(
        self, graph: Graph, inputs: Sequence[TensorType], budget: BodyBudget = NO_BUDGET, function: int | None = None
    ) -> None:
        super().__init__(_digest(graph, inputs))
        self.graph = graph
        self.inputs = tuple(inputs)
        self.budget = budget
        self.function = function
        self._known: dict[Hashable, Any] = {}

    @property
    def outputs(self) -> tuple[TensorType, ...]:
        """The types of its results."""
        return tuple([self.graph.nodes[i].type for i in self.graph.outputs])

    def typed(self, types: Sequence[TensorType]) -> Self:
        """Return the body, which is typed already. Raises TypeError for other types: the mistake of a rule."""
        if tuple(types) != self.inputs:
            raise TypeError(f"a body of {_listed(self.inputs)} is used on {_listed(types)}")
        return self

    def made(self, name: Hashable, make: Callable[[], _Made]) -> _Made:
        """Return the cached result of `make` under a name; call it the first time."""
        if name not in self._known:
            self._known[name] = make()
        return cast("_Made", self._known[name])

    def derived(self, graph: Graph, inputs: Sequence[TensorType]) -> Body:
        """Derive a body from this one, within its budget. Raises TooManyNodes."""
        self.budget.admit(len(graph.nodes))
        return Body(graph, inputs, self.budget, self.function)

    def inline_into(self, builder: Builder, operands: Sequence[Value] | Mapping[int, Value]) -> list[Value]:
        """Append it to another graph, on these operands, and return its results, each a node of its own.

        Operands that nothing reads may be missing in a mapping.
        """
        values: list[Value] = []
        outer, first = builder.origin, len(builder.nodes)
        for node in self.graph.nodes:
            if node.is_leaf:
                values.append(operands[node.attrs["feed"]])
            else:
                origin = node.origin if outer is None else outer.containing(node.origin)
                read = tuple([values[i].index for i in node.operands])
                values.append(builder.append(node._replace(operands=read, origin=origin)))
        results = [values[i] for i in self.graph.outputs]
        return [x if x.index >= first else x.identity() for x in results]

    def __repr__(self) -> str:
        return f"<body {self.digest.hex()[:8]} of {_listed(self.inputs)}>"


def check_arity(function: int, name: str, wanted: int, got: int, what: str) -> None:
    """Raise BadAttribute unless a function that stands as attribute `name` has as many parameters, or results."""
    if wanted != got:
        raise BadAttribute(
            f"attribute {name}: function {function} has {counted(got, what)}, but here it must have {wanted}",
            expected=counted(wanted, what),
            got=counted(got, what),
        ).of_function(function)


def _digest(graph: Graph, inputs: Sequence[TensorType]) -> bytes:
    said = blake2b(repr((_listed(inputs), graph.outputs)).encode(), digest_size=32)
    for op, operands, attrs, types, _ in graph.nodes:
        told = attributes_key(attrs) if attrs else ()
        said.update(repr((op.name, operands, told, list(map(str, types)))).encode())
    return said.digest()


def _listed(types: Sequence[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"
