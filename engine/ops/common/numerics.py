"""Numerics that several families share: accumulation dtypes, short rows on the CPU, float16, NaN, infinities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, DtypeMismatch, ShapeMismatch, counted
from engine.ir.graph import Value
from engine.ir.kinds.scalars import typed_number
from engine.ir.op import Array, Kernel, KernelCall, Namespace, Op, ResultTypes
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.tensor_type import (
    FLOAT16,
    FLOAT32,
    INT32,
    DType,
    HostArray,
    Shape,
    TensorType,
    has_infinities,
    is_complex,
    show_shape,
)

_SPECIAL_NUMBERS: Final[Mapping[str, float]] = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
#: attribute that stands in for `fill` if the number is an infinity or NaN, which JSON lacks
FILL_AS: Final = Attr(
    "string",
    None,
    "infinity or NaN to use instead of `fill`; float dtypes only",
    choices=tuple(_SPECIAL_NUMBERS),
    since=2,
    instead_of="fill",
)


class NullaryOp(Kernel):
    """Base of ops without operands: there is nothing to differentiate and nothing to batch."""

    operands: ClassVar[tuple[str, ...]] = ()
    gradient: ClassVar[str] = "none: there are no operands"

    def tensor(self, run: RunContext, type: TensorType, **attrs: Any) -> Array:
        """Return the result as a read-only array: a new one, or existing memory that holds it already."""
        out = run.xp.empty(type.shape, type.dtype)
        self.forward(run, out=out, **attrs)
        return out

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Return 0: the op only fills memory."""
        return 0


def check_representable(fill: float, dtype: DType) -> None:
    """Raise BadAttribute unless the attribute `fill` is representable in `dtype`."""
    if not is_representable(fill, dtype):
        expected = f"a whole number that {dtype.name} can represent"
        raise BadAttribute(
            f"attribute fill must be {expected}, but is {fill:g}", attribute="fill", expected=expected, got=f"{fill:g}"
        )


def require_real(dtype: DType) -> None:
    """Raise DtypeMismatch if the attribute `dtype` is complex."""
    if is_complex(dtype):
        expected, received = "a dtype that is not complex", dtype.name
        raise DtypeMismatch(
            f"attribute dtype must be {expected}, but is {received}", attribute="dtype", expected=expected, got=received
        )


def is_representable(number: float, dtype: DType) -> bool:
    """Whether `dtype` can represent `number`. Float dtypes always can: they round."""
    if has_infinities(dtype):
        return True
    low, high = integer_limits(dtype)
    return is_integral(number) and low <= int(number) <= high


def is_integral(number: float) -> bool:
    """Whether `number` has no fractional part."""
    return float(number).is_integer()


