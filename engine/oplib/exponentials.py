"""Exponentials of matrices, and their derivatives along a direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import NONE, Array, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import Shape, TensorType
from engine.oplib import batching
from engine.oplib.conjugates import adjoint
from engine.oplib.decomposition import operations, room
from engine.oplib.factors import pieces
from engine.oplib.matrices import answer_each

#: the 1-norm up to which the approximant [13/13] has an error below the rounding of doubles, and its coefficients
_REACH: Final = 5.371920351148152
_PADE: Final = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0),
    *(10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
#: products of n × n matrices that one exponential takes, about: six for the approximant, two for the quotient, squares
PRODUCTS: Final = 12
#: matrices that are there at a time
_MATRICES: Final = 12


def exponentials(run: RunContext, x: Array) -> Array:
    """exp of each matrix of a piece [c, n, n], which is written over: scaled, approximated, and squared.

    NaN for a matrix with an infinity or NaN.
    """
    xp = run.xp
    norms = xp.abs(x).sum(axis=-2).max(axis=-1)
    lost = ~xp.isfinite(norms)
    x[lost] = 0
    norms[lost] = 0
    # the exponent of a float, and no logarithm of one, which may be rounded up to a whole number
    times = xp.maximum(xp.frexp(norms / _REACH)[1], 0)
    x *= xp.ldexp(xp.ones_like(norms), -times)[:, None, None]
    y = _approximated(run, x)
    for i in run.through(range(int(times.max()))):
        left = times > i
        some = y[left]
        y[left] = some @ some
    y[lost] = np.nan
    return y


def _approximated(run: RunContext, x: Array) -> Array:
    """The approximant of Padé: (v + u) / (v − u), u of odd and v of even powers."""
    b, one = _PADE, run.xp.eye(x.shape[-1], dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    u = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one)
    v = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    y = run.xp.empty_like(x)
    answer_each(run, "solve", v - u, v + u, out=y)
    return y


def exponentials_bytes(x: TensorType, n: int, copies: int) -> int:
    """What pieces of operands like x take, that n × n matrices are made of."""
    ratio = (n // x.shape[-1]) ** 2 if x.size else 0
    return room(x, _MATRICES * n * n + copies * x.shape[-1] ** 2) if ratio else 0


class ExponentialSlope(Op):
    """y = dexp(x)[g], the derivative of the exponential at x along g: the upper right block of exp [[x, g], [0, x]].

    x, g and y [batch…, n, n]. Linear in g, which its rules know, as they would not of the block.
    I. Najfeld, T. F. Havel, Derivatives of the matrix exponential and their computation (1995), theorem 4.
    """

    name = "exponential_slope"
    internal = True
    is_captured = False
    operands = ("x", "g")
    dtypes = DTYPES
    gradient: ClassVar[str] = "by g: the derivative at xᵀ along h; by x: that of the block's exponential"

    def infer(self, x: TensorType, g: TensorType) -> ResultTypes:
        """That of x."""
        return x

    def forward(self, run: RunContext, x: Array, g: Array, *, out: Array) -> None:
        """Of a block in which g is no larger than 1, so that its size does not decide how often x is halved."""
        if not x.size:
            return
        n = x.shape[-1]
        for (at, along), (y,) in pieces(run, [x, g], [out]):
            sizes = n * run.xp.abs(along).max(axis=(-2, -1), keepdims=True)
            sizes[sizes == 0] = 1
            block = run.xp.zeros((len(at), 2 * n, 2 * n), at.dtype)
            block[:, :n, :n] = block[:, n:, n:] = at
            block[:, :n, n:] = along / sizes
            y[...] = exponentials(run, block)[:, :n, n:] * sizes

    def vjp(self, h: Value, y: Value, x: Value, g: Value) -> Sequence[Value | None]:
        """Itself again, on matrices twice as large for x."""
        return slope_by_matrix(x, g, h), exponential_slope(adjoint(x), h)

    def batch(self, mapped: Sequence[bool], x: Value, g: Value) -> Value:
        """Itself: N is one more batch axis."""
        return exponential_slope(*batching.expand(mapped, (x, g)))

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """As the block."""
        x, g = operands
        return [_quarter(_block(x, g).matrix_exp(), 0, x.shape[-1], x.shape[-1])]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Those of matrices twice as large."""
        x, n = types[0], 2 * types[0].shape[-1]
        return operations(x, exponential_flops((*x.shape[:-2], n, n)))

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Copies, and what blocks take."""
        return exponentials_bytes(types[0], 2 * types[0].shape[-1], 3)


def exponential_flops(shape: Shape) -> int:
    """Of the exponentials of matrices of this shape."""
    return 2 * PRODUCTS * math.prod(shape) * shape[-1]


def exponential_slope(x: Value, g: Value) -> Value:
    """Append the derivative of the exponential at x along g; adjoint to that at xᴴ."""
    return x.builder.emit(_SLOPE, (x, g), NONE)


def slope_by_matrix(x: Value, g: Value, h: Value) -> Value:
    """The gradient by x of the sum of h times `exponential_slope(x, g)`: of both places where x is in the block."""
    n = x.shape[-1]
    back = exponential_slope(adjoint(_block(x, g)), _in_corner(h))
    return _quarter(back, 0, 0, n) + _quarter(back, n, n, n)


def _block(x: Value, corner: Value) -> Value:
    """[[x, corner], [0, x]]."""
    last = x.ndim - 1
    return x.cat(corner, axis=last).cat(x.full_like(0.0).cat(x, axis=last), axis=last - 1)


def _in_corner(h: Value) -> Value:
    """[[0, h], [0, 0]]."""
    last, zeros = h.ndim - 1, h.full_like(0.0)
    return zeros.cat(h, axis=last).cat(zeros.cat(zeros, axis=last), axis=last - 1)


def _quarter(x: Value, row: int, column: int, n: int) -> Value:
    lead = x.shape[:-2]
    starts = (*(0 for _ in lead), row, column)
    return x.slice(starts=starts, stops=(*lead, row + n, column + n))


_SLOPE: Final = ExponentialSlope()
