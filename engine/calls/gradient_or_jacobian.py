"""The derivative of one node: its gradients where it has one element, and else its Jacobian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.calls.call import Results, Scope, labelled
from engine.calls.matrices import BY_PARTS
from engine.calls.values import Gradients
from engine.graph.errors import NonScalarOutput
from engine.graph.opset import OPSET
from engine.graph.tensor_type import show_shape
from engine.transforms.jacobian import jacobian

#: of complex numbers there is no one matrix
_A_PART: Final = "a matrix is of real numbers: differentiate its real or its imag"


@dataclass(frozen=True)
class GradientOrJacobian(Gradients):
    """∂of/∂x for each x of `wrt`, of x's dtype: of x's shape where `of` has one element, whatever its shape is.

    Else the shape is that of `of`, then that of x. Graphs of opset 1 have no such matrices.
    """

    @property
    def is_swept(self) -> bool:
        """Sweep by rows or by columns, if it is a matrix."""
        return True

    def sweeps_in(self, scope: Scope) -> bool:
        """Sweep if `of` has several elements, or none."""
        return scope.nodes[self.of].type.size != 1

    def write_graph(self, scope: Scope) -> Results:
        """The values, then the derivatives; zeros, and `disconnected`, where there is no path.

        Raises as `Gradients`; of a matrix, as `Jacobian`, and NonScalarOutput in a graph of opset 1.
        """
        if not self.sweeps_in(scope):
            return super().write_graph(scope)
        nodes = scope.real_nodes("wrt", self.wrt, BY_PARTS)  # first, as of a gradient
        of = scope.real_node("of", self.of, _A_PART)
        _require_matrices(scope, self.of)
        scope.begin(self.of)
        jacobians = jacobian(scope.builder, of, nodes, scope.chunk_bytes)
        blocks = [
            x.full_like(0.0, (*of.shape, *x.shape)) if block is None else block
            for x, block in zip(nodes, jacobians, strict=True)
        ]
        lost = tuple(node for node, block in zip(self.wrt, jacobians, strict=True) if block is None)
        return Results([*scope.values(self.outputs), *labelled("gradients", self.wrt, blocks)], lost)


def _require_matrices(scope: Scope, of: int) -> None:
    """Raise NonScalarOutput in a graph of opset 1."""
    if scope.program.opset > OPSET:
        return
    shape = show_shape(scope.nodes[of].shape)
    detail = (
        f'has shape {shape}, whose Jacobian batch gives since opset 2: say "opset": 2 in the graph, which is of '
        "opset 1, or reduce it to one element (sum, mean)"
    )
    raise scope.program.statements[of].located(NonScalarOutput(detail, expected="one element", got=shape), of)