def integer_limits(dtype: DType) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer dtype or bool."""
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def resolve_fill(attrs: Mapping[str, Any], dtype: DType) -> dict[str, Any]:
    """Convert `fill` to a number of `dtype`, or replace it by the number that `fill_as` names. Raises BadAttribute."""
    name = attrs["fill_as"]
    if name is None:
        check_representable(attrs["fill"], dtype)
        return {**attrs, "fill": typed_number(attrs["fill"], dtype)}
    if dtype.kind != "f":
        received = dtype.name
        raise BadAttribute(
            f"attribute fill_as needs a float dtype, but the dtype is {received}",
            attribute="fill_as",
            expected="a float dtype",
            got=received,
        )
    return {**attrs, "fill": _SPECIAL_NUMBERS[name], "fill_as": None}


def fill_word(number: float) -> str | None:
    """Return the `fill_as` word of an infinity or NaN; None for finite numbers, which JSON can express."""
    return None if math.isfinite(number) else str(float(number))


# Short rows on the CPU. NumPy starts its inner loop once per row of a reduction, which costs more than adding up a
# short row.

#: elements of a chunk: two chunks fit in a core's L2 cache
CHUNK_ELEMENTS = 1 << 15
#: longest row that is transposed in chunks
LONGEST_TRANSPOSED = 64
#: longest row that is summed by a matrix product: for longer rows NumPy's pairwise sum is more accurate and no slower
LONGEST_MULTIPLIED = 128
#: largest number of elements that a compiled kernel sums in one block, and the smallest block size if there are several
ONE_BLOCK: Final = 1 << 14
SMALLEST_BLOCK: Final = 1 << 13


def _short_rows(x: HostArray, axes: Sequence[int], longest: int) -> HostArray | None:
    """Return x as a matrix with one row per reduction over `axes`, if the rows are contiguous and short; else None."""
    length = _row_length(x.shape, axes)
    return x.reshape(-1, length) if x.flags.c_contiguous and 0 < length <= longest else None


def _row_length(shape: Shape, axes: Sequence[int]) -> int:
    """Return the length of the rows over `axes` if these are the last axes; else 0."""
    last = tuple(axes) == tuple(range(len(shape) - len(axes), len(shape)))
    return math.prod(shape[a] for a in axes) if axes and last else 0


def _adjacent_columns(x: HostArray, axes: Sequence[int]) -> tuple[int, int, int] | None:
    """Return the extents before, over and after `axes`, if these are adjacent and the extent after is small."""
    before, after = math.prod(x.shape[: axes[0]]) if axes else 0, math.prod(x.shape[axes[-1] + 1 :]) if axes else 0
    neighbours = tuple(axes) == tuple(range(axes[0], axes[-1] + 1)) if axes else False
    are_short = neighbours and x.flags.c_contiguous and x.size and 1 < after <= LONGEST_TRANSPOSED
    return (before, x.size // (before * after), after) if are_short else None


def sum_into(run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
    """Write Σ x over axes into `out`, accumulating in its dtype."""
    function, arguments = bind_sum(run, x, out=out, axes=axes, keepdims=keepdims)
    function(*arguments)


@DeviceFunction
def bind_sum(run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> KernelCall:
    """Return the bound call that writes Σ x over axes into `out`."""
    return partial(run.xp.sum, x, axis=axes, dtype=out.dtype, keepdims=keepdims, out=out), ()


@bind_sum.on("cpu")
def _bind_sum(_: RunContext, x: HostArray, *, out: HostArray, axes: tuple[int, ...], keepdims: bool) -> KernelCall:
    """Bind a matrix product with ones for short float rows and short adjacent columns; else NumPy's sum."""
    if x.dtype == out.dtype and x.dtype.kind == "f":
        rows = _short_rows(x, axes, LONGEST_MULTIPLIED)
        if rows is not None:
            return np.matmul, (rows, np.ones(rows.shape[1], x.dtype), out.reshape(-1))
        columns = _adjacent_columns(x, axes)
        if columns is not None:
            before, extent, after = columns
            return np.matmul, (np.ones((1, extent), x.dtype), x.reshape(columns), out.reshape(before, 1, after))
    return np.add.reduce, (x, axes, out.dtype, out, keepdims)


@DeviceFunction
def axis_first(run: RunContext, x: Array, out: Array, axis: int) -> Iterator[tuple[Array, Array]]:
    """Yield pairs of x and `out`, whole or in chunks of the same shape, with `axis` moved to the front.

    The caller fills the second array of each pair before it asks for the next.
    """
    yield run.xp.moveaxis(x, axis, 0), run.xp.moveaxis(out, axis, 0)


@axis_first.on("cpu")
def _chunked_axis_first(
    run: RunContext, x: HostArray, out: HostArray, axis: int
) -> Iterator[tuple[HostArray, HostArray]]:
    """Yield transposed copies of chunks if rows are short: NumPy then works across rows, not within each."""
    rows = _short_rows(x, (axis,), LONGEST_TRANSPOSED)
    if rows is None:
        yield from axis_first.general(run, x, out, axis)
        return
    results, step = out.reshape(rows.shape), CHUNK_ELEMENTS // rows.shape[1]
    for start in range(0, len(rows), step):
        chunk = np.ascontiguousarray(rows[start : start + step].T)
        result = np.empty(chunk.shape, out.dtype)
        yield chunk, result
        results[start : start + step] = result.T


