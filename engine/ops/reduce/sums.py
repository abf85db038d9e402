"""Sums, means, products and variance, and the truth of any or of all elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from engine.codegen.kernels.program import Scalar
from engine.ir.attributes import Attr
from engine.ir.graph import Value, conjugate, permute, shaped, unpermute
from engine.ir.op import Array, KernelCall, NoGradient, Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Bools, Ints, Real, Sample
from engine.ir.tensor_type import (
    BOOL,
    DTYPES,
    DType,
    TensorType,
    has_loops,
    normalise_axes,
    reduced_shape,
    to_add_up,
    to_average,
)
from engine.ops.common.batching import shift
from engine.ops.common.numerics import (
    accumulator,
    adding_up,
    count,
    over,
    sum_parts_bytes,
    total,
    wide,
    wide_out,
    wide_out_bytes,
)
from engine.ops.index.slice import cut
from engine.ops.rewrites import sum_of_broadcast, sum_of_product, sum_of_transpose

AXES = Attr("ints", None, "axes to reduce over; absent: all")
KEEPDIMS = Attr("bool", False, "keep the reduced axes, with extent 1")
#: attributes that say which axes make a row, and how the result lies: a formula for a row is not told
_LAYOUT = ("axis", "axes", "keepdims")


class Reduction(Op):
    """y = f over `axes` of x. A subclass gives `result_dtype`, `reduce` and `vjp`."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"axes": AXES, "keepdims": KEEPDIMS}
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(2, 3)),
        Sample(Real(2, 3, 2), axes=[0, -1]),
        Sample(Real(2, 3), axes=[1], keepdims=True),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """`axes` sorted and counted from the front."""
        return {**attrs, "axes": tuple(sorted(normalise_axes(attrs["axes"], types[0].ndim)))}

    def result_dtype(self, dtype: DType) -> DType:
        """The result's dtype for operands of `dtype`; by default the same."""
        return dtype

    @abstractmethod
    def reduce(self, run: RunContext, *arrays: Any, **attrs: Any) -> None:
        """The kernel: `reduce(xp, x, out=…, axes=…, keepdims=…)` writes the reduction of x into `out`."""

    def infer(self, x: TensorType, *, axes: tuple[int, ...], keepdims: bool, **attrs: Any) -> ResultTypes:
        """x's shape without `axes`, or with extent 1 there."""
        return TensorType(reduced_shape(x.shape, axes, keepdims), self.result_dtype(x.dtype))

    def forward(self, run: RunContext, *arrays: Any, **attrs: Any) -> None:
        """Run the kernel."""
        self.reduce(run, *arrays, **attrs)

    def batch(self, mapped: Sequence[bool], x: Value, *, axes: tuple[int, ...], **attrs: Any) -> Value:
        """The same over the shifted axes; over none of them for a scalar, where no axes would mean all."""
        if not axes:
            return self.batch_scalar(x, **attrs)
        return x.builder.emit(self, (x,), {"axes": shift(axes), **attrs})

    def batch_scalar(self, x: Value, **attrs: Any) -> Value:
        """The reduction of N 0-d tensors, each by itself: over a unit axis put behind N."""
        return x.builder.emit(self, (x.reshape(shape=(*x.shape, 1)),), {**attrs, "axes": (1,), "keepdims": False})

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """One for each element that is read."""
        return int(types[0].size)


def broadcast_back(g: Value, x: Value, axes: Sequence[int]) -> Value:
    """g, reduced over `axes` of x (kept or not), broadcast back to x's shape: the adjoint of a sum."""
    return keep(g, x, axes).broadcast_to(shape=x.shape)


def keep(g: Value, x: Value, axes: Sequence[int]) -> Value:
    """g with the reduced axes of x put back at extent 1."""
    return shaped(g, reduced_shape(x.shape, axes, True))


