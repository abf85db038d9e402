"""Parts of all factorizations: square operands, batches taken apart, and adjoints and gaps for gradients."""

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
    promote,
    real_dtype,
    show_shape,
    to_average,
)
from engine.ops.common import batching
from engine.ops.common.batching import BatchedAsIs
from engine.ops.common.numerics import accumulator
from engine.ops.linalg.matmul import product_type


class SquareMatrix(BatchedAsIs):
    """Base: one operand, square matrices on its last two axes, which are answered one by one."""

    is_captured = False
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES

    def infer(self, x: TensorType) -> ResultTypes:
        """Matrices like x. Raises ShapeMismatch."""
        return square(x)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """In doubles: x where it is none, the answers, and the two matrices that LAPACK works on."""
        answers = sum(y.size * wide_dtype(y.dtype).itemsize for y in (out if isinstance(out, tuple) else (out,)))
        scratch = 2 * x.shape[-1] ** 2 if x.size else 0
        dtype = wide_dtype(x.dtype)
        return answers + dtype.itemsize * (converted(dtype, x) + scratch)


class System(Op):
    """Base: square matrices a and right-hand sides b; y solves op(a) y = b.

    b is a vector if it is 1-d, as in NumPy 2, or one for each matrix: of a's shape without the last axis, where that
    does not hold matrices of n rows. Else each column of the matrices on its last two axes is a right-hand side. The
    axes before broadcast.
    """

    is_captured = False
    operands: ClassVar[tuple[str, ...]] = ("a", "b")
    dtypes: ClassVar[tuple[str, ...]] = DTYPES

    def infer(self, a: TensorType, b: TensorType, **attrs: Any) -> ResultTypes:
        """The shape of the product a⁻¹ b. Raises ShapeMismatch."""
        a, b = square(a, "a"), _floats(b)
        return b.with_dtype(promote(a.dtype, b.dtype)) if _pairs_vectors(a, b) else product_type(a, b)

    def compose(self, a: Value, b: Value, **attrs: Any) -> Value | None:
        """Vectors as columns; many right-hand sides of one matrix side by side, so that it is factored once."""
        if b.ndim == 1 or _pairs_vectors(a.type, b.type):
            y = self._solved(a, b.reshape(shape=(*b.shape, 1)), attrs)
            return y.reshape(shape=y.shape[:-1])
        if a.ndim > 2 or b.ndim == 2:
            return None
        order = (b.ndim - 2, *range(b.ndim - 2), b.ndim - 1)
        rows = permute(b, order)
        y = self._solved(a, rows.reshape(shape=(rows.shape[0], math.prod(rows.shape[1:]))), attrs)
        return unpermute(y.reshape(shape=rows.shape), order)

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """N is one more batch axis, once the ranks agree: `compose` leaves no vectors."""
        a, b = batching.align(mapped, operands)
        return self._solved(a, b, attrs)

    def _solved(self, a: Value, b: Value, attrs: Mapping[str, Any]) -> Value:
        return a.builder.emit(self, (a, b), attrs)


def _pairs_vectors(a: TensorType, b: TensorType) -> bool:
    """Whether b [..., n] holds a vector for each matrix, which it does where it cannot be matrices [..., n, m]."""
    return b.ndim > 1 and b.shape == a.shape[:-1] and b.shape[-2] != a.shape[-1]


def wide_dtype(dtype: DType) -> DType:
    """The dtype in doubles, real or complex, that holds numbers of this one."""
    return COMPLEX128 if is_complex(dtype) else FLOAT64


def converted(dtype: DType, *operands: TensorType) -> int:
    """Count the elements that are copied to have all operands in this dtype."""
    return sum(x.size for x in operands if x.dtype != dtype)


@DeviceFunction
def computed(_: RunContext, out: Array) -> DType:
    """The dtype in which xp.linalg makes `out`: nobody has loops for float16."""
    return accumulator(out)


@computed.on("cpu")
def _computed(_: RunContext, out: Array) -> DType:
    """The dtypes that NumPy's linalg has loops for."""
    return wide_dtype(out.dtype)


@DeviceFunction
def answer_each(run: RunContext, name: str, *operands: Array, out: Array) -> None:
    """out = xp.linalg.name(*operands), with NaN for each matrix of the batch that it refuses.

    All operands have the batch axes of `out` and the dtype `computed`, and one of them may be `out`. One call where
    every matrix has its answer; only else is the batch taken apart, until those without one stand alone.
    """
    if out.size:
        _answer(getattr(run.xp.linalg, name), operands, out)


