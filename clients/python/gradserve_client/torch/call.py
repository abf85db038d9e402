"""One node of an exported program, as a rule sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.torch.values import Type, Value, constant_of

#: one result of a rule: a node; a tensor, if it is the same for all data of these shapes; an existing value; or None if
#: it is not used
Result: TypeAlias = Node | torch.Tensor | Value | None
#: what a rule returns: its result, or a sequence of them
Results: TypeAlias = Node | torch.Tensor | Value | Sequence[Result]
OpRule = Callable[["Call"], Results]


class Call:
    """A node of the program with its arguments, and the graph that its rule writes nodes into.

    `op` is the name of the overload without the namespace `aten`. `arguments` has all arguments of the schema by name,
    including defaults; tensors among them are `Value`s. `results` are the types of the results, and `used` the
    positions of those that another node reads.
    """

    def __init__(
        self, op: str, arguments: Mapping[str, Any], results: Sequence[Type], used: Collection[int], graph: SourceGraph
    ) -> None:
        self.op = op
        self.arguments = arguments
        self.results = results
        self.graph = graph
        self._used = used

    def __getitem__(self, name: str) -> Any:
        """Return an argument by name."""
        return self.arguments[name]

    def has(self, name: str) -> bool:
        """Return whether an argument is present and not None."""
        return self.arguments.get(name) is not None

    def is_used(self, i: int) -> bool:
        """Return whether another node reads result i."""
        return i in self._used

    def value(self, name: str = "self") -> Value:
        """Return a tensor argument."""
        value = self.arguments[name]
        assert isinstance(value, Value), f"{self.op} has a tensor {name}"
        return value

    def node(self, name: str = "self") -> Node:
        """Return the node of a tensor argument."""
        return self.value(name).node_in(self.graph)

    def optional_node(self, name: str) -> Node | None:
        """Return the node of a tensor argument, or None if it is absent."""
        return self.node(name) if self.has(name) else None

    def shape(self, name: str = "self") -> tuple[int, ...]:
        """Return the shape of a tensor argument."""
        return self.value(name).type.shape

    def rank(self, name: str = "self") -> int:
        """Return the number of axes of a tensor argument."""
        return len(self.shape(name))

    def dtype(self, name: str = "self") -> str:
        """Return the dtype of a tensor argument."""
        return self.value(name).type.dtype

    @property
    def result(self) -> Type:
        """The type of the first result."""
        return self.results[0]

    def axis(self, name: str = "dim", rank: int | None = None) -> int:
        """Return an axis argument as a non-negative axis."""
        axis: int = self.arguments[name]
        return axis % max(1, self.rank() if rank is None else rank)

    def axes(self, name: str = "dim") -> list[int]:
        """Return an argument of axes as non-negative axes, or all axes if it is absent or empty."""
        dims = self.arguments.get(name)
        if dims is None or dims == []:
            return [*range(self.rank())]
        return [axis % max(1, self.rank()) for axis in ([dims] if isinstance(dims, int) else dims)]

    def ints(self, name: str, count: int) -> list[int]:
        """Return an argument as a list of `count` integers, repeating a single one."""
        argument = self.arguments[name]
        numbers = [argument] if isinstance(argument, int) else [*argument]
        return numbers * count if len(numbers) == 1 else numbers

    def constant(self, value: Any, dtype: str) -> Node:
        """Add a constant to the graph."""
        return self.graph.constant(np.asarray(value, dtype))

    def node_as(self, name: str, dtype: str) -> Node:
        """Return the node of a tensor or number argument in a dtype."""
        return self.broadcast_nodes([name], dtype, ())[0]

    def broadcast_nodes(self, names: Sequence[str], dtype: str, shape: Sequence[int] | None = None) -> list[Node]:
        """Return the nodes of operands of an elementwise op, tensors or numbers, in one dtype.

        Operands that an `expand` repeated are replaced by the tensors before it if broadcasting still gives `shape`, by
        default that of the first result. This saves memory and nodes.
        """
        values = [self._operand(name, dtype) for name in names]
        result_shape = self.result.shape if shape is None else tuple(shape)
        operands = [_before_expand(value) for value in values]
        if shape == () or np.broadcast_shapes(*(value.type.shape for value in operands)) != result_shape:
            operands = values
        return [self.as_dtype(value, dtype) for value in operands]

    def _operand(self, name: str, dtype: str) -> Value:
        argument = self.arguments[name]
        return argument if isinstance(argument, Value) else constant_of(argument, dtype)

    def as_dtype(self, value: Value, dtype: str) -> Node:
        """Return the node of a value, cast if it has another dtype."""
        if value.constant is not None and value.type.dtype != dtype:
            return constant_of(value.constant.to(getattr(torch, dtype))).node_in(self.graph)
        node = value.node_in(self.graph)
        return node if value.type.dtype == dtype else node.cast(dtype)


def _before_expand(value: Value) -> Value:
    """Return the value before all `expand`s. A constant of one number repeated becomes a scalar."""
    while value.unexpanded is not None:
        value = value.unexpanded
    if value.type.shape and value.number is not None:
        assert value.constant is not None
        return constant_of(value.constant.reshape(-1)[0])
    return value


def require(condition: bool, reason: str, workaround: str = "") -> None:
    """Raise Blocked if a condition does not hold."""
    if not condition:
        raise Blocked(reason, workaround)
