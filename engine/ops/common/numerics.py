"""Numerics that several families share: sums in wide dtypes, short rows on the CPU, float16, NaN, finite operands."""

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

_WORDS: Final[Mapping[str, float]] = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
#: beside the attribute `fill`
FILL_AS: Final = Attr(
    "string",
    None,
    "an infinity or NaN, in place of `fill`; of a float dtype",
    choices=tuple(_WORDS),
    since=2,
    instead_of="fill",
)


class Source(Kernel):
    """Base of ops without operands: nothing to differentiate, nothing to batch."""

    operands: ClassVar[tuple[str, ...]] = ()
    gradient: ClassVar[str] = "none: there are no operands"

    def tensor(self, run: RunContext, type: TensorType, **attrs: Any) -> Array:
        """The result, to be read only: new memory, or some that holds it already."""
        out = run.xp.empty(type.shape, type.dtype)
        self.forward(run, out=out, **attrs)
        return out

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """None: memory is only filled."""
        return 0


def check_representable(fill: float, dtype: DType) -> None:
    """Raise BadAttribute unless the attribute `fill` is a number of `dtype`; floats round, whatever their size."""
    if not is_representable(fill, dtype):
        wanted = f"a whole number that {dtype.name} holds"
        raise BadAttribute(f"attribute fill must be {wanted}, but is {fill:g}", expected=wanted, got=f"{fill:g}")


def require_real(dtype: DType) -> None:
    """Raise DtypeMismatch for an attribute `dtype` that is complex."""
    if is_complex(dtype):
        wanted, got = "a dtype that is not complex", dtype.name
        raise DtypeMismatch(f"attribute dtype must be {wanted}, but is {got}", expected=wanted, got=got)


def is_representable(number: float, dtype: DType) -> bool:
    """Whether `number` is one of `dtype`; floats round, whatever their size."""
    if has_infinities(dtype):
        return True
    low, high = whole_limits(dtype)
    return is_integral(number) and low <= int(number) <= high


def is_integral(number: float) -> bool:
    """Whether it has no fraction."""
    return float(number).is_integer()


