"""Shared parts of matrix ops: bases, batches in chunks, factorizations, and helpers of their gradients.

LAPACK cannot be interrupted. Large batches are therefore computed in chunks of a few milliseconds, with a look at the
deadline after each, and a single matrix that would take too long is refused in advance (`admit`). A matrix without an
answer (singular, not positive definite, not finite) gives NaN for itself alone, where NumPy raises an error for the
whole batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.errors import ShapeMismatch
from engine.ir.graph import Builder, Value, adjoint, permute, shaped, unpermute
from engine.ir.op import Array, Op, ResultTypes
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.tensor_type import (
    COMPLEX128,
    DTYPES,
    FLOAT64,
    DType,
    HostArray,
    Shape,
    TensorType,
    is_complex,
    mean_dtype,
    promote,
    real_dtype,
    show_shape,
)
from engine.ops.common import batching
from engine.ops.common.batching import BatchedAsIs
from engine.ops.common.numerics import accumulator
from engine.ops.linalg.matmul import product_type


class SquareMatrix(BatchedAsIs):
    """Base of ops on square matrices, on the last two axes of one operand, each with its own result."""

    is_captured = False
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES

    def infer(self, x: TensorType) -> ResultTypes:
        """Return the type of matrices like x. Raises ShapeMismatch."""
        return square(x)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes in doubles: x if it is converted, the results, and two matrices of LAPACK scratch."""
        results = sum(y.size * wide_dtype(y.dtype).itemsize for y in (out if isinstance(out, tuple) else (out,)))
        scratch = 2 * x.shape[-1] ** 2 if x.size else 0
        dtype = wide_dtype(x.dtype)
        return results + dtype.itemsize * (count_converted(dtype, x) + scratch)


class System(Op):
    """Base of linear systems: square matrices a and right-hand sides b; y solves op(a) y = b.

    As in NumPy 2, b is a vector if it is 1-d. It holds one vector per matrix if it has a's shape without the last axis
    and cannot be matrices of n rows. Otherwise each column of the matrices on its last two axes is a right-hand side.
    The axes before broadcast.
    """

    is_captured = False
    operands: ClassVar[tuple[str, ...]] = ("a", "b")
    dtypes: ClassVar[tuple[str, ...]] = DTYPES

    def infer(self, a: TensorType, b: TensorType, **attrs: Any) -> ResultTypes:
        """Return the type of the product a⁻¹ b. Raises ShapeMismatch."""
        a, b = square(a, "a"), _floats(b)
        return b.with_dtype(promote(a.dtype, b.dtype)) if _pairs_vectors(a, b) else product_type(a, b)

    def compose(self, a: Value, b: Value, **attrs: Any) -> Value | None:
        """Turn vectors into columns, and place right-hand sides of one matrix side by side to factor it once."""
        if b.ndim == 1 or _pairs_vectors(a.type, b.type):
            y = self._solve(a, b.reshape(shape=(*b.shape, 1)), attrs)
            return y.reshape(shape=y.shape[:-1])
        if a.ndim > 2 or b.ndim == 2:
            return None
        order = (b.ndim - 2, *range(b.ndim - 2), b.ndim - 1)
        rows = permute(b, order)
        y = self._solve(a, rows.reshape(shape=(rows.shape[0], math.prod(rows.shape[1:]))), attrs)
        return unpermute(y.reshape(shape=rows.shape), order)

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Align the ranks; N is then one more batch axis. `compose` leaves no vectors."""
        a, b = batching.align(mapped, operands)
        return self._solve(a, b, attrs)

    def _solve(self, a: Value, b: Value, attrs: Mapping[str, Any]) -> Value:
        return a.builder.emit(self, (a, b), attrs)


def _pairs_vectors(a: TensorType, b: TensorType) -> bool:
    """Whether b [..., n] holds one vector per matrix: only if it cannot be matrices [..., n, m]."""
    return b.ndim > 1 and b.shape == a.shape[:-1] and b.shape[-2] != a.shape[-1]


def wide_dtype(dtype: DType) -> DType:
    """Return float64 or complex128, whichever holds numbers of this dtype."""
    return COMPLEX128 if is_complex(dtype) else FLOAT64


def count_converted(dtype: DType, *operands: TensorType) -> int:
    """Count the elements that are copied to bring all operands to this dtype."""
    return sum(x.size for x in operands if x.dtype != dtype)


@DeviceFunction
def compute_dtype(_: RunContext, out: Array) -> DType:
    """Return the dtype in which xp.linalg computes `out`: no library supports float16."""
    return accumulator(out)


@compute_dtype.on("cpu")
def _compute_dtype_on_cpu(_: RunContext, out: Array) -> DType:
    """Return the dtype that NumPy's linalg computes in."""
    return wide_dtype(out.dtype)


