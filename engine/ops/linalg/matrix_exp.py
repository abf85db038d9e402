"""Exponentials and integer powers of matrices."""

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
from engine.ir.tensor_type import DTYPES, Shape, TensorType, mean_dtype
from engine.ops.common import batching
from engine.ops.common.numerics import upcast
from engine.ops.linalg.matrices import Decomposition, admit, chunk_workspace, chunks, identity_like, real_flops, square

#: the norm up to which the error of the polynomial, and of its derivative, is below the rounding of doubles
_MAX_NORMS: Final = (1.090863719290036, 0.9317169257)
#: coefficients of Taylor's polynomial of degree 18 in the form of P. Bader, S. Blanes, F. Casas (2019): 1 + e + (d + c
#: + a b) (c + a b), where a to e are sums of x, x², x³ and x⁶, and d also has a multiple of 1. The leading 1 is taken
#: out of e and added last, which loses no digits.
_COEFFICIENTS: Final = np.array(
    [
        [-0.100365581030144618, -8.02924648241156932e-3, -8.92138498045729985e-4, 0.0],
        [0.0, -9.23364619367118555e-2, -1.69364939002081723e-2, -1.40086798182036094e-5],
        [-6.76404519071381882e-2, 6.75961301770459655e-2, 2.95552570429315521e-2, -1.39180257516060693e-5],
        [1.68015813878906206, 5.71779846478865511e-2, -6.98210122488052056e-3, 3.34975017086070471e-5],
        [0.245910220901108626, 1.36266708320819049, 0.498921025691694265, -6.40927430058536609e-4],
    ]
)
_IDENTITY_OF_D: Final = -11.1485029717743683
_POWERS: Final = 4
#: approximate number of n × n products in one exponential: five for the polynomial, and the squarings
PRODUCTS: Final = 9
#: matrices of scratch for each result
_SCRATCH_MATRICES: Final = 14


def exponentials(run: RunContext, x: Array, *directions: Array) -> Array:
    """Compute exp of each matrix of a chunk [c, n, n], and its derivatives: [1 + directions, c, n, n].

    Each matrix is scaled, put into Taylor's polynomial of degree 18, and squared. Its derivative along each of the
    `directions`, arrays like x, follows by the product rule alongside: three products of n × n matrices instead of one,
    rather than the eight of a block matrix twice as large. NaN for a matrix with an infinity or NaN, or with one in a
    direction.
    """
    xp, (count, n, _) = run.xp, x.shape
    admit(run, "matrix_exp", x)
    halvings, invalid = _halvings(xp, x, directions)
    # one array for everything, so that the allocator hands it to the next call
    memory = xp.empty((1 + len(directions), count, _POWERS + len(_COEFFICIENTS) + 1, n, n), x.dtype)
    first, *_, scratch = _split(memory)
    scales = xp.ldexp(xp.ones(count, x.real.dtype), -halvings)
    for scaled, source in zip(first, (x, *directions), strict=True):
        xp.multiply(_flat(source), scales[:, None], out=_flat(scaled))
    first[:, invalid] = 0
    y = _square_repeatedly(run, _polynomial(xp, memory), scratch, halvings)
    y[:, invalid] = np.nan
    return y


def _halvings(xp: Namespace, x: Array, directions: Sequence[Array]) -> tuple[Array, Array]:
    """Count how often each matrix is halved until its norm is small enough; mark those with no exponential."""
    # the ∞-norm, as a product with ones: faster than the 1-norm, whose sums run along columns
    norms = (xp.abs(x) @ xp.ones(x.shape[-1], x.real.dtype)).max(axis=-1)
    invalid = ~xp.isfinite(norms)
    for direction in directions:
        invalid |= ~xp.isfinite(direction).all(axis=(-2, -1))
    norms[invalid] = 0
    # frexp returns the exact exponent; a logarithm might be rounded up to a whole number
    return xp.maximum(xp.frexp(norms / _MAX_NORMS[1 if directions else 0])[1], 0), invalid


def _split(memory: Array) -> Sequence[Array]:
    """Return the ten matrices as views, each [orders, c, n, n]."""
    return [memory[:, :, i] for i in range(memory.shape[2])]