def whole_limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer dtype or bool."""
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def filled(attrs: Mapping[str, Any], dtype: DType) -> dict[str, Any]:
    """Attributes with `fill` as a number of `dtype`, and `fill_as` no longer there. Raises BadAttribute."""
    word = attrs["fill_as"]
    if word is None:
        check_representable(attrs["fill"], dtype)
        return {**attrs, "fill": typed_number(attrs["fill"], dtype)}
    if dtype.kind != "f":
        got = dtype.name
        raise BadAttribute(f"attribute fill_as needs a float dtype, but fills {got}", expected="a float dtype", got=got)
    return {**attrs, "fill": _WORDS[word], "fill_as": None}


def word_of(number: float) -> str | None:
    """The word of a number that JSON has none for; None of all others."""
    return None if math.isfinite(number) else str(float(number))


# Short rows on the CPU. NumPy starts anew for each row of a reduction, which takes longer than a short row itself.

#: elements of a chunk: two of them fit in a core's own cache
CHUNK_ELEMENTS = 1 << 15
LONGEST_TRANSPOSED = 64
#: beyond it NumPy's pairwise sum is the more accurate one, and no slower
LONGEST_MULTIPLIED = 128
#: elements that are one block of a kernel's, and that a block has at least where there are several
ONE_BLOCK: Final = 1 << 14
LEAST_BLOCK: Final = 1 << 13


def _short_rows(x: HostArray, axes: Sequence[int], longest: int) -> HostArray | None:
    """x as a matrix with one row for each group over `axes`, where such rows lie in memory and are short."""
    length = _row_length(x.shape, axes)
    return x.reshape(-1, length) if x.flags.c_contiguous and 0 < length <= longest else None


def _row_length(shape: Shape, axes: Sequence[int]) -> int:
    """The length of the rows over `axes`, where these are the last axes; else 0."""
    last = tuple(axes) == tuple(range(len(shape) - len(axes), len(shape)))
    return math.prod(shape[a] for a in axes) if axes and last else 0


def _short_columns(x: HostArray, axes: Sequence[int]) -> tuple[int, int, int] | None:
    """The extents before, over and behind `axes`, where these are neighbours, and little lies behind each of them."""
    before, behind = math.prod(x.shape[: axes[0]]) if axes else 0, math.prod(x.shape[axes[-1] + 1 :]) if axes else 0
    neighbours = tuple(axes) == tuple(range(axes[0], axes[-1] + 1)) if axes else False
    fits = neighbours and x.flags.c_contiguous and x.size and 1 < behind <= LONGEST_TRANSPOSED
    return (before, x.size // (before * behind), behind) if fits else None


def add_up(run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
    """Σ x over axes in the dtype of `out`."""
    function, arguments = adding_up(run, x, out=out, axes=axes, keepdims=keepdims)
    function(*arguments)


@DeviceFunction
def adding_up(run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> KernelCall:
    """The call that adds up."""
    return partial(run.xp.sum, x, axis=axes, dtype=out.dtype, keepdims=keepdims, out=out), ()


@adding_up.on("cpu")
def _adding_up(_: RunContext, x: HostArray, *, out: HostArray, axes: tuple[int, ...], keepdims: bool) -> KernelCall:
    """The same; short rows of floats, and short columns side by side, as a product with ones."""
    if x.dtype == out.dtype and x.dtype.kind == "f":
        rows = _short_rows(x, axes, LONGEST_MULTIPLIED)
        if rows is not None:
            return np.matmul, (rows, np.ones(rows.shape[1], x.dtype), out.reshape(-1))
        columns = _short_columns(x, axes)
        if columns is not None:
            before, over, behind = columns
            return np.matmul, (np.ones((1, over), x.dtype), x.reshape(columns), out.reshape(before, 1, behind))
    return np.add.reduce, (x, axes, out.dtype, out, keepdims)


@DeviceFunction
def axis_first(run: RunContext, x: Array, out: Array, axis: int) -> Iterator[tuple[Array, Array]]:
    """Pairs of x and `out`, or of chunks of both, of one shape, with `axis` moved to the front.

    Whoever iterates fills the second of each pair before asking for the next.
    """
    yield run.xp.moveaxis(x, axis, 0), run.xp.moveaxis(out, axis, 0)


@axis_first.on("cpu")
def _axis_first(run: RunContext, x: HostArray, out: HostArray, axis: int) -> Iterator[tuple[HostArray, HostArray]]:
    """The same; short rows in transposed chunks."""
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


def chunk_size(x: TensorType, axis: int) -> int:
    """Elements of the chunks in which `axis_first` hands x out, one of them and the next; 0 for x as it is."""
    is_short = x.is_dense and 0 < _row_length(x.shape, (axis,)) <= LONGEST_TRANSPOSED
    return min(x.size, 2 * CHUNK_ELEMENTS) if is_short else 0


# float16 in the course of a computation: in float32, and rounded once at its end.
#
# float16 ends at 65,504 and has eleven bits. A rule that doubles, squares or adds up leaves its range where the
# gradient itself does not, and 1 − y is 0 where y has been rounded to 1.


def wide(x: Value) -> Value:
    """x, in float32 where it is float16."""
    return x.cast(dtype=FLOAT32) if x.dtype == FLOAT16 else x


def widened(op: Op, y: Value, xs: Sequence[Value], attrs: Mapping[str, Any]) -> list[Value]:
    """y = op(xs), and xs, for a rule to compute with; a float16 y is found once more, without its rounding."""
    operands = [wide(x) for x in xs]
    return [y.builder.emit(op, operands, attrs) if y.dtype == FLOAT16 else y, *operands]


def accumulator(out: Array | TensorType) -> DType:
    """The dtype to add up in: float32 for float16 results, else the result's own."""
    return FLOAT32 if out.dtype == FLOAT16 else np.dtype(out.dtype)


def atomic_accumulator(out: Array | TensorType) -> DType:
    """The dtype to add up in at places that come again: as `accumulator`, and a GPU cannot add bytes atomically."""
    if out.dtype.kind == "f" or out.dtype.itemsize >= INT32.itemsize:
        return accumulator(out)
    return INT32


def wide_out(xp: Namespace, out: Array) -> Array:
    """Return an array to add up in: `out` itself where that has the accumulator's dtype, else a new one."""
    return out if accumulator(out) == out.dtype else xp.empty(out.shape, accumulator(out))


def wide_out_bytes(out: TensorType) -> int:
    """Count the bytes that `wide_out` allocates."""
    return 0 if accumulator(out) == out.dtype else accumulator(out).itemsize * out.size