@DeviceFunction
def answer_each(run: RunContext, name: str, *operands: Array, out: Array) -> None:
    """Write out = xp.linalg.name(*operands), with NaN for each matrix of the batch that it rejects.

    All operands have the batch axes of `out` and the dtype `compute_dtype`, and one of them may be `out`. One call is
    enough if every matrix has a result; otherwise the batch is split until the matrices without one are isolated.
    """
    if out.size:
        _apply_split(getattr(run.xp.linalg, name), operands, out)


@answer_each.on("cpu")
def _answer_with_gufunc(run: RunContext, name: str, *operands: HostArray, out: HostArray) -> None:
    """Make one call in any case, if NumPy has a function that does not raise."""
    function = unchecked_gufunc(name)
    if function is None:
        answer_each.general(run, name, *operands, out=out)
    elif out.size:
        with np.errstate(all="ignore"):
            out[...] = function(*operands)


@answer_each.on("cuda")
def _answer_on_cuda(run: RunContext, name: str, *operands: Array, out: Array) -> None:
    """Have CuPy check and raise: by default it leaves meaningless numbers."""
    import cupyx  # noqa: PLC0415 - optional

    with cupyx.errstate(linalg="raise"):
        answer_each.general(run, name, *operands, out=out)


# The gufuncs that numpy.linalg's functions of these names call. The public functions raise LinAlgError for the whole
# batch if the gufunc wrote NaN for any matrix: the results of the rest would be lost, and computing them again would
# take another call. The gufuncs are private, so there is a fallback without them.
_GUFUNCS = getattr(np.linalg, "_umath_linalg", None)
_UNCHECKED = {
    "cholesky": "cholesky_lo",
    "inv": "inv",
    "solve": "solve",
    "eigh": "eigh_lo",
    "eigvalsh": "eigvalsh_lo",
    "svd": "svd_s",
    "svdvals": "svd",
}


def unchecked_gufunc(name: str) -> Any:
    """Return NumPy's gufunc that writes NaN where the public function of this name raises; None if it has none."""
    return getattr(_GUFUNCS, _UNCHECKED.get(name, ""), None)


