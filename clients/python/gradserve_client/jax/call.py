"""One equation of a jaxpr, as a rule sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.jax.context import Context
from gradserve_client.jax.values import Scope, Value, typed
from gradserve_client.tensors import Array

#: what says a result: a node; an array, where the function alone decides it; a value that there is already
Result = Node | Array | Value
Said = Node | Array | Value | Sequence[Result]
PrimitiveRule = Callable[["Call"], Said]


class Call:
    """A primitive on its operands, and the graph to say it in. Operands and results are counted from 0.

    `params` are those of JAX, `results` values without a node, of the types that the results have.
    """

    def __init__(
        self,
        op: str,
        params: Mapping[str, Any],
        operands: Sequence[Value],
        results: Sequence[Value],
        scope: Scope,
        context: Context,
        equation: Any = None,
    ) -> None:
        self.op = op
        self.params = params
        self.operands = operands
        self.results = results
        self.scope = scope
        self.context = context
        self.equation = equation

    @property
    def graph(self) -> SourceGraph:
        """What nodes without operands are written with."""
        return self.scope.graph

    def node(self, i: int = 0) -> Node:
        """The node of operand i."""
        return self.scope.node_of(self.operands[i])

    @property
    def nodes(self) -> list[Node]:
        """The nodes of all operands."""
        return [self.node(i) for i in range(len(self.operands))]

    def shape(self, i: int = 0) -> tuple[int, ...]:
        """The shape of operand i."""
        return self.operands[i].shape

    def rank(self, i: int = 0) -> int:
        """How many axes operand i has."""
        return len(self.operands[i].shape)

    def dtype(self, i: int = 0) -> np.dtype[Any]:
        """The dtype of operand i."""
        return self.operands[i].dtype

    def is_float(self, i: int = 0) -> bool:
        """Whether operand i has derivatives."""
        return self.operands[i].is_float

    def is_complex(self, i: int = 0) -> bool:
        """Whether operand i is of complex numbers."""
        return self.operands[i].is_complex

    def is_constant(self, i: int) -> bool:
        """Whether the function alone decides operand i."""
        return self.operands[i].is_constant

    def known(self, i: int) -> Array:
        """Operand i, which is a constant."""
        return np.asarray(self.operands[i].constant)

    def static(self, i: int, what: str) -> Array:
        """Operand i, which the graph is made for; `what` it is, in messages. Raises Blocked where it is no constant."""
        if not self.is_constant(i):
            raise Blocked(f"its {what} would come from the data, which the graph is made without")
        return self.known(i)

    def constant(self, value: Any, dtype: Any = None) -> Node:
        """A constant of the graph."""
        return self.graph.constant(np.asarray(value, dtype))

    def like(self, value: Any, i: int = 0) -> Node:
        """A constant of the dtype of operand i."""
        return self.constant(value, self.dtype(i))

    def cast(self, node: Node, found: Any, i: int = 0) -> Node:
        """A node of one dtype in that of result i, cast where that is another."""
        wanted = self.results[i].dtype
        return node if np.dtype(found) == wanted else node.cast(wanted.name)

    def inline(self, closed: Any, operands: Sequence[Value] | None = None) -> list[Value]:
        """The results of a jaxpr on these operands, or on the call's own, whose nodes are put in place of this one."""
        return self.context.walk(closed, self.operands if operands is None else operands, self.scope)

    def expanded(self, function: Callable[..., Any], *operands: Value) -> list[Value]:
        """The results of another function of JAX on these operands, in place of this primitive."""
        return self.inline(jax.make_jaxpr(function)(*(typed(value) for value in operands)), operands)
