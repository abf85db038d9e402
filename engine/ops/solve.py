"""Linear systems: general, triangular, and by the Cholesky decomposition; the inverse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.by_device import DeviceMethod
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType
from engine.oplib.conjugates import adjoint
from engine.oplib.elementwise import unbroadcast
from engine.oplib.lapack import is_for_lapack, solve_each, solve_each_bytes
from engine.oplib.matrices import SquareMatrix, System, answer_each, computed, converted, wide_dtype
from engine.oplib.widening import widened


class Solve(System):
    """y with a y = b: a [batch…, n, n], b [n], [batch…, n] or [batch…, n, m]; batch axes of matrices broadcast.

    b is a vector if it is 1-d, as in NumPy 2, or one for each matrix if it has a's shape without the last axis and its
    last two axes cannot be matrices of n rows; else they are. Where a is singular y is NaN, or, where rounding hides
    that, very large; the other systems of the batch are as if it were not there.
    Integers give float64; float16 is computed in a wider float, and rounded once.
    M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
    """

    name = "solve"
    section = "solve"
    is_captured = False
    operands = ("a", "b")
    dtypes = DTYPES
    gradient = "db = a⁻ᴴ g, da = −(db yᴴ), summed over batch axes that were broadcast"
    samples = (
        Sample(Real(3, 3, diagonal=7), Real(3)),
        Sample(Real(3, 3, diagonal=7), Real(3, 2)),
        Sample(Real(2, 3, 3, diagonal=7), Real(3)),
        Sample(Real(2, 3, 3, diagonal=7), Real(2, 3)),
        Sample(Real(2, 2, 2, diagonal=7), Real(2, 2)),
        Sample(Real(3, 3, diagonal=7), Real(2, 3, 1)),
        Sample(Real(2, 1, 2, 2, diagonal=7), Real(3, 2, 2)),
        Sample(Real(0, 0), Real(0, 2)),
    )

    @DeviceMethod
    def forward(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """LAPACK's gesv."""
        xp = run.xp
        left, right = (xp.asarray(x, dtype=computed(run, out)) for x in (a, b))
        left = xp.broadcast_to(left, (*out.shape[:-2], *a.shape[-2:]))
        answer_each(run, "solve", left, xp.broadcast_to(right, out.shape), out=out)

    @forward.on("cpu")
    def _forward_on_cpu(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """Large matrices by what gesv is made of."""
        if is_for_lapack(a.shape):
            solve_each(run, np.broadcast_to(a, (*out.shape[:-2], *a.shape[-2:])), np.broadcast_to(b, out.shape), out)
        else:
            Solve.forward.general(self, run, a, b, out=out)

    def vjp(self, g: Value, y: Value, a: Value, b: Value) -> Sequence[Value | None]:
        """The system with aᴴ."""
        y, a, b = widened(self, y, (a, b), {})
        by_b = adjoint(a).solve(g)
        return unbroadcast(-(by_b @ adjoint(y)), a), unbroadcast(by_b, b)

    def flops(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """2 n³ / 3 for each matrix, and 2 n² for each right-hand side."""
        n, m = out.shape[-2:]
        return int(math.prod(out.shape[:-2]) * (2 * n**3 // 3 + 2 * n * n * m))

    def workspace(self, out: Any, a: TensorType, b: TensorType) -> int:
        """In doubles: the operands where they are none, the answers, and the matrices that LAPACK works on."""
        if is_for_lapack(a.shape):
            return solve_each_bytes(out)
        n, m = out.shape[-2:]
        scratch = n * (n + m) if out.size else 0
        return int(wide_dtype(out.dtype).itemsize * (converted(wide_dtype(out.dtype), a, b) + out.size + scratch))


class Inv(SquareMatrix):
    """y = x⁻¹, for matrices on the last two axes.

    Where x is singular y is NaN, or, where rounding hides that, very large; the others of the batch are as if it were
    not there. To solve a system, `solve` is quicker and more accurate.
    Integers give float64; float16 is computed in a wider float, and rounded once.
    """

    name = "inv"
    section = "solve"
    is_captured = False
    operands = ("x",)
    dtypes = DTYPES
    gradient = "−yᴴ g yᴴ"
    samples = (
        Sample(Real(3, 3, diagonal=7)),
        Sample(Real(2, 2, 2, diagonal=7)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 0)),
        Sample(Real(0, 2, 2)),
    )

    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """LAPACK's gesv, on the identity."""
        answer_each(run, "inv", run.xp.asarray(x, dtype=computed(run, out)), out=out)

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """From dy = −y dx y."""
        y, _ = widened(self, y, (x,), {})
        turned = adjoint(y)
        return (-(turned @ g @ turned),)

    def flops(self, out: ResultTypes, *types: TensorType) -> int:
        """2 n³ for each matrix."""
        return 2 * types[0].size * types[0].shape[-1]
