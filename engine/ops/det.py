"""The determinant itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType
from engine.graph.truth import Truth
from engine.oplib.cofactors import cofactors
from engine.oplib.conjugates import conjugate
from engine.oplib.decomposition import Decomposition, chunk_workspace, operations
from engine.oplib.factors import chunks
from engine.oplib.matrices import square
from engine.oplib.spectrum import of_nothing
from engine.oplib.widening import wide


class Det(Decomposition):
    """y = det x of the square matrices on the last two axes: [batch…, n, n] → [batch…]; 1 of a matrix without entries.

    `slogdet` neither overflows nor underflows. The gradient is the matrix of cofactors, exact for singular matrices,
    too; second derivatives of these are NaN, or infinite. A matrix that holds NaN gives NaN for itself alone. Integers
    give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's and NumPy's `linalg.det`.
    """

    name = "det"
    section = "det"
    gradient = "g · the conjugate cofactors of x: of det(x) x⁻ᵀ where x is regular"
    samples = (
        Sample(Real(3, 3)),
        Sample(Real(2, 2, 2, diagonal=-7)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 0)),
        Sample(Real(0, 2, 2)),
    )
    truths = (
        Truth(
            operands=[[[1.0, 2.0], [3.0, 4.0]]],
            value=-2.0,
            cotangent=10.0,
            gradients=[[[40.0, -30.0], [-20.0, 10.0]]],
            source="by hand: a d − b c",
        ),
        Truth(
            operands=[[[1.0, 2.0], [2.0, 4.0]]],
            value=0.0,
            gradients=[[[4.0, -2.0], [-2.0, 1.0]]],
            source="by hand: a d − b c",
        ),
    )

    def infer(self, x: TensorType) -> ResultTypes:
        """[...]. Raises ShapeMismatch."""
        matrices = square(x)
        return matrices.with_shape(matrices.shape[:-2])

    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """LAPACK's getrf."""
        if not x.size:
            out.fill(1)
            return
        for (part,), (y,) in chunks(run, [x], [out]):
            y[...] = run.xp.linalg.det(part)

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Jacobi's formula."""
        if not x.type.size:
            return (of_nothing(x, [g]),)
        return (conjugate(cofactors(wide(x))) * wide(g).reshape(shape=(*g.shape, 1, 1)),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """2 n³ / 3 for each matrix."""
        return operations(types[0], 2 * types[0].size * types[0].shape[-1] // 3)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """A copy, results, and LAPACK's copy."""
        n = x.shape[-1]
        return chunk_workspace(x, n * n + 1, n * n)
