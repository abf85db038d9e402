"""The determinant."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.dtypes import DTYPES, real_dtype
from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType
from engine.oplib.conjugates import adjoint
from engine.oplib.matrices import SquareMatrix, computed, square
from engine.oplib.widening import wide


class SLogDet(SquareMatrix):
    """sign, log|det x| of the matrices on the last two axes: [batch…, n, n] → [batch…] twice; det x = sign · exp(log).

    The logarithm neither overflows nor underflows where the determinant does. A singular matrix has sign 0 and the
    logarithm −∞, and its gradient is NaN, as that of the inverse; the others of its batch are as if it were not there.
    The sign carries no gradient. Of a complex matrix it is complex, det x / |det x|, and the logarithm real.
    Several results, read through get_output.
    Integers give float64; float16 is computed in a wider float, and rounded once.
    """

    name = "slogdet"
    section = "slogdet"
    is_captured = False
    operands = ("x",)
    dtypes = DTYPES
    gradient = "g · x⁻ᴴ, g the cotangent of log|det x|"
    several = True
    samples = (
        Sample(Real(3, 3, diagonal=7)),
        Sample(Real(2, 2, 2, diagonal=-7)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 0)),
        Sample(Real(0, 2, 2)),
    )

    def infer(self, x: TensorType) -> ResultTypes:
        """x without its last two axes, twice, the second time real. Raises ShapeMismatch."""
        result = square(x).with_shape(x.shape[:-2])
        return result, result.with_dtype(real_dtype(result.dtype))

    def forward(self, run: RunContext, x: Array, *, out: tuple[Array, ...]) -> None:
        """LAPACK's getrf."""
        xp = run.xp
        found = xp.linalg.slogdet(xp.asarray(x, dtype=computed(run, out[0])))
        for y, part in zip(out, found, strict=True):
            y[...] = part

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value) -> Sequence[Value | None]:
        """Jacobi's formula."""
        by_log = g[1]
        if by_log is None:
            return (None,)
        return (adjoint(wide(x).inv()) * by_log.reshape(shape=(*by_log.shape, 1, 1)),)

    def flops(self, out: ResultTypes, *types: TensorType) -> int:
        """2 n³ / 3 for each matrix."""
        return 2 * types[0].size * types[0].shape[-1] // 3
