"""Exponentials and whole powers of matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.graph import Value, adjoint
from engine.ir.op import NONE, Array, Composite, Namespace, Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, Shape, TensorType, to_average
from engine.ops.common import batching
from engine.ops.common.numerics import wide
from engine.ops.linalg.matrices import Decomposition, admit, chunk_workspace, chunks, identity_like, operations, square

#: the norm up to which the polynomial, and up to which its derivative, has an error below the rounding of doubles
_REACH: Final = (1.090863719290036, 0.9317169257)
#: Taylor's polynomial of degree 18, as P. Bader, S. Blanes, F. Casas (2019) have it, with its 1 taken out, which is
#: then added last, and costs no digits: 1 + e + (d + c + a b) (c + a b), where five sums are of x, x², x³ and x⁶, and d
#: has a multiple of 1 beside
_SUMS: Final = np.array(
    [
        [-0.100365581030144618, -8.02924648241156932e-3, -8.92138498045729985e-4, 0.0],
        [0.0, -9.23364619367118555e-2, -1.69364939002081723e-2, -1.40086798182036094e-5],
        [-6.76404519071381882e-2, 6.75961301770459655e-2, 2.95552570429315521e-2, -1.39180257516060693e-5],
        [1.68015813878906206, 5.71779846478865511e-2, -6.98210122488052056e-3, 3.34975017086070471e-5],
        [0.245910220901108626, 1.36266708320819049, 0.498921025691694265, -6.40927430058536609e-4],
    ]
)
_BESIDE: Final = -11.1485029717743683
_POWERS: Final = 4
#: products of n × n matrices that one exponential takes, about: five for the polynomial, and squares
PRODUCTS: Final = 9
#: matrices that are there at a time, for each that is answered
_MATRICES: Final = 14


def exponentials(run: RunContext, x: Array, *along: Array) -> Array:
    """exp of each matrix of a chunk [c, n, n], and its derivatives along others, as many: [1 + directions, c, n, n].

    A matrix is scaled, put into Taylor's polynomial of degree 18, and squared. It goes together with its derivatives,
    by the rule of the product: three products of n × n matrices instead of one, and not the eight of a block twice as
    large. NaN for a matrix with an infinity or NaN, or with one in a direction.
    """
    xp, (count, n, _) = run.xp, x.shape
    admit(run, "matrix_exp", x)
    times, lost = _halvings(xp, x, along)
    # in one array, which the next call is given again
    places = xp.empty((1 + len(along), count, _POWERS + len(_SUMS) + 1, n, n), x.dtype)
    first, *_, spare = _split(places)
    scales = xp.ldexp(xp.ones(count, x.real.dtype), -times)
    for place, part in zip(first, (x, *along), strict=True):
        xp.multiply(_flat(part), scales[:, None], out=_flat(place))
    first[:, lost] = 0
    y = _squared(run, _polynomial(xp, places), spare, times)
    y[:, lost] = np.nan
    return y


def _halvings(xp: Namespace, x: Array, along: Sequence[Array]) -> tuple[Array, Array]:
    """Count how often each matrix is halved until its norm is within reach; and mark those without an exponential."""
    # by sums along rows, as products with ones: a norm, too, and in less time than along columns
    norms = (xp.abs(x) @ xp.ones(x.shape[-1], x.real.dtype)).max(axis=-1)
    lost = ~xp.isfinite(norms)
    for each in along:
        lost |= ~xp.isfinite(each).all(axis=(-2, -1))
    norms[lost] = 0
    # the exponent of a float, and no logarithm of one, which may be rounded up to a whole number
    return xp.maximum(xp.frexp(norms / _REACH[1 if along else 0])[1], 0), lost


def _split(places: Array) -> Sequence[Array]:
    """Each [orders, c, n, n]."""
    return [places[:, :, i] for i in range(places.shape[2])]


def _polynomial(xp: Namespace, places: Array) -> Array:
    """Evaluate it by five products, of the matrix in the first place; the others but the last are its memory."""
    x, x2, x3, x6, a, b, c, d, e, _ = _split(places)
    _multiply(xp, x, x, x2)
    _multiply(xp, x2, x, x3)
    _multiply(xp, x3, x3, x6)
    # The five sums, matrix by matrix, so that none depends on which others are there.
    parts = places[:, :, :_POWERS], places[:, :, _POWERS:-1]
    numbers, sums = (part.reshape(*part.shape[:3], -1).view(places.real.dtype) for part in parts)
    xp.matmul(xp.asarray(_SUMS, dtype=places.real.dtype), numbers, out=sums)
    right, y = x2, x
    _multiply(xp, a, b, right)
    right += c
    d += right
    _add_identity(d, _BESIDE)
    _multiply(xp, d, right, y)
    y += e
    _add_identity(y, 1.0)
    return y


def _add_identity(x: Array, times: float) -> None:
    """Add a multiple of 1 to the matrices, and not to their derivatives."""
    _flat(x[0])[:, :: x.shape[-1] + 1] += times


def _flat(x: Array) -> Array:
    """Each matrix as a row; a view."""
    return x.reshape(len(x), -1)


def _multiply(xp: Namespace, x: Array, y: Array, out: Array) -> None:
    """out = x y, and in each direction dx y + x dy."""
    xp.matmul(x, y[0], out=out)
    if len(x) > 1:
        out[1:] += x[0] @ y[1:]


def _squared(run: RunContext, y: Array, spare: Array, times: Array) -> Array:
    """Each matrix as often as it says."""
    xp = run.xp
    for i in run.through(range(int(times.max()))):
        left = times > i
        if left.all():
            _multiply(xp, y, y, spare)
            y, spare = spare, y
        else:
            some = y[:, left]
            square = xp.empty_like(some)
            _multiply(xp, some, some, square)
            y[:, left] = square
    return y


def exponentials_bytes(x: TensorType, directions: int) -> int:
    """Count the bytes of chunks of operands like x, with so many directions and the operands' copies."""
    return chunk_workspace(x, (1 + directions) * _MATRICES * x.shape[-1] ** 2)


