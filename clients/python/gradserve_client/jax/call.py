"""One equation of a jaxpr, as a rule sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.jax.context import Context
from gradserve_client.jax.values import Scope, Value, shape_dtype
from gradserve_client.tensors import Array

#: one result of a rule: a node; an array, if it depends on constants only; or an existing value
Result = Node | Array | Value
#: what a rule returns: its result, or a sequence of them
Results = Node | Array | Value | Sequence[Result]
PrimitiveRule = Callable[["Call"], Results]


class Call:
    """A primitive with its operands, and the graph that its rule writes nodes into.

    `params` are the equation's. `operands` and `results` are counted from 0; `results` are values without nodes that
    give the types of the results.
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
        """The graph, for nodes without operands."""
        return self.scope.graph

    def node(self, i: int = 0) -> Node:
        """Return the node of operand i."""
        return self.scope.node_of(self.operands[i])

    @property
    def nodes(self) -> list[Node]:
        """The nodes of all operands."""
        return [self.node(i) for i in range(len(self.operands))]

    def shape(self, i: int = 0) -> tuple[int, ...]:
        """Return the shape of operand i."""
        return self.operands[i].shape

    def rank(self, i: int = 0) -> int:
        """Return the number of axes of operand i."""
        return len(self.operands[i].shape)

    def dtype(self, i: int = 0) -> np.dtype[Any]:
        """Return the dtype of operand i."""
        return self.operands[i].dtype

    def is_float(self, i: int = 0) -> bool:
        """Return whether operand i is real or complex floating point, and so has derivatives."""
        return self.operands[i].is_float

    def is_complex(self, i: int = 0) -> bool:
        """Return whether operand i is complex."""
        return self.operands[i].is_complex

    def is_constant(self, i: int) -> bool:
        """Return whether operand i is the same for all inputs."""
        return self.operands[i].is_constant

    def constant_value(self, i: int) -> Array:
        """Return the value of operand i, which must be a constant."""
        return np.asarray(self.operands[i].constant)

    def static(self, i: int, name: str) -> Array:
        """Return the value of operand i, which messages call `name`. Raises Blocked if it is not a constant."""
        if not self.is_constant(i):
            raise Blocked(f"its {name} would depend on the data, but must be constant")
        return self.constant_value(i)

    def constant(self, value: Any, dtype: Any = None) -> Node:
        """Add a constant to the graph."""
        return self.graph.constant(np.asarray(value, dtype))

    def like(self, value: Any, i: int = 0) -> Node:
        """Add a constant of the dtype of operand i."""
        return self.constant(value, self.dtype(i))

    def cast(self, node: Node, dtype: Any, i: int = 0) -> Node:
        """Cast a node of this dtype to the dtype of result i, if they differ."""
        result_dtype = self.results[i].dtype
        return node if np.dtype(dtype) == result_dtype else node.cast(result_dtype.name)

    def inline(self, closed: Any, operands: Sequence[Value] | None = None) -> list[Value]:
        """Translate a jaxpr in place of this equation, on these operands or the call's own, and return its results."""
        return self.context.walk(closed, self.operands if operands is None else operands, self.scope)

    def expand(self, function: Callable[..., Any], *operands: Value) -> list[Value]:
        """Trace a JAX function on these operands, and translate it in place of this equation."""
        return self.inline(jax.make_jaxpr(function)(*(shape_dtype(value) for value in operands)), operands)
