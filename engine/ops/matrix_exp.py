"""Exponentials and whole powers of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType
from engine.graph.truth import Truth
from engine.oplib.conjugates import adjoint
from engine.oplib.decomposition import Decomposition, operations
from engine.oplib.exponentials import exponential_flops, exponential_slope, exponentials, exponentials_bytes
from engine.oplib.factors import chunks
from engine.oplib.matrices import square
from engine.oplib.widening import wide


class MatrixExp(Decomposition):
    """y = exp x = 1 + x + x² / 2 + …, of the square matrices on the last two axes.

    Scaled until its norm is below 1.1, approximated by Taylor's polynomial of degree 18, and squared as often: the
    error is some units of rounding times the norm of y. A matrix that holds an infinity or NaN gives NaN for itself
    alone. Integers give float64; float16 is computed in a wider float, and rounded once. To any order, the gradient is
    an exponential again.
    P. Bader, S. Blanes, F. Casas, Computing the matrix exponential with an optimized Taylor polynomial approximation
    (2019); its derivative by I. Najfeld, T. F. Havel (1995), and A. H. Al-Mohy, N. J. Higham (2009). PyTorch's
    `linalg.matrix_exp`, JAX's and SciPy's `linalg.expm`.
    """

    name = "matrix_exp"
    section = "matrix_exp"
    gradient = "the upper right block of exp [[xᴴ, g], [0, xᴴ]]"
    samples = (
        Sample(Real(3, 3)),
        Sample(Real(2, 2, 2, low=-9, high=9)),
        Sample(Real(1, 1)),
        Sample(Real(0, 0)),
        Sample(Real(0, 2, 2)),
    )
    truths = (
        Truth(
            operands=[[[0.0, 2.0], [0.0, 0.0]]],
            value=[[1.0, 2.0], [0.0, 1.0]],
            cotangent=[[1.0, 10.0], [100.0, 1000.0]],
            gradients=[[[1 + 10.0 + 0.0, 10.0], [100 + 1 + 1000 + 20.0 / 3, 10 + 1000.0]]],
            source="by hand: Σ xⁱ dx xʲ / (i + j + 1)! of x² = 0",
        ),
        Truth(
            operands=[[[math.log(2.0), 0.0], [0.0, math.log(8.0)]]],
            value=[[2.0, 0.0], [0.0, 8.0]],
            cotangent=[[1.0, 10.0], [100.0, 1000.0]],
            gradients=[[[2.0, 60.0 / math.log(4.0)], [600.0 / math.log(4.0), 8000.0]]],
            source="by hand: divided differences of exp, (8 − 2) / log 4",
        ),
    )

    def infer(self, x: TensorType) -> ResultTypes:
        """That of x, in float64 what is not float. Raises ShapeMismatch."""
        return square(x)

    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """Some matrices at a time."""
        if out.size:
            for (part,), (y,) in chunks(run, [x], [out]):
                y[...] = exponentials(run, part)[0]

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """The derivative is adjoint to that at xᵀ."""
        return (exponential_slope(adjoint(wide(x)), wide(g)),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """18 n³ for each matrix: some nine products."""
        return operations(types[0], exponential_flops(types[0].shape))

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Of a chunk, a copy, powers and sums of these."""
        return exponentials_bytes(x, 0)