def _apply_split(compute: Callable[..., Array], operands: Sequence[Array], out: Array) -> None:
    try:
        out[...] = compute(*operands)
    except np.linalg.LinAlgError:
        if math.prod(out.shape[:-2]) == 1:
            out.fill(np.nan)
            return
        # split into eighths: if every matrix is rejected, fewer calls are wasted than with halves
        count = len(out)
        size = max(count // 8, 1)
        chunks_to_try: Sequence[Any] = [slice(i, i + size) for i in range(0, count, size)] if count > 1 else [0]
        for chunk in chunks_to_try:
            _apply_split(compute, [x[chunk] for x in operands], out[chunk])


def square(x: TensorType, name: str = "x") -> TensorType:
    """Return the type that operand 0 is computed in. Raises ShapeMismatch unless it holds square matrices."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        expected, received = "square matrices on its last two axes", show_shape(x.shape)
        raise ShapeMismatch(
            f"operand 0 ({name}) must hold {expected}, but has shape {received}",
            operand=0,
            expected=expected,
            got=received,
        )
    return _floats(x)


def _floats(x: TensorType) -> TensorType:
    """Return the type in which numpy.linalg computes: float64 if x is not float."""
    return x if x.is_differentiable else x.with_dtype(FLOAT64)


#: most elements of a chunk, and most FLOPs in units of n³: a few milliseconds of work between two deadline checks
_CHUNK_ELEMENTS: Final = 1 << 15
_CHUNK_CUBES: Final = 1 << 20

#: seconds that LAPACK takes on one current processor per m n min(m, n) of a matrix of doubles: the fastest measured, so
#: that a rejected matrix would have been late. Complex numbers take at least three times as long.
_SECONDS_PER_CUBE: Final = {
    "eigh": 1.8e-10,
    "eigvalsh": 6e-11,
    "svd": 3.3e-10,
    "svdvals": 1.2e-10,
    "qr": 8e-11,
    "lu": 2.2e-11,
    "matrix_exp": 1.8e-10,
}
_COMPLEX_FACTOR: Final = 3


def matrices_per_chunk(shape: Shape) -> int:
    """Return the number of matrices of this shape, on its last two axes, that make one chunk."""
    m, n = shape[-2:]
    return max(1, min(_CHUNK_ELEMENTS // max(1, m * n), _CHUNK_CUBES // max(1, m * n * max(m, n))))


def chunks(
    run: RunContext, operands: Sequence[Array], outs: Sequence[Array]
) -> Iterator[tuple[list[Array], list[Array]]]:
    """Yield copies of a chunk of matrices in the dtype `compute_dtype`, and views where their results go.

    All operands have the batch axes of the first, whose last two axes hold matrices. Raises DeadlineExceeded.
    """
    batch = operands[0].shape[:-2]
    count, axes = math.prod(batch), len(batch)
    flat = [a.reshape(count, *a.shape[axes:]) for a in (*operands, *outs)]
    dtype, size = compute_dtype(run, max(operands, key=_is_complex)), matrices_per_chunk(operands[0].shape)
    for start in run.checked(range(0, count, size)):
        chunk = slice(start, start + size)
        copies = [run.xp.array(a[chunk], dtype=dtype) for a in flat[: len(operands)]]
        yield copies, [a[chunk] for a in flat[len(operands) :]]


def _is_complex(x: Array) -> bool:
    return is_complex(x.dtype)


def chunk_bytes(shape: Shape, doubles: int, *operands: TensorType) -> int:
    """Count the bytes of a chunk that takes `doubles` per matrix, and of operands that a reshape copies.

    For a complex operand they are pairs of doubles.
    """
    scattered = sum(x.nbytes for x in operands if not x.is_dense and x.ndim > 3)
    itemsize = max(wide_dtype(x.dtype).itemsize for x in operands)
    return scattered + itemsize * doubles * min(matrices_per_chunk(shape), math.prod(shape[:-2]))


def symmetric_part(x: Array) -> Array:
    """Return (x + xᴴ) / 2 of a chunk, which is overwritten."""
    x *= 0.5
    return x + x.swapaxes(-1, -2).conj()


def factorize(run: RunContext, name: str, x: Array) -> Sequence[Array]:
    """Return the factors of each matrix of a chunk [c, m, n], which is overwritten; NaN if there are none.

    `name` is one of eigh, eigvalsh (of symmetric matrices), svd, svdvals (thin), and qr (reduced). A matrix with an
    infinity or NaN has no factors, and is never passed to LAPACK. Raises DeadlineTooNear for one that takes too long.
    """
    invalid = ~run.xp.isfinite(x).all(axis=(-2, -1))
    x[invalid] = 0
    factors = _factorize(run, name, x)
    for y in factors:
        y[invalid] = np.nan
    return factors


@DeviceFunction
def _factorize(run: RunContext, name: str, x: Array) -> list[Array]:
    """Factor all matrices in one call; if any has no factors, one call each."""
    function = _raising_function(run.xp, name)
    try:
        return list(_as_sequence(function(x)))
    except np.linalg.LinAlgError:
        return _factorize_each(function, x)


def _factorize_each(function: Callable[[Array], Any], x: Array) -> list[Array]:
    """Factor each matrix alone; one without factors gets NaN in the shapes of a zero matrix's factors."""
    factors = []
    for i in range(len(x)):
        try:
            factors.append(_as_sequence(function(x[i : i + 1])))
        except np.linalg.LinAlgError:
            factors.append([np.nan * y for y in _as_sequence(function(0 * x[i : i + 1]))])
    return [_stack(parts) for parts in zip(*factors, strict=True)]


def _stack(singles: Sequence[Array]) -> Array:
    stacked = singles[0].repeat(len(singles), axis=0)
    for i, single in enumerate(singles):
        stacked[i] = single[0]
    return stacked


def _as_sequence(factors: Any) -> Sequence[Array]:
    return factors if isinstance(factors, tuple | list) else [factors]


def _raising_function(xp: Any, name: str) -> Callable[[Array], Any]:
    functions: dict[str, Callable[[Array], Any]] = {
        "eigh": xp.linalg.eigh,
        "eigvalsh": xp.linalg.eigvalsh,
        "svd": partial(xp.linalg.svd, full_matrices=False),
        "svdvals": partial(xp.linalg.svd, compute_uv=False),
        "qr": xp.linalg.qr,
    }
    return functions[name]


def admit(run: RunContext, name: str, x: Array) -> None:
    """Raise DeadlineTooNear if a chunk takes too long on a processor, estimated with `_SECONDS_PER_CUBE`."""
    if run.device == "cpu":
        factor = _COMPLEX_FACTOR if _is_complex(x) else 1
        run.deadline.admit(factor * _SECONDS_PER_CUBE[name] * x.size * min(x.shape[-2:]) / run.threads)


@_factorize.on("cpu")
def _factorize_on_cpu(run: RunContext, name: str, x: Array) -> list[Array]:
    """Call NumPy's gufunc, if there is one, so that one matrix's failure does not discard the rest.

    Raises DeadlineTooNear.
    """
    admit(run, name, x)
    function = unchecked_gufunc(name)
    if function is None:
        return _factorize.general(run, name, x)
    with np.errstate(all="ignore"):
        return list(_as_sequence(function(x)))


@_factorize.on("cuda")
def _factorize_on_cuda(run: RunContext, name: str, x: Array) -> list[Array]:
    """Have CuPy check and raise: by default it leaves meaningless numbers."""
    import cupyx  # noqa: PLC0415 - optional

    with cupyx.errstate(linalg="raise"):
        return _factorize.general(run, name, x)


class Decomposition(BatchedAsIs):
    """Base of factorizations by LAPACK, which cannot be interrupted and depends on the elements."""

    is_captured = False
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    since: ClassVar[int] = 2


def matrix_type(x: TensorType, operand: int = 0, name: str = "x") -> TensorType:
    """Return the type an operand is computed in: float64 if not float. Raises ShapeMismatch if it has no matrices."""
    if x.ndim < 2:
        expected, received = "matrices on its last two axes", show_shape(x.shape)
        raise ShapeMismatch(
            f"operand {operand} ({name}) must hold {expected}, but has shape {received}",
            operand=operand,
            expected=expected,
            got=received,
        )
    return x.with_dtype(mean_dtype(x.dtype))


def chunk_workspace(x: TensorType, per_matrix: int, once: int = 0) -> int:
    """Count the bytes of chunks that take `per_matrix` numbers each, and of LAPACK's `once`, one matrix at a time.

    The numbers are doubles, or pairs of doubles for a complex x.
    """
    return chunk_bytes(x.shape, per_matrix, x) + wide_dtype(x.dtype).itemsize * once if x.size else 0


def real_like(x: TensorType) -> TensorType:
    """Return x with the dtype of its elements' magnitudes."""
    return x.with_dtype(real_dtype(x.dtype))


def real_flops(x: TensorType, flops: int) -> int:
    """Convert operations on x's numbers to FLOPs: a complex multiply-add takes four times those of a real one."""
    return 4 * flops if x.is_complex else flops


# Helpers of the gradients of eigenvectors and singular vectors: adjoints, and gaps that may be 0.
# If values are equal, the matrix does not determine their vectors, only the space they span, and a function that
# depends on the choice has no gradient. A cotangent does not show whether the function does, once rounding has split
# the values. Pairs closer than 16 n ε ‖x‖ therefore count as equal, and the attribute `degenerate` decides their
# gradient.

DEGENERATE: Final = Attr(
    "string",
    "nan",
    "gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces matter",
    choices=("nan", "whole"),
)
#: distance in units of n ε ‖x‖ within which two values count as equal
_EQUAL_WITHIN: Final = 16


def hermitian_part(x: Value) -> Value:
    """Return (x + xᴴ) / 2, halved first so that the sum does not overflow needlessly."""
    half = x * 0.5
    return half + adjoint(half)


def scaled_columns(x: Value, factors: Value) -> Value:
    """Multiply column j of matrices x [..., m, k] by entry j of `factors` [..., k]."""
    return x * row(factors)


def row(x: Value) -> Value:
    """Reshape [..., k] → [..., 1, k]."""
    return shaped(x, (*x.shape[:-1], 1, x.shape[-1]))


def column(x: Value) -> Value:
    """Reshape [..., k] → [..., k, 1]."""
    return shaped(x, (*x.shape, 1))


def tolerance(values: Value, n: int) -> Value:
    """Return the distance [..., 1] within which values [..., k] of an n × n matrix count as equal."""
    largest = values.abs().max(axes=(values.ndim - 1,), keepdims=True)
    return largest * (_EQUAL_WITHIN * n * float(np.finfo(values.dtype).eps))


def empty_gradient(x: Value, g: Sequence[Value | None]) -> Value | None:
    """Return the cotangent of an x without elements, which still depends on the cotangents `g` in the graph."""
    totals = [cotangent.sum() for cotangent in g if cotangent is not None]
    return x.full_like(0.0) * sum(totals[1:], start=totals[0]) if totals else None


def diagonal_mask(builder: Builder, n: int) -> Value:
    """Return a mask [n, n] that is true on the diagonal."""
    numbers = builder.arange(n)
    return numbers.reshape(shape=(n, 1)).equal(numbers)


def identity_like(x: Value, n: int) -> Value:
    """Return the n × n identity in the dtype of x."""
    return diagonal_mask(x.builder, n).cast(dtype=x.dtype)


def inverse_gaps(gaps: Value, is_left_out: Value, degenerate: str) -> Value:
    """Return 1 / gaps; where `is_left_out`, NaN or, for whole spaces, 0.

    The 0 holds to first order only: its own derivative is NaN, through the square root of 0.
    """
    inverse = is_left_out.where(1.0, gaps).reciprocal()
    if degenerate == "nan":
        return is_left_out.where(math.nan, inverse)
    return is_left_out.where(is_left_out.where(gaps * 0.0, 1.0).sqrt(), inverse)


def off_diagonal_gaps(values: Value, within: Value, degenerate: str) -> Value:
    """Return F [..., k, k] of values [..., k]: 1 / (vⱼ − vᵢ), 0 on the diagonal.

    Equal values, those at most `within` apart, are treated as `degenerate` says.
    """
    gaps = row(values) - column(values)
    diagonal = diagonal_mask(values.builder, values.shape[-1])
    is_close = (gaps.abs() <= column(within)).logical_and(diagonal.logical_not())
    return diagonal.where(0.0, inverse_gaps(diagonal.where(1.0, gaps), is_close, degenerate))