def axis_first_elements(x: TensorType, axis: int) -> int:
    """Count the elements that `axis_first` allocates for chunks of x and of its result; 0 if it yields views."""
    is_short = x.is_dense and 0 < _row_length(x.shape, (axis,)) <= LONGEST_TRANSPOSED
    return min(x.size, 2 * CHUNK_ELEMENTS) if is_short else 0


# float16 is computed in float32 and rounded once at the end.
#
# The largest float16 is 65,504, and it has 11 significant bits. Doubling, squaring or adding up may overflow although
# the gradient is in range, and 1 − y is 0 if y has been rounded to 1.


def upcast(x: Value) -> Value:
    """Cast a float16 x to float32; return any other x unchanged."""
    return x.cast(dtype=FLOAT32) if x.dtype == FLOAT16 else x


def upcast_operands(op: Op, y: Value, xs: Sequence[Value], attrs: Mapping[str, Any]) -> list[Value]:
    """Upcast y = op(xs) and xs for a rule of derivatives; a float16 y is recomputed in float32, without rounding."""
    operands = [upcast(x) for x in xs]
    return [y.builder.emit(op, operands, attrs) if y.dtype == FLOAT16 else y, *operands]


def floats_for_rule(dtype: DType, xs: Sequence[Value]) -> list[Value]:
    """Cast integers and bools to the result's dtype for a rule of derivatives: NumPy's log of an int8 is a float16."""
    return [x.cast(dtype=dtype) if x.dtype.kind in "iub" else x for x in xs]


def accumulator(out: Array | TensorType) -> DType:
    """Return the dtype to accumulate in: float32 for float16 results, else the result's own."""
    return FLOAT32 if out.dtype == FLOAT16 else np.dtype(out.dtype)


def atomic_accumulator(out: Array | TensorType) -> DType:
    """Return the dtype to accumulate in at repeated indices: as `accumulator`, but int32 or wider.

    GPUs have no atomic addition of 8-bit and 16-bit integers.
    """
    if out.dtype.kind == "f" or out.dtype.itemsize >= INT32.itemsize:
        return accumulator(out)
    return INT32


def accumulation_buffer(xp: Namespace, out: Array) -> Array:
    """Return an array to accumulate in: `out` itself if it has the accumulator's dtype, else a new one."""
    return out if accumulator(out) == out.dtype else xp.empty(out.shape, accumulator(out))


def accumulation_buffer_bytes(out: TensorType) -> int:
    """Count the bytes that `accumulation_buffer` allocates."""
    return 0 if accumulator(out) == out.dtype else accumulator(out).itemsize * out.size