def sum_parts_bytes(size: int) -> int:
    """Bytes for the parts of a sum over so many elements, one for each block, as a compiled kernel keeps them.

    NumPy needs none of them; but a kernel may not take more than was planned for what it stands for.
    """
    return 0 if size <= ONE_BLOCK else 8 * -(-size // LEAST_BLOCK)


def total(run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Σ x over axes, in the accumulator's dtype: `out` itself where that is its dtype, else a new array."""
    # Given a narrower `out`, NumPy would round to it after every buffer of the sum.
    target = wide_out(run.xp, out)
    add_up(run, x, out=target, axes=axes, keepdims=keepdims)
    return target


def count(shape: Sequence[int], axes: Sequence[int]) -> int:
    """Count the elements of `shape` that one result over `axes` takes in."""
    return math.prod(shape[a] for a in axes)


def over(g: Value, n: int) -> Value:
    """g / n; by way of float32 where g is float16, which ends at 65504."""
    return (wide(g) / n).cast(dtype=FLOAT16) if g.dtype == FLOAT16 else g / n


# NaN where something is chosen by its size: it wins, as in NumPy, and what was chosen takes the gradient.


def is_nan(x: Value) -> Value:
    """Mark NaN, which alone differs from itself."""
    return x.not_equal(x)


def is_chosen(x: Value, y: Value) -> Value:
    """Mark the x that an extremum may have chosen: it equals the result y, or is NaN, and so is y."""
    return x.equal(y).logical_or(is_nan(x))


@DeviceFunction
def first_extreme(run: RunContext, function: Literal["argmax", "argmin"], x: Array, axis: int) -> Array:
    """Locate the extremum along an axis: the first of equal ones, the first NaN before all."""
    return getattr(run.xp, function)(x, axis=axis)


@first_extreme.on("cuda")
def _first_extreme(run: RunContext, function: Literal["argmax", "argmin"], x: Array, axis: int) -> Array:
    """The first NaN is looked for, since CuPy's may be any of several."""
    found = getattr(run.xp, function)(x, axis=axis)
    if not has_infinities(x.dtype):
        return found
    nan = run.xp.isnan(x)
    return run.xp.where(nan.any(axis=axis), nan.argmax(axis=axis), found)


def identity_of(ufunc: str, dtype: DType) -> Any:
    """Return `maximum` or `minimum` over nothing: an infinity, or an end of the range of a dtype that has none."""
    least, greatest = (-np.inf, np.inf) if has_infinities(dtype) else whole_limits(dtype)
    return least if ufunc == "maximum" else greatest


@DeviceFunction
def are_finite(_: RunContext, *arrays: Array, dtype: DType | None = None) -> bool:  # noqa: ARG001 - nothing is known
    """Whether all elements are known to be finite, so that 0 times one of them is 0.

    On the CPU by their sums, added up in `dtype` (by default in their own), which take no memory: where one is finite,
    so is all that is in it. Finite elements may have an infinite sum, and are not known to be finite then.
    """
    return False


@are_finite.on("cpu")
def _are_finite(_: RunContext, *arrays: HostArray, dtype: DType | None = None) -> bool:
    return all(not has_infinities(x.dtype) or bool(np.isfinite(np.add.reduce(x, None, dtype))) for x in arrays)


@DeviceFunction
def are_numbers(_: RunContext, x: Array) -> bool:
    """Whether it is known that no element is NaN."""
    return not has_infinities(x.dtype)


@are_numbers.on("cpu")
def _are_numbers(_: RunContext, x: HostArray) -> bool:
    return not has_infinities(x.dtype) or not bool(np.isnan(x).any())


def wrong_shape(i: int, name: str, wanted: str, got: TensorType) -> ShapeMismatch:
    """The error for operand `i` called `name` that must have `wanted` and does not."""
    shown = show_shape(got.shape)
    return ShapeMismatch(
        f"operand {i} ({name}) must have {wanted}, but has shape {shown}", operand=i, expected=wanted, got=shown
    )


def require_shape(type: TensorType, shape: Shape, i: int, name: str, why: str) -> None:
    """Raise ShapeMismatch, saying why, unless operand `i` called `name` has this shape."""
    if type.shape != shape:
        raise wrong_shape(i, name, f"shape {show_shape(shape)}, {why}", type)


def require_extent(type: TensorType, axis: int, extent: int, i: int, name: str, why: str) -> None:
    """Raise ShapeMismatch, saying why, unless operand `i` called `name` has this extent on `axis`."""
    if type.shape[axis] != extent:
        raise wrong_shape(i, name, f"extent {extent} on axis {axis} ({why})", type)


def require_axes(x: TensorType, least: int, why: str) -> None:
    """Raise ShapeMismatch unless the first operand has at least this many axes; `why` says what for."""
    if x.ndim < least:
        wanted = f"at least {counted(least, 'axis', 'axes')}"
        raise ShapeMismatch(
            f"needs {wanted} {why}, but the operand has {x.ndim}",
            operand=0,
            expected=wanted,
            got=counted(x.ndim, "axis", "axes"),
        )


def one_for_each_axis(ndim: int) -> str:
    """Describe an attribute with an entry for each axis."""
    return f"{counted(ndim, 'entry', 'entries')}, one for each axis"


def with_extent(shape: Shape, axis: int, extent: int) -> Shape:
    """`shape` with another extent on one axis."""
    return (*shape[:axis], extent, *shape[axis + 1 :])