class ExponentialSlope(Op):
    """y = dexp(x)[g], the derivative of the exponential at x along g: the upper right block of exp [[x, g], [0, x]].

    x, g and y [batch…, n, n]. Linear in g, which its rules know, as they would not of the block.
    A. H. Al-Mohy, N. J. Higham, Computing the Fréchet derivative of the matrix exponential (2009): the polynomial and
    its squares are differentiated, product by product.
    """

    name = "exponential_slope"
    internal = True
    is_captured = False
    operands = ("x", "g")
    dtypes = DTYPES
    gradient: ClassVar[str] = "by g: the derivative at xᵀ along h; by x: that of the block's exponential"

    def infer(self, x: TensorType, g: TensorType) -> ResultTypes:
        """Return the type of x."""
        return x

    def forward(self, run: RunContext, x: Array, g: Array, *, out: Array) -> None:
        """Along directions no larger than 1, which no product makes too large or too small."""
        if not x.size:
            return
        for (at, along), (y,) in chunks(run, [x, g], [out]):
            sizes = run.xp.abs(along).max(axis=(-2, -1), keepdims=True)
            sizes[sizes == 0] = 1
            y[...] = exponentials(run, at, along / sizes)[1] * sizes

    def vjp(self, h: Value, y: Value, x: Value, g: Value) -> Sequence[Value | None]:
        """Itself again, on matrices twice as large for x."""
        return slope_by_matrix(x, g, h), exponential_slope(adjoint(x), h)

    def batch(self, mapped: Sequence[bool], x: Value, g: Value) -> Value:
        """Itself: N is one more batch axis."""
        return exponential_slope(*batching.expand(mapped, (x, g)))

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write it as a block of the exponential of a block matrix."""
        x, g = operands
        return [_quarter(_block(x, g).matrix_exp(), 0, x.shape[-1], x.shape[-1])]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Three products for each of the exponential."""
        return operations(types[0], 3 * exponential_flops(types[0].shape))

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Count the workspace of a chunk with one direction."""
        return exponentials_bytes(types[0], 1)


def exponential_flops(shape: Shape) -> int:
    """Count the FLOPs of exponentials of matrices of this shape."""
    return 2 * PRODUCTS * math.prod(shape) * shape[-1]


def exponential_slope(x: Value, g: Value) -> Value:
    """Append the derivative of the exponential at x along g; adjoint to that at xᴴ."""
    return x.builder.emit(_SLOPE, (x, g), NONE)


def slope_by_matrix(x: Value, g: Value, h: Value) -> Value:
    """The gradient by x of the sum of h times `exponential_slope(x, g)`: of both places where x is in the block."""
    last, n = h.ndim - 1, x.shape[-1]
    turned, zeros = adjoint(_block(x, g)), h.full_like(0.0)
    corner = zeros.cat(h, axis=last).cat(zeros.cat(zeros, axis=last), axis=last - 1)  # [[0, h], [0, 0]]
    back = exponential_slope(turned, corner)
    return _quarter(back, 0, 0, n) + _quarter(back, n, n, n)


def _block(x: Value, corner: Value) -> Value:
    """[[x, corner], [0, x]]."""
    last = x.ndim - 1
    return x.cat(corner, axis=last).cat(x.full_like(0.0).cat(x, axis=last), axis=last - 1)


def _quarter(x: Value, row: int, column: int, n: int) -> Value:
    lead = x.shape[:-2]
    starts = (*(0 for _ in lead), row, column)
    return x.slice(starts=starts, stops=(*lead, row + n, column + n))


_SLOPE: Final = ExponentialSlope()


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
        """Return the type of x; float64 unless x is float. Raises ShapeMismatch."""
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
        """Count a copy of a chunk, its powers and their sums."""
        return exponentials_bytes(x, 0)


class MatrixPower(Composite):
    """y = xᵏ, the product of k square matrices x, on the last two axes; x⁰ = 1, and x⁻ᵏ the power of the inverse.

    By squares: some 2 log₂ k products. A negative power of a singular matrix is NaN, or, where rounding hides that,
    very large. Integers give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's and
    NumPy's `linalg.matrix_power`, of which the latter keep whole numbers whole.
    """

    name = "matrix_power"
    section = "matrix_power"
    operands = ("x",)
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"k": Attr("int", doc="the exponent; may be 0 or negative")}
    since = 2
    gradient = "Σ (xᴴ)ⁱ g (xᴴ)ʲ over i + j = k − 1, as the products give it"
    samples = (
        Sample(Real(3, 3), k=3),
        Sample(Real(2, 2, 2), k=6),
        Sample(Real(2, 2, 2, diagonal=7), k=-2),
        Sample(Real(3, 3), k=1),
        Sample(Real(2, 2, 2), k=0),
        Sample(Real(0, 0), k=2),
    )
    truths = (
        Truth(
            operands=[[[1.0, 2.0], [0.0, 1.0]]],
            attrs={"k": 3},
            value=[[1.0, 6.0], [0.0, 1.0]],
            cotangent=[[0.0, 1.0], [0.0, 0.0]],
            gradients=[[[6.0, 3.0], [4.0, 6.0]]],
            source="by hand: of [[p, q], [r, s]], p² q + q² r + p q s + q s² at that place",
        ),
        Truth(
            operands=[[[2.0, 0.0], [0.0, 4.0]]],
            attrs={"k": -2},
            value=[[0.25, 0.0], [0.0, 0.0625]],
            cotangent=[[1.0, 0.0], [0.0, 10.0]],
            gradients=[[[-0.25, 0.0], [0.0, -0.3125]]],
            source="by hand: −2 / x³",
        ),
    )

    def infer(self, x: TensorType, *, k: int) -> ResultTypes:
        """Return the type of x; float64 unless x is float. Raises ShapeMismatch."""
        return square(x)

    def compose(self, x: Value, *, k: int) -> Value:
        """Squares of x, or its inverse, of which those are multiplied that k has in binary."""
        dtype, n = to_average(x.dtype), x.shape[-1]
        if k == 0:
            return identity_like(x.cast(dtype=dtype), n).broadcast_to(shape=x.shape)
        base = wide(x.cast(dtype=dtype) if dtype != x.dtype else x)
        power = _power(base if k > 0 else base.inv(), abs(k))
        return power.cast(dtype=dtype) if power.dtype != dtype else power


def _power(x: Value, k: int) -> Value:
    found: Value | None = None
    while True:
        if k % 2:
            found = x if found is None else found @ x
        k //= 2
        if not k:
            assert found is not None
            return found
        x = x @ x
