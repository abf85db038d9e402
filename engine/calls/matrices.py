"""Whole Jacobians and Hessians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from engine.calls.call import Derivative, Label, Results, Scope, last, outputs_of, parameters
from engine.calls.values import Gradients
from engine.graph.ir import Value
from engine.graph.program import Program
from engine.transforms.jacobian import jacobian, jacobian_rows


@dataclass(frozen=True)
class Jacobian(Derivative):
    """∂output/∂x for each of `outputs` and each x of `wrt`: shape of the output, then shape of x; x's dtype."""

    is_swept = True

    @classmethod
    def of_program(
        cls, program: Program, wrt: Sequence[int] | None = None, outputs: Sequence[int] | None = None
    ) -> Self:
        """By default of the last node, by all parameters. Raises BadReference and InvalidField."""
        asked = outputs_of(program, outputs, last(program))
        return cls(asked, parameters(program, wrt))

    def write(self, scope: Scope) -> Results:
        """The values, then a block for each output and each node of `wrt`; zeros where there is no path."""
        nodes = scope.float_nodes("wrt", self.wrt)
        blocks = []
        for i, y in zip(self.outputs, scope.float_nodes("outputs", self.outputs), strict=True):
            scope.begin(i)
            found = jacobian(scope.builder, y, nodes, scope.piece_bytes)
            blocks += _blocks("jacobian", y, i, zip(nodes, self.wrt, found, strict=True))
        return Results([*scope.values(self.outputs), *blocks])


@dataclass(frozen=True)
class Hessian(Gradients):
    """∂²of/∂row ∂column for all pairs of `wrt`: shape of the row, then shape and dtype of the column."""

    is_swept = True

    def write(self, scope: Scope) -> Results:
        """The values, the gradients, then the blocks, row by row."""
        first, nodes = super().write(scope), self.nodes(scope)
        gradients = [value for label, value in first.results if label.kind == "gradients"]
        blocks = []
        for row, g in zip(self.wrt, gradients, strict=True):
            scope.begin(self.of)
            found = jacobian_rows(scope.builder, g, nodes, scope.piece_bytes)
            blocks += _blocks("hessian", g, row, zip(nodes, self.wrt, found, strict=True))
        return Results([*first.results, *blocks], first.disconnected)


def _blocks(kind: str, y: Value, row: int, found: zip[tuple[Value, int, Value | None]]) -> list[tuple[Label, Value]]:
    return [
        (Label(kind, (row, column)), x.full_like(0.0, (*y.shape, *x.shape)) if block is None else block)
        for x, column, block in found
    ]