@answer_each.on("cpu")
def _answer_at_once(run: RunContext, name: str, *operands: HostArray, out: HostArray) -> None:
    """One call in any case, where NumPy has what it takes."""
    function = unchecked(name)
    if function is None:
        answer_each.general(run, name, *operands, out=out)
    elif out.size:
        with np.errstate(all="ignore"):
            out[...] = function(*operands)


@answer_each.on("cuda")
def _answer_on_cuda(run: RunContext, name: str, *operands: Array, out: Array) -> None:
    """CuPy leaves numbers without meaning, unless told to look and raise."""
    import cupyx  # noqa: PLC0415 - optional

    with cupyx.errstate(linalg="raise"):
        answer_each.general(run, name, *operands, out=out)


# What numpy.linalg's functions of these names call, and then raise LinAlgError for the whole batch if it has written
# NaN for one of them: the answers of the others would be lost, and could only be had by calling again. They are not
# public, so that there is a way without them.
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


def unchecked(name: str) -> Any:
    """NumPy's function of matrices that writes NaN where the public one of this name raises; None where it has none."""
    return getattr(_GUFUNCS, _UNCHECKED.get(name, ""), None)


def _answer(compute: Callable[..., Array], operands: Sequence[Array], out: Array) -> None:
    try:
        out[...] = compute(*operands)
    except np.linalg.LinAlgError:
        if math.prod(out.shape[:-2]) == 1:
            out.fill(np.nan)
            return
        # Eighths: where all are refused, fewer calls are in vain than with halves.
        count = len(out)
        size = max(count // 8, 1)
        parts: Sequence[Any] = [slice(i, i + size) for i in range(0, count, size)] if count > 1 else [0]
        for part in parts:
            _answer(compute, [x[part] for x in operands], out[part])


def square(x: TensorType, name: str = "x") -> TensorType:
    """Operand 0 as it is computed with. Raises ShapeMismatch unless its last two axes hold square matrices."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        wanted, got = "square matrices on its last two axes", show_shape(x.shape)
        raise ShapeMismatch(
            f"operand 0 ({name}) must hold {wanted}, but has shape {got}", operand=0, expected=wanted, got=got
        )
    return _floats(x)


def _floats(x: TensorType) -> TensorType:
    """Type in which numpy.linalg computes: float64 for what is not float."""
    return x if x.is_differentiable else x.with_dtype(FLOAT64)


#: elements of a chunk, and FLOPs of one in units of n³: a few milliseconds of work between two looks at the deadline
_ELEMENTS: Final = 1 << 15
_CUBES: Final = 1 << 20

#: seconds of LAPACK on one processor of today, for each m n min(m, n) of a matrix of doubles: what took least, so that
#: what is refused would be late. Of complex numbers it is three times as much at least.
_SECONDS: Final = {
    "eigh": 1.8e-10,
    "eigvalsh": 6e-11,
    "svd": 3.3e-10,
    "svdvals": 1.2e-10,
    "qr": 8e-11,
    "lu": 2.2e-11,
    "matrix_exp": 1.8e-10,
}
_COMPLEX: Final = 3


def at_once(shape: Shape) -> int:
    """Count the matrices of this shape, on its last two axes, that are one chunk."""
    m, n = shape[-2:]
    return max(1, min(_ELEMENTS // max(1, m * n), _CUBES // max(1, m * n * max(m, n))))


def chunks(
    run: RunContext, operands: Sequence[Array], outs: Sequence[Array]
) -> Iterator[tuple[list[Array], list[Array]]]:
    """Take a batch apart: copies of some matrices in the dtype `computed`, and where their results go.

    All have the batch axes of the first operand, whose last two hold matrices. Raises DeadlineExceeded.
    """
    batch = operands[0].shape[:-2]
    count, axes = math.prod(batch), len(batch)
    flat = [a.reshape(count, *a.shape[axes:]) for a in (*operands, *outs)]
    dtype, size = computed(run, max(operands, key=_is_complex)), at_once(operands[0].shape)
    for start in run.through(range(0, count, size)):
        part = slice(start, start + size)
        copies = [run.xp.array(a[part], dtype=dtype) for a in flat[: len(operands)]]
        yield copies, [a[part] for a in flat[len(operands) :]]


def _is_complex(x: Array) -> bool:
    return is_complex(x.dtype)


def chunk_bytes(shape: Shape, doubles: int, *operands: TensorType) -> int:
    """Count the bytes that chunks of this shape take: so many doubles a matrix, and operands that a reshape copies.

    Of a complex operand they are pairs of doubles.
    """
    scattered = sum(x.nbytes for x in operands if not x.is_dense and x.ndim > 3)
    number = max(wide_dtype(x.dtype).itemsize for x in operands)
    return scattered + number * doubles * min(at_once(shape), math.prod(shape[:-2]))


def symmetric_part(x: Array) -> Array:
    """(x + xᴴ) / 2, of a chunk that may be written over."""
    x *= 0.5
    return x + x.swapaxes(-1, -2).conj()


def factored(run: RunContext, name: str, x: Array) -> Sequence[Array]:
    """The factors of each matrix of a chunk [c, m, n], which is written over: NaN where there are none.

    `name` is one of eigh, eigvalsh (of what is symmetric), svd, svdvals (thin), and qr (reduced). A matrix with an
    infinity or NaN has no factors: LAPACK is never shown one. Raises DeadlineTooNear for one that takes too long.
    """
    lost = ~run.xp.isfinite(x).all(axis=(-2, -1))
    x[lost] = 0
    factors = _factored(run, name, x)
    for y in factors:
        y[lost] = np.nan
    return factors


@DeviceFunction
def _factored(run: RunContext, name: str, x: Array) -> list[Array]:
    """One call where all matrices have factors; only else one each."""
    function = _checked(run.xp, name)
    try:
        return list(_several(function(x)))
    except np.linalg.LinAlgError:
        return _one_by_one(function, x)


def _one_by_one(function: Callable[[Array], Any], x: Array) -> list[Array]:
    """Factor each alone, since at least one has no factors: its NaN have the shapes of a zero matrix's factors."""
    found = []
    for i in range(len(x)):
        try:
            found.append(_several(function(x[i : i + 1])))
        except np.linalg.LinAlgError:
            found.append([np.nan * y for y in _several(function(0 * x[i : i + 1]))])
    return [_joined(parts) for parts in zip(*found, strict=True)]


def _joined(parts: Sequence[Array]) -> Array:
    whole = parts[0].repeat(len(parts), axis=0)
    for i, part in enumerate(parts):
        whole[i] = part[0]
    return whole


def _several(found: Any) -> Sequence[Array]:
    return found if isinstance(found, tuple | list) else [found]


def _checked(xp: Any, name: str) -> Callable[[Array], Any]:
    functions: dict[str, Callable[[Array], Any]] = {
        "eigh": xp.linalg.eigh,
        "eigvalsh": xp.linalg.eigvalsh,
        "svd": partial(xp.linalg.svd, full_matrices=False),
        "svdvals": partial(xp.linalg.svd, compute_uv=False),
        "qr": xp.linalg.qr,
    }
    return functions[name]


def admit(run: RunContext, name: str, x: Array) -> None:
    """Look whether there is time for a chunk on a processor, by a name of `_SECONDS`. Raises DeadlineTooNear."""
    if run.device == "cpu":
        times = _COMPLEX if _is_complex(x) else 1
        run.deadline.admit(times * _SECONDS[name] * x.size * min(x.shape[-2:]) / run.threads)


@_factored.on("cpu")
def _factored_on_cpu(run: RunContext, name: str, x: Array) -> list[Array]:
    """Without the check that takes what others have, where NumPy has such a function. Raises DeadlineTooNear."""
    admit(run, name, x)
    function = unchecked(name)
    if function is None:
        return _factored.general(run, name, x)
    with np.errstate(all="ignore"):
        return list(_several(function(x)))


@_factored.on("cuda")
def _factored_on_cuda(run: RunContext, name: str, x: Array) -> list[Array]:
    """CuPy leaves numbers without meaning, unless told to look and raise."""
    import cupyx  # noqa: PLC0415 - optional

    with cupyx.errstate(linalg="raise"):
        return _factored.general(run, name, x)


class Decomposition(BatchedAsIs):
    """Base: matrices are answered one by one, and by LAPACK, which is not interrupted, and decides by elements."""

    is_captured = False
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    since: ClassVar[int] = 2


def matrix_type(x: TensorType, operand: int = 0, name: str = "x") -> TensorType:
    """An operand as it is computed with: in float64 what is not float. Raises ShapeMismatch if it has no matrices."""
    if x.ndim < 2:
        wanted, got = "matrices on its last two axes", show_shape(x.shape)
        raise ShapeMismatch(
            f"operand {operand} ({name}) must hold {wanted}, but has shape {got}",
            operand=operand,
            expected=wanted,
            got=got,
        )
    return x.with_dtype(to_average(x.dtype))


def chunk_workspace(x: TensorType, each: int, once: int = 0) -> int:
    """Bytes for chunks that take so many numbers a matrix, and for what LAPACK takes, which is one at a time.

    They are doubles, or pairs of these.
    """
    return chunk_bytes(x.shape, each, x) + wide_dtype(x.dtype).itemsize * once if x.size else 0


def real_like(x: TensorType) -> TensorType:
    """x, of the dtype that sizes of its elements have."""
    return x.with_dtype(real_dtype(x.dtype))


def operations(x: TensorType, flops: int) -> int:
    """So many of the numbers of x, as FLOPs: a complex product with its sum takes four times those of a real one."""
    return 4 * flops if x.is_complex else flops


# Parts of the gradients of eigenvectors and singular vectors: adjoints, and gaps that may be 0.
#
# Vectors of equal values are not told apart by the matrix, and the gradient of a function that depends on which they
# are does not exist. Nobody can know from a cotangent whether the function does, once rounding has split the values:
# so pairs that are closer than 16 n ε ‖x‖ are taken for equal, and what then is, is the caller's word.

DEGENERATE: Final = Attr(
    "string",
    "nan",
    "where values are equal and vectors are read: nan, or whole: only whole spaces are depended on",
    choices=("nan", "whole"),
)
#: of n ε ‖x‖: within this, two values are taken for equal
_CLOSE: Final = 16


def hermitian_part(x: Value) -> Value:
    """(x + xᴴ) / 2, halved first: nothing overflows that need not."""
    half = x * 0.5
    return half + adjoint(half)


def scaled_columns(x: Value, by: Value) -> Value:
    """Each column j of matrices x [..., m, k] times by [..., k]."""
    return x * row(by)


def row(x: Value) -> Value:
    """[..., k] → [..., 1, k]."""
    return shaped(x, (*x.shape[:-1], 1, x.shape[-1]))


def column(x: Value) -> Value:
    """[..., k] → [..., k, 1]."""
    return shaped(x, (*x.shape, 1))


def tolerance(values: Value, n: int) -> Value:
    """[..., k] → [..., 1]: within what distance eigenvalues or singular values of an n × n matrix are equal."""
    largest = values.abs().max(axes=(values.ndim - 1,), keepdims=True)
    return largest * (_CLOSE * n * float(np.finfo(values.dtype).eps))


def of_nothing(x: Value, g: Sequence[Value | None]) -> Value | None:
    """The cotangent of x, which has no elements: it depends on those that have arrived, as others do."""
    arrived = [part.sum() for part in g if part is not None]
    return x.full_like(0.0) * sum(arrived[1:], start=arrived[0]) if arrived else None


def diagonal_mask(builder: Builder, n: int) -> Value:
    """[n, n]: true where the two indices are equal."""
    numbers = builder.arange(n)
    return numbers.reshape(shape=(n, 1)).equal(numbers)


def identity_like(x: Value, n: int) -> Value:
    """The n × n identity, in the dtype of x."""
    return diagonal_mask(x.builder, n).cast(dtype=x.dtype)


def inverse_gaps(gaps: Value, is_left_out: Value, degenerate: str) -> Value:
    """1 / gaps; where `is_left_out`, NaN or, for whole spaces, 0.

    A 0 that holds at first order alone: its own derivative is NaN, by the square root of 0.
    """
    inverse = is_left_out.where(1.0, gaps).reciprocal()
    if degenerate == "nan":
        return is_left_out.where(math.nan, inverse)
    return is_left_out.where(is_left_out.where(gaps * 0.0, 1.0).sqrt(), inverse)


def off_diagonal_gaps(values: Value, within: Value, degenerate: str) -> Value:
    """F [..., k, k] of values [..., k]: 1 / (vⱼ − vᵢ), 0 on the diagonal; of equal ones as `degenerate` says."""
    gaps = row(values) - column(values)
    diagonal = diagonal_mask(values.builder, values.shape[-1])
    is_close = (gaps.abs() <= column(within)).logical_and(diagonal.logical_not())
    return diagonal.where(0.0, inverse_gaps(diagonal.where(1.0, gaps), is_close, degenerate))
