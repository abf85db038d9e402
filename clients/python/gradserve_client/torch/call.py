"""One node of a program, as a rule sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.torch.values import Type, Value, constant_of

#: what says a result: a node; a tensor, where it is the same for all data of these shapes; a value that there is
#: already; None where nobody asked for it
Result: TypeAlias = Node | torch.Tensor | Value | None
Said: TypeAlias = Node | torch.Tensor | Value | Sequence[Result]
OpRule = Callable[["Call"], Said]


class Call:
    """A node of the program on its operands, and the graph to say it in.

    `op` is the name of PyTorch's overload without its namespace. Arguments are those of its schema, by name, with the
    defaults of those that are not stated; tensors among them are `Value`s. `results` are their types, and `asked` the
    places of those that something reads.
    """

    def __init__(
        self, op: str, arguments: Mapping[str, Any], results: Sequence[Type], asked: Collection[int], graph: SourceGraph
    ) -> None:
        self.op = op
        self.arguments = arguments
        self.results = results
        self.graph = graph
        self._asked = asked

    def __getitem__(self, name: str) -> Any:
        """An argument as it stands there."""
        return self.arguments[name]

    def has(self, name: str) -> bool:
        """Whether an argument is stated, and not None."""
        return self.arguments.get(name) is not None

    def asked(self, i: int) -> bool:
        """Whether something reads result i."""
        return i in self._asked

    def value(self, name: str = "self") -> Value:
        """A tensor among the arguments."""
        value = self.arguments[name]
        assert isinstance(value, Value), f"{self.op} has a tensor {name}"
        return value

    def node(self, name: str = "self") -> Node:
        """The node of a tensor among the arguments."""
        return self.value(name).given_by(self.graph)

    def node_or_none(self, name: str) -> Node | None:
        """The node of a tensor that may be left out."""
        return self.node(name) if self.has(name) else None

    def shape(self, name: str = "self") -> tuple[int, ...]:
        """The shape of a tensor among the arguments."""
        return self.value(name).type.shape

    def rank(self, name: str = "self") -> int:
        """How many axes a tensor among the arguments has."""
        return len(self.shape(name))

    def dtype(self, name: str = "self") -> str:
        """The dtype of a tensor among the arguments."""
        return self.value(name).type.dtype

    @property
    def result(self) -> Type:
        """The type of the first result."""
        return self.results[0]

    def axis(self, name: str = "dim", rank: int | None = None) -> int:
        """An argument that is an axis, counted from the front."""
        axis: int = self.arguments[name]
        return axis % max(1, self.rank() if rank is None else rank)

    def axes(self, name: str = "dim") -> list[int]:
        """Axes, counted from the front; those of the whole tensor where there are none stated."""
        stated = self.arguments.get(name)
        if stated is None or stated == []:
            return [*range(self.rank())]
        return [axis % max(1, self.rank()) for axis in ([stated] if isinstance(stated, int) else stated)]

    def ints(self, name: str, count: int) -> list[int]:
        """A list of whole numbers, of which one may stand for all."""
        stated = self.arguments[name]
        listed = [stated] if isinstance(stated, int) else [*stated]
        return listed * count if len(listed) == 1 else listed

    def constant(self, value: Any, dtype: str) -> Node:
        """A constant of the graph."""
        return self.graph.constant(np.asarray(value, dtype))

    def converted(self, name: str, dtype: str) -> Node:
        """The node of a tensor, or of a number, in a dtype."""
        return self.together([name], dtype, ())[0]

    def together(self, names: Sequence[str], dtype: str, shape: Sequence[int] | None = None) -> list[Node]:
        """Operands of an elementwise op, tensors or numbers, in one dtype.

        What NumPy's rule repeats by itself is not repeated, as long as the result has its shape: the first result's,
        unless stated.
        """
        values = [self._operand(name, dtype) for name in names]
        wanted = self.result.shape if shape is None else tuple(shape)
        narrow = [_narrowest(value) for value in values]
        if shape == () or np.broadcast_shapes(*(value.type.shape for value in narrow)) != wanted:
            narrow = values
        return [self.as_dtype(value, dtype) for value in narrow]

    def _operand(self, name: str, dtype: str) -> Value:
        stated = self.arguments[name]
        return stated if isinstance(stated, Value) else constant_of(stated, dtype)

    def as_dtype(self, value: Value, dtype: str) -> Node:
        """The node of a value, cast where it is of another dtype."""
        if value.constant is not None and value.type.dtype != dtype:
            return constant_of(value.constant.to(getattr(torch, dtype))).given_by(self.graph)
        node = value.given_by(self.graph)
        return node if value.type.dtype == dtype else node.cast(dtype)


def _narrowest(value: Value) -> Value:
    """What it is where NumPy's rule repeats it."""
    while value.narrow is not None:
        value = value.narrow
    if value.type.shape and value.number is not None:
        assert value.constant is not None
        return constant_of(value.constant.reshape(-1)[0])
    return value


def blocked_unless(condition: bool, reason: str, way_round: str = "") -> None:
    """Raise Blocked where a condition does not hold."""
    if not condition:
        raise Blocked(reason, way_round)