class Rowwise:
    """Base of an op of one operand that computes each row, the elements along some axes, by itself.

    A row's formula is `rows(x, count, **attrs)`, x an element of the row and `count` how many there are. It gives a
    scalar of level ELEMENT where the result has x's shape, and of level ROW where the axes are reduced.
    """

    rows: ClassVar[Callable[..., Scalar]]
    #: whether it may be part of a loop of several nodes
    joins_loops: ClassVar[bool] = True
    #: whether it gives one value a row, over `axes`; else it keeps x's shape, and its row lies along `axis`
    reduces: ClassVar[bool] = True
    #: whether it is x where a row is one element
    is_one_of_one: ClassVar[bool] = True

    def divisor(self, extent: int) -> float | None:
        """Return the divisor of Σ x over `extent` elements, if it may be made in parts; else None."""
        return None

    def row_scalar(self, x: Scalar, extent: int, attrs: Mapping[str, Any]) -> Scalar:
        """The result for a row of `extent` elements x."""
        return self.rows(x, extent, **{name: value for name, value in attrs.items() if name not in _LAYOUT})

    def row_axes(self, attrs: Mapping[str, Any]) -> Sequence[int]:
        """The axes along which a row lies."""
        axes: Sequence[int] = attrs["axes"] if self.reduces else (attrs["axis"],)
        return axes

    def row_extent(self, out: TensorType, x: TensorType, attrs: Mapping[str, Any]) -> int:
        """How many elements a row has that `row_scalar` computes: those over the last axes, of float32 or float64.

        0 where it does not: rows lie across memory, are empty, or change their dtype.
        """
        axes = self.row_axes(attrs)
        last = bool(axes) and tuple(axes) == tuple(range(x.ndim - len(axes), x.ndim))
        return count(x.shape, axes) if last and x.dtype == out.dtype and has_loops(x.dtype) else 0


class Sum(Rowwise, Reduction):
    """y = Σ x over axes. Integers and bool add up in int64, float16 in float32."""

    name = "sum"
    section = "sum"
    aliases = {"SumDimOp": "born", "SumDim": "born", "Sum": "born, cjc", "Summation": "minima"}
    dtypes = DTYPES
    gradient = "g, broadcast back over the axes"
    rows = staticmethod(lambda x, count: x.row_sum())
    rewrites = (sum_of_broadcast, sum_of_transpose, sum_of_product)
    result_dtype = staticmethod(to_add_up)

    def divisor(self, extent: int) -> float | None:
        """None that changes anything."""
        return 1.0

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, **_: Any) -> None:
        """The sum, rounded once."""
        found = total(run, x, out=out, axes=axes, keepdims=keepdims)
        if found is not out:
            out[...] = found

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """The sum itself, where it is not rounded afterwards."""
        if accumulator(out) == out.dtype:
            return adding_up(run, operands[0], out=out, axes=attrs["axes"], keepdims=attrs["keepdims"])
        return super().bind(run, operands, out, attrs)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Every element of x counts once."""
        return (broadcast_back(g, x, axes),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """The sums in float32 where the result is float16; the parts of a kernel's."""
        return max(wide_out_bytes(out), sum_parts_bytes(types[0].size))