def partial_sums_bytes(size: int) -> int:
    """Count the bytes of a compiled kernel's partial sums over `size` elements, one per block.

    NumPy needs none. But a fused kernel must not allocate more than was planned for the ops that it replaces.
    """
    return 0 if size <= ONE_BLOCK else 8 * -(-size // SMALLEST_BLOCK)


def accumulate(run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Sum x over axes in the accumulator's dtype, into `out` if it has that dtype, else into a new array."""
    # With a narrower `out`, NumPy would round to it after each buffer of the sum.
    destination = accumulation_buffer(run.xp, out)
    sum_into(run, x, out=destination, axes=axes, keepdims=keepdims)
    return destination


def reduced_elements(shape: Sequence[int], axes: Sequence[int]) -> int:
    """Count the elements of `shape` that one result over `axes` takes in."""
    return math.prod(shape[a] for a in axes)


def divide(g: Value, n: int) -> Value:
    """Divide g by n; a float16 g in float32, since n may exceed the largest float16, 65,504."""
    return (upcast(g) / n).cast(dtype=FLOAT16) if g.dtype == FLOAT16 else g / n


# Ops that select by size propagate NaN, as NumPy does. The selected element receives the gradient.


def is_nan(x: Value) -> Value:
    """Mark NaN, the only value that differs from itself."""
    return x.not_equal(x)


def is_chosen(x: Value, y: Value) -> Value:
    """Mark elements of x that may be the extremum y: equal to y, or NaN if y is."""
    return x.equal(y).logical_or(is_nan(x))


@DeviceFunction
def first_extreme(run: RunContext, function: Literal["argmax", "argmin"], x: Array, axis: int) -> Array:
    """Return the position of the extremum along an axis: the first of equal elements, or the first NaN."""
    return getattr(run.xp, function)(x, axis=axis)


@first_extreme.on("cuda")
def _first_extreme(run: RunContext, function: Literal["argmax", "argmin"], x: Array, axis: int) -> Array:
    """Search for the first NaN separately, since CuPy may return any of several."""
    position = getattr(run.xp, function)(x, axis=axis)
    if not has_infinities(x.dtype):
        return position
    nan = run.xp.isnan(x)
    return run.xp.where(nan.any(axis=axis), nan.argmax(axis=axis), position)


def extremum_identity(ufunc: str, dtype: DType) -> Any:
    """Return `maximum` or `minimum` over no elements: an infinity, or the range's end if the dtype has none."""
    smallest, largest = (-np.inf, np.inf) if has_infinities(dtype) else integer_limits(dtype)
    return smallest if ufunc == "maximum" else largest


@DeviceFunction
def known_finite(_: RunContext, *arrays: Array, dtype: DType | None = None) -> bool:  # noqa: ARG001 - nothing is known
    """Whether all elements are known to be finite, so that 0 times an element is 0.

    On the CPU, check the arrays' sums, accumulated in `dtype` (default: their own), which takes no memory. A finite sum
    has only finite terms. Finite elements may have an infinite sum; the answer is then False.
    """
    return False


@known_finite.on("cpu")
def _are_finite(_: RunContext, *arrays: HostArray, dtype: DType | None = None) -> bool:
    return all(not has_infinities(x.dtype) or bool(np.isfinite(np.add.reduce(x, None, dtype))) for x in arrays)


@DeviceFunction
def known_without_nan(_: RunContext, x: Array) -> bool:
    """Whether all elements are known not to be NaN."""
    return not has_infinities(x.dtype)


@known_without_nan.on("cpu")
def _are_numbers(_: RunContext, x: HostArray) -> bool:
    return not has_infinities(x.dtype) or not bool(np.isnan(x).any())


def wrong_shape(i: int, name: str, expected: str, received: TensorType) -> ShapeMismatch:
    """Return the error for operand `i` called `name`, of type `received`, that must have `expected`."""
    shape = show_shape(received.shape)
    return ShapeMismatch(
        f"operand {i} ({name}) must have {expected}, but has shape {shape}", operand=i, expected=expected, got=shape
    )


def require_shape(type: TensorType, shape: Shape, i: int, name: str, why: str) -> None:
    """Raise ShapeMismatch with the reason `why` unless operand `i` called `name` has this shape."""
    if type.shape != shape:
        raise wrong_shape(i, name, f"shape {show_shape(shape)}, {why}", type)


def require_extent(type: TensorType, axis: int, extent: int, i: int, name: str, why: str) -> None:
    """Raise ShapeMismatch with the reason `why` unless operand `i` called `name` has this extent on `axis`."""
    if type.shape[axis] != extent:
        raise wrong_shape(i, name, f"extent {extent} on axis {axis} ({why})", type)


def require_axes(x: TensorType, minimum: int, why: str) -> None:
    """Raise ShapeMismatch with the purpose `why` unless the first operand has at least `minimum` axes."""
    if x.ndim < minimum:
        expected = f"at least {counted(minimum, 'axis', 'axes')}"
        raise ShapeMismatch(
            f"needs {expected} {why}, but the operand has {x.ndim}",
            operand=0,
            expected=expected,
            got=counted(x.ndim, "axis", "axes"),
        )


def one_per_axis(ndim: int) -> str:
    """Describe a list with one entry per axis, for an error message."""
    return f"{counted(ndim, 'entry', 'entries')}, one for each axis"


def with_extent(shape: Shape, axis: int, extent: int) -> Shape:
    """Replace the extent of one axis of `shape`."""
    return (*shape[:axis], extent, *shape[axis + 1 :])