def _polynomial(xp: Namespace, memory: Array) -> Array:
    """Evaluate the polynomial with five products, of the matrix in the first place; all but the last are scratch."""
    x, x2, x3, x6, a, b, c, d, e, _ = _split(memory)
    _multiply(xp, x, x, x2)
    _multiply(xp, x2, x, x3)
    _multiply(xp, x3, x3, x6)
    # Form the five sums matrix by matrix, so that a result does not depend on the rest of the batch.
    views = memory[:, :, :_POWERS], memory[:, :, _POWERS:-1]
    powers, sums = (view.reshape(*view.shape[:3], -1).view(memory.real.dtype) for view in views)
    xp.matmul(xp.asarray(_COEFFICIENTS, dtype=memory.real.dtype), powers, out=sums)
    ab_c, y = x2, x
    _multiply(xp, a, b, ab_c)
    ab_c += c
    d += ab_c
    _add_identity(d, _IDENTITY_OF_D)
    _multiply(xp, d, ab_c, y)
    y += e
    _add_identity(y, 1.0)
    return y


def _add_identity(x: Array, factor: float) -> None:
    """Add a multiple of the identity to the matrices, but not to their derivatives."""
    _flat(x[0])[:, :: x.shape[-1] + 1] += factor


def _flat(x: Array) -> Array:
    """View each matrix as a row."""
    return x.reshape(len(x), -1)


def _multiply(xp: Namespace, x: Array, y: Array, out: Array) -> None:
    """Compute out = x y, and in each direction dx y + x dy."""
    xp.matmul(x, y[0], out=out)
    if len(x) > 1:
        out[1:] += x[0] @ y[1:]


def _square_repeatedly(run: RunContext, y: Array, scratch: Array, halvings: Array) -> Array:
    """Square each matrix as often as it was halved."""
    xp = run.xp
    for i in run.checked(range(int(halvings.max()))):
        remaining = halvings > i
        if remaining.all():
            _multiply(xp, y, y, scratch)
            y, scratch = scratch, y
        else:
            subset = y[:, remaining]
            square = xp.empty_like(subset)
            _multiply(xp, subset, subset, square)
            y[:, remaining] = square
    return y


def exponentials_bytes(x: TensorType, directions: int) -> int:
    """Count the bytes of chunks of operands like x, with their copies and `directions`."""
    return chunk_workspace(x, (1 + directions) * _SCRATCH_MATRICES * x.shape[-1] ** 2)


class ExponentialSlope(Op):
    """y = dexp(x)[g], the derivative of the exponential at x along g: the upper right block of exp [[x, g], [0, x]].

    x, g and y are [batch…, n, n]. It is an op of its own since its rules use that it is linear in g, which a block does
    not show.

    A. H. Al-Mohy, N. J. Higham, Computing the Fréchet derivative of the matrix exponential (2009): the polynomial and
    the squarings are differentiated product by product.
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
        """Scale directions to at most 1 first, so that no product overflows or underflows."""
        if not x.size:
            return
        for (points, directions), (y,) in chunks(run, [x, g], [out]):
            scales = run.xp.abs(directions).max(axis=(-2, -1), keepdims=True)
            scales[scales == 0] = 1
            y[...] = exponentials(run, points, directions / scales)[1] * scales

    def vjp(self, h: Value, y: Value, x: Value, g: Value) -> Sequence[Value | None]:
        """Apply the op again; for x, on matrices twice as large."""
        return slope_gradient(x, g, h), exponential_slope(adjoint(x), h)

    def batch(self, mapped: Sequence[bool], x: Value, g: Value) -> Value:
        """Return the op itself: N is one more batch axis."""
        return exponential_slope(*batching.expand(mapped, (x, g)))

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write it as a block of the exponential of a block matrix."""
        x, g = operands
        return [_quarter(_block(x, g).matrix_exp(), 0, x.shape[-1], x.shape[-1])]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return three times the FLOPs of the exponential."""
        return real_flops(types[0], 3 * exponential_flops(types[0].shape))

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Count the workspace of a chunk with one direction."""
        return exponentials_bytes(types[0], 1)


def exponential_flops(shape: Shape) -> int:
    """Count the FLOPs of exponentials of matrices of this shape."""
    return 2 * PRODUCTS * math.prod(shape) * shape[-1]