class Mean(Rowwise, Reduction):
    """y = Σ x / n over axes, n the number of elements reduced; NaN where n = 0. Integers give float64."""

    name = "mean"
    section = "sum"
    aliases = {"MeanDimOp": "born", "MeanDim": "born", "Mean": "born, cjc"}
    dtypes = DTYPES
    gradient = "g / n, broadcast back over the axes"
    rows = staticmethod(lambda x, count: x.row_sum() / count)
    result_dtype = staticmethod(to_average)

    def divisor(self, extent: int) -> float | None:
        """Their number."""
        return float(extent)

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, **_: Any) -> None:
        """The sum, divided while it is still in the accumulator's dtype."""
        run.xp.divide(total(run, x, out=out, axes=axes, keepdims=keepdims), count(x.shape, axes), out=out)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Divide the sum's cotangent by n."""
        return (broadcast_back(over(g, max(count(x.shape, axes), 1)), x, axes),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """The sums in float32 where the result is float16; the parts of a kernel's."""
        return max(wide_out_bytes(out), sum_parts_bytes(types[0].size))


class Prod(Rowwise, Reduction):
    """y = Π x over axes; 1 over nothing. Integers and bool multiply in int64, float16 in float32.

    The gradient is that of a tree of products, exact whatever the number of zeros, and so are those of higher order.
    """

    name = "prod"
    section = "prod"
    dtypes = DTYPES
    gradient = "g · (product of all other elements)"
    samples = (
        *Reduction.samples,
        Sample(Real(7), axes=[0]),
        Sample(Real(2, 5, 3), axes=[1]),
        Sample(Real()),
        Sample(Real(0, 3), axes=[0]),
        Sample(Ints(2, 3, high=4)),
    )

    rows = staticmethod(lambda x, count: x.row_prod())
    result_dtype = staticmethod(to_add_up)

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
        """NumPy's product, rounded once."""
        xp = run.xp
        target = wide_out(xp, out)
        xp.prod(x, axis=axes, dtype=target.dtype, keepdims=keepdims, out=target)
        if target is not out:
            out[...] = target

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Each element's share is the product of the others: y / x would be 0 / 0 at a zero."""
        return (broadcast_back(wide(g), x, axes) * conjugate(_others_over(wide(x), axes)),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """The products in float32 where the result is float16; the parts in which a kernel counts rows out of range."""
        return max(wide_out_bytes(out), sum_parts_bytes(types[0].size) if out.is_float else 0)


def _others_over(x: Value, axes: Sequence[int]) -> Value:
    """Multiply, for each element of x, all others over `axes`."""
    if not axes:
        return x.full_like(1.0)
    order = (*(i for i in range(x.ndim) if i not in axes), *axes)
    moved = permute(x, order)
    rows = shaped(moved, (*moved.shape[: -len(axes)], count(x.shape, axes)))
    return unpermute(shaped(_others(rows), moved.shape), order)


def _others(x: Value) -> Value:
    """The same over the last axis, down a tree: the product of all others is the sibling's, times the pair's others.

    An element of the first half and one of the second are a pair; in rows of odd length, the middle one has none.
    """
    *rows, n = x.shape
    if n < 2:
        return x.full_like(1.0)
    last, half = x.ndim - 1, (n + 1) // 2
    first, second = cut(x, last, 0, half), cut(x, last, half, n)
    siblings = second.pad(pad_width=(0, 0) * len(rows) + (0, 1), fill=1.0) if n % 2 else second
    outer = _others(first * siblings)
    return (siblings * outer).cat(cut(first * outer, last, 0, n - half), axis=last)


def _mean_square(x: Scalar, count: int, ddof: int) -> Scalar:
    deviation = x - x.row_sum() / count
    return (deviation * deviation).row_sum() / max(count - ddof, 0)


class Var(Rowwise, Reduction):
    """y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.

    Computed in two passes, the mean first, so that a large mean costs no digits. Where n ≤ ddof it divides by zero,
    as NumPy does: NaN, or infinity.
    """

    name = "var"
    section = "var"
    attrs = {
        "axes": AXES,
        "keepdims": KEEPDIMS,
        "ddof": Attr("int", 0, "what is taken off n: 1 for the unbiased estimate", minimum=0),
    }
    gradient = "g · 2 (x − mean x) / (n − ddof)"
    rows = staticmethod(_mean_square)
    joins_loops = False
    is_one_of_one = False
    samples = (
        *Reduction.samples,
        Sample(Real(5), ddof=1),
        Sample(Real(2, 3), axes=[0], ddof=1, keepdims=True),
        Sample(Real()),
        Sample(Ints(2, 3, high=9), axes=[1]),
    )
    result_dtype = staticmethod(to_average)

    def reduce(
        self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, ddof: int
    ) -> None:
        """The mean of the squared deviations."""
        xp = run.xp
        dtype, n = accumulator(out), count(x.shape, axes)
        mean = xp.sum(x, axis=axes, dtype=dtype, keepdims=True)
        mean /= n
        deviation = xp.subtract(x, mean, dtype=dtype)
        deviation *= deviation
        squares = xp.sum(deviation, axis=axes, keepdims=keepdims)
        xp.divide(squares, max(n - ddof, 0), out=out)

    def vjp(
        self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool, ddof: int
    ) -> Sequence[Value | None]:
        """The mean's own share cancels: the deviations add up to zero. Doubled last: 2g alone may overflow."""
        spread = wide(x)
        deviation = spread - spread.mean(axes=axes, keepdims=True)
        return (broadcast_back(wide(g) / max(count(x.shape, axes) - ddof, 0), x, axes) * deviation * 2,)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """The deviations, the means and the sums of squares."""
        return accumulator(out).itemsize * (types[0].size + 2 * int(out.size))


class TruthReduction(Reduction):
    """Base: a bool over axes, by the function of numpy and cupy called `function`."""

    section = "any_all"
    function: ClassVar[str]
    gradient: ClassVar[str] = "none: the result is bool"
    vjp = NoGradient("the result is bool")
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Bools(2, 3)),
        Sample(Bools(2, 3, 2), axes=[0, -1]),
        Sample(Bools(2, 3), axes=[1], keepdims=True),
        Sample(Ints(2, 3, high=2), axes=[0]),
        Sample(Real(2, 3)),
        Sample(Bools()),
        Sample(Bools(0, 2), axes=[0]),
    )

    def result_dtype(self, dtype: DType) -> DType:
        """bool."""
        return BOOL

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], **attrs: Any) -> None:
        """NumPy's."""
        getattr(run.xp, self.function)(x, axis=axes, out=out, **attrs)


class AnyTrue(TruthReduction):
    """y = whether any element over axes is true; a number is true unless it is 0. False over nothing."""

    name = "any"
    function = "any"


class AllTrue(TruthReduction):
    """y = whether all elements over axes are true; a number is true unless it is 0. True over nothing."""

    name = "all"
    function = "all"
