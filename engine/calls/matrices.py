"""Jacobians and Hessians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from engine.calls.call import Derivative, Label, Results, Scope, last, outputs_of, parameters
from engine.calls.values import Gradients
from engine.graph.ir import Value
from engine.graph.program import Program
from engine.graph.tensor_type import TensorType
from engine.transforms.jacobian import jacobian, jacobian_rows
from engine.transforms.vjp import Dependence

#: of complex numbers there is no one matrix: two real ones say what four real ones, or two complex ones, would
BY_PARTS: Final = "a matrix is of real numbers: make it of two real leaves by make_complex, and name these"
_IN_PARTS: Final = "a matrix is of real numbers: name its real and its imag, or ask for products (vjp, jvp)"


@dataclass(frozen=True)
class Jacobian(Derivative):
    """∂output/∂x for each of `outputs` and each x of `wrt`: shape of the output, then shape of x; x's dtype."""

    @property
    def is_swept(self) -> bool:
        """Sweep by rows or by columns."""
        return True

    @classmethod
    def of_program(
        cls, program: Program, wrt: Sequence[int] | None = None, outputs: Sequence[int] | None = None
    ) -> Self:
        """Default to the last node and all parameters. Raises BadReference and InvalidField."""
        asked = outputs_of(program, outputs, last(program))
        return cls(asked, parameters(program, wrt))

    def write_graph(self, scope: Scope) -> Results:
        """The values, then a block for each output and each node of `wrt`; zeros where there is no path."""
        nodes = scope.real_nodes("wrt", self.wrt, BY_PARTS)
        blocks, known = _Blocks("jacobian", self.wrt, nodes), Dependence()
        outputs = scope.real_nodes("outputs", self.outputs, _IN_PARTS)
        for i, y in zip(self.outputs, outputs, strict=True):
            scope.begin(i)
            blocks.add(i, y, jacobian(scope.builder, y, nodes, scope.chunk_bytes, known))
        return Results([*scope.values(self.outputs), *blocks.results])


@dataclass(frozen=True)
class Hessian(Gradients):
    """∂²of/∂row ∂column for all pairs of `wrt`: shape of the row, then shape and dtype of the column."""

    @property
    def is_swept(self) -> bool:
        """Sweep by rows or by columns."""
        return True

    def nodes(self, scope: Scope) -> list[Value]:
        """The nodes of `wrt`, which are real."""
        return scope.real_nodes("wrt", self.wrt, BY_PARTS)

    def write_graph(self, scope: Scope) -> Results:
        """The values, the gradients, then the blocks, row by row."""
        first, nodes = super().write_graph(scope), self.nodes(scope)
        gradients = [value for label, value in first.results if label.kind == "gradients"]
        blocks, known = _Blocks("hessian", self.wrt, nodes), Dependence()
        for row, g in zip(self.wrt, gradients, strict=True):
            scope.begin(self.of)
            blocks.add(row, g, jacobian_rows(scope.builder, g, nodes, scope.chunk_bytes, known))
        return Results([*first.results, *blocks.results], first.disconnected)


class _Blocks:
    """Blocks by `wrt`, of shapes that they have in common: one node of zeros serves all that look the same."""

    def __init__(self, kind: str, wrt: Sequence[int], nodes: Sequence[Value]) -> None:
        self.results: list[tuple[Label, Value]] = []
        self._kind = kind
        self._wrt = list(zip(wrt, nodes, strict=True))
        self._zeros: dict[TensorType, Value] = {}

    def add(self, row: int, y: Value, derivatives: Sequence[Value | None]) -> None:
        """The blocks of one row, whose value is y; zeros where there is none."""
        for (column, x), block in zip(self._wrt, derivatives, strict=True):
            self.results.append((Label(self._kind, (row, column)), self._zero(x, y) if block is None else block))

    def _zero(self, x: Value, y: Value) -> Value:
        type = x.type.with_shape((*y.shape, *x.shape))
        if type not in self._zeros:
            self._zeros[type] = x.full_like(0.0, type.shape)
        return self._zeros[type]