def exponential_slope(x: Value, g: Value) -> Value:
    """Append the derivative of the exponential at x along g; adjoint to that at xᴴ."""
    return x.builder.emit(_SLOPE, (x, g), NONE)


def slope_gradient(x: Value, g: Value, h: Value) -> Value:
    """Return the gradient of sum(h ∘ exponential_slope(x, g)) with respect to x.

    x appears in the block matrix [[x, g], [0, x]] twice, so the two diagonal blocks are added.
    """
    last, n = h.ndim - 1, x.shape[-1]
    block_adjoint, zeros = adjoint(_block(x, g)), h.full_like(0.0)
    corner = zeros.cat(h, axis=last).cat(zeros.cat(zeros, axis=last), axis=last - 1)  # [[0, h], [0, 0]]
    block_cotangent = exponential_slope(block_adjoint, corner)
    return _quarter(block_cotangent, 0, 0, n) + _quarter(block_cotangent, n, n, n)


def _block(x: Value, corner: Value) -> Value:
    """Build [[x, corner], [0, x]]."""
    last = x.ndim - 1
    return x.cat(corner, axis=last).cat(x.full_like(0.0).cat(x, axis=last), axis=last - 1)


def _quarter(x: Value, row: int, column: int, n: int) -> Value:
    lead = x.shape[:-2]
    starts = (*(0 for _ in lead), row, column)
    return x.slice(starts=starts, stops=(*lead, row + n, column + n))


_SLOPE: Final = ExponentialSlope()


class MatrixExp(Decomposition):
    """y = exp x = 1 + x + x² / 2 + … of square matrices on the last two axes.

    x is halved until its norm is below 1.1, a Taylor polynomial of degree 18 is evaluated, and the result is squared as
    often. The error is a few rounding units times the norm of y. A matrix with an infinity or NaN gives NaN; the other
    matrices of the batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
    The gradient, to any order, is an exponential again.

    PyTorch: `linalg.matrix_exp`. JAX and SciPy: `linalg.expm`. P. Bader, S. Blanes, F. Casas, Computing the matrix
    exponential with an optimized Taylor polynomial approximation (2019). For the derivative: I. Najfeld, T. F. Havel
    (1995), and A. H. Al-Mohy, N. J. Higham (2009).
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
        """Compute chunk by chunk."""
        if out.size:
            for (chunk,), (y,) in chunks(run, [x], [out]):
                y[...] = exponentials(run, chunk)[0]

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Apply the derivative at xᴴ, the adjoint of that at x."""
        return (exponential_slope(adjoint(upcast(x)), upcast(g)),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 18 n³ for each matrix: about nine products."""
        return real_flops(types[0], exponential_flops(types[0].shape))

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Count a copy of a chunk, its powers and their sums."""
        return exponentials_bytes(x, 0)


class MatrixPower(Composite):
    """y = xᵏ, the product of k square matrices x, on the last two axes; x⁰ = 1, and x⁻ᵏ is the power of the inverse.

    Computed by repeated squaring, with about 2 log₂ k products. A negative power of a singular matrix is NaN, or very
    large if rounding hides the singularity. Integers give float64; float16 is computed in a wider float and rounded
    once. PyTorch, JAX and NumPy: `linalg.matrix_power`; in JAX and NumPy, integers stay integers.
    """

    name = "matrix_power"
    section = "matrix_power"
    operands = ("x",)
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"k": Attr("int", doc="exponent; may be 0 or negative")}
    since = 2
    gradient = "Σ (xᴴ)ⁱ g (xᴴ)ʲ over i + j = k − 1, through the products"
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
        """Multiply those repeated squares of x, or of its inverse, whose bits are set in k."""
        dtype, n = mean_dtype(x.dtype), x.shape[-1]
        if k == 0:
            return identity_like(x.cast(dtype=dtype), n).broadcast_to(shape=x.shape)
        base = upcast(x.cast(dtype=dtype) if dtype != x.dtype else x)
        power = _power(base if k > 0 else base.inv(), abs(k))
        return power.cast(dtype=dtype) if power.dtype != dtype else power


def _power(x: Value, k: int) -> Value:
    power: Value | None = None
    while True:
        if k % 2:
            power = x if power is None else power @ x
        k //= 2
        if not k:
            assert power is not None
            return power
        x = x @ x
