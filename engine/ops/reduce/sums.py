"""Reductions: sum, mean, product, variance, and whether any or all elements are true."""

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
    has_kernels,
    mean_dtype,
    normalise_axes,
    reduced_shape,
    sum_dtype,
)
from engine.ops.common.batching import shift_axes
from engine.ops.common.numerics import (
    accumulate,
    accumulation_buffer,
    accumulation_buffer_bytes,
    accumulator,
    bind_sum,
    divide,
    partial_sums_bytes,
    reduced_elements,
    upcast,
)
from engine.ops.common.support import Indicated, RowIndicated
from engine.ops.index.slice import slice_axis
from engine.ops.rewrites import sum_of_broadcast, sum_of_product, sum_of_transpose

AXES = Attr("ints", None, "axes to reduce; default: all")
KEEPDIMS = Attr("bool", False, "whether to keep the reduced axes, with extent 1")
#: attributes that describe which axes form a row and the result's shape: a row's formula does not receive them
_LAYOUT = ("axis", "axes", "keepdims")


class Reduction(Op):
    """Base: y = f over `axes` of x. A subclass defines `result_dtype`, `reduce` and `vjp`."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"axes": AXES, "keepdims": KEEPDIMS}
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(2, 3)),
        Sample(Real(2, 3, 2), axes=[0, -1]),
        Sample(Real(2, 3), axes=[1], keepdims=True),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Sort `axes`, counted from the front."""
        return {**attrs, "axes": tuple(sorted(normalise_axes(attrs["axes"], types[0].ndim)))}

    def result_dtype(self, dtype: DType) -> DType:
        """Return the result's dtype for operands of `dtype`; by default the same."""
        return dtype

    @abstractmethod
    def reduce(self, run: RunContext, *arrays: Any, **attrs: Any) -> None:
        """Write the reduction of x into `out`: `reduce(run, x, out=…, axes=…, keepdims=…)`."""

    def infer(self, x: TensorType, *, axes: tuple[int, ...], keepdims: bool, **attrs: Any) -> ResultTypes:
        """Return x's shape without `axes`, or with extent 1 there."""
        return TensorType(reduced_shape(x.shape, axes, keepdims), self.result_dtype(x.dtype))

    def forward(self, run: RunContext, *arrays: Any, **attrs: Any) -> None:
        """Call `reduce`."""
        self.reduce(run, *arrays, **attrs)

    def batch(self, mapped: Sequence[bool], x: Value, *, axes: tuple[int, ...], **attrs: Any) -> Value:
        """Reduce over the shifted axes; a scalar has none, and an empty list would mean all axes."""
        if not axes:
            return self.batch_scalar(x, **attrs)
        return x.builder.emit(self, (x,), {"axes": shift_axes(axes), **attrs})

    def batch_scalar(self, x: Value, **attrs: Any) -> Value:
        """Reduce each of N 0-d tensors, over a unit axis inserted after N."""
        return x.builder.emit(self, (x.reshape(shape=(*x.shape, 1)),), {**attrs, "axes": (1,), "keepdims": False})

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Count one operation per element read."""
        return int(types[0].size)


def broadcast_back(g: Value, x: Value, axes: Sequence[int]) -> Value:
    """Broadcast g from the reduced shape (axes kept or not) back to x's shape: the adjoint of a sum."""
    return restore_axes(g, x, axes).broadcast_to(shape=x.shape)


def restore_axes(g: Value, x: Value, axes: Sequence[int]) -> Value:
    """Restore the reduced axes of x in g, with extent 1."""
    return shaped(g, reduced_shape(x.shape, axes, True))


class Rowwise:
    """Base of unary ops that compute each row, the elements along some axes, independently.

    A row's formula is `rows(x, count, **attrs)`, where x is an element of the row and `count` the row's length. It
    returns a scalar of level ELEMENT if the result has x's shape, and of level ROW if the axes are reduced.
    """

    rows: ClassVar[Callable[..., Scalar]]
    #: whether the op may be part of a fused kernel of several nodes
    joins_kernels: ClassVar[bool] = True
    #: whether the op returns one value per row, over `axes`; else it keeps x's shape, and its row lies along `axis`
    reduces: ClassVar[bool] = True
    #: whether the result equals x if rows have one element
    keeps_single_elements: ClassVar[bool] = True

    def divisor(self, extent: int) -> float | None:
        """Return d if the result is Σ x / d over `extent` elements and may be computed from partial sums; else None."""
        return None

    def row_scalar(self, x: Scalar, extent: int, attrs: Mapping[str, Any]) -> Scalar:
        """Write the result for a row of `extent` elements x."""
        return self.rows(x, extent, **{name: value for name, value in attrs.items() if name not in _LAYOUT})

    def row_axes(self, attrs: Mapping[str, Any]) -> Sequence[int]:
        """Return the axes that form a row."""
        axes: Sequence[int] = attrs["axes"] if self.reduces else (attrs["axis"],)
        return axes

    def row_extent(self, out: TensorType, x: TensorType, attrs: Mapping[str, Any]) -> int:
        """Return the length of a row if `row_scalar` can compute it; else 0.

        It computes rows over the last axes, of float32 or float64: not rows that are strided in memory or empty, nor
        results of another dtype.
        """
        axes = self.row_axes(attrs)
        are_last = bool(axes) and tuple(axes) == tuple(range(x.ndim - len(axes), x.ndim))
        return reduced_elements(x.shape, axes) if are_last and x.dtype == out.dtype and has_kernels(x.dtype) else 0


class Sum(Indicated, Rowwise, Reduction):
    """y = Σ x over axes. Integers and bool are summed in int64, float16 in float32."""

    name = "sum"
    section = "sum"
    aliases = {"SumDimOp": "born", "SumDim": "born", "Sum": "born, cjc", "Summation": "minima"}
    dtypes = DTYPES
    gradient = "g, broadcast back over the axes"
    rows = staticmethod(lambda x, count: x.row_sum())
    rewrites = (sum_of_broadcast, sum_of_transpose, sum_of_product)
    result_dtype = staticmethod(sum_dtype)

    def divisor(self, extent: int) -> float | None:
        """Return 1: a sum is not divided."""
        return 1.0

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, **_: Any) -> None:
        """Sum in the accumulator's dtype, and round once."""
        total = accumulate(run, x, out=out, axes=axes, keepdims=keepdims)
        if total is not out:
            out[...] = total

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """Bind the sum itself if the result needs no rounding afterwards."""
        if accumulator(out) == out.dtype:
            return bind_sum(run, operands[0], out=out, axes=attrs["axes"], keepdims=attrs["keepdims"])
        return super().bind(run, operands, out, attrs)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Pass g to every element of x."""
        return (broadcast_back(g, x, axes),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Count float32 sums for a float16 result, or the partial sums of a compiled kernel."""
        return max(accumulation_buffer_bytes(out), partial_sums_bytes(types[0].size))


class Mean(Indicated, Rowwise, Reduction):
    """y = Σ x / n over axes, n the number of elements reduced; NaN if n = 0. Integers give float64."""

    name = "mean"
    section = "sum"
    aliases = {"MeanDimOp": "born", "MeanDim": "born", "Mean": "born, cjc"}
    dtypes = DTYPES
    gradient = "g / n, broadcast back over the axes"
    rows = staticmethod(lambda x, count: x.row_sum() / count)
    result_dtype = staticmethod(mean_dtype)

    def divisor(self, extent: int) -> float | None:
        """Return the number of elements."""
        return float(extent)

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, **_: Any) -> None:
        """Sum, and divide while still in the accumulator's dtype."""
        run.xp.divide(
            accumulate(run, x, out=out, axes=axes, keepdims=keepdims), reduced_elements(x.shape, axes), out=out
        )

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Pass g / n to every element of x."""
        return (broadcast_back(divide(g, max(reduced_elements(x.shape, axes), 1)), x, axes),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Count float32 sums for a float16 result, or the partial sums of a compiled kernel."""
        return max(accumulation_buffer_bytes(out), partial_sums_bytes(types[0].size))


class Prod(RowIndicated, Rowwise, Reduction):
    """y = Π x over axes; 1 if no elements are reduced. Integers and bool are multiplied in int64, float16 in float32.

    The gradient is that of a tree of products. It is exact for any number of zeros, and so are higher derivatives.
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
    result_dtype = staticmethod(sum_dtype)

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
        """Multiply in the accumulator's dtype, and round once."""
        xp = run.xp
        destination = accumulation_buffer(xp, out)
        xp.prod(x, axis=axes, dtype=destination.dtype, keepdims=keepdims, out=destination)
        if destination is not out:
            out[...] = destination

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Multiply g by the product of all other elements: y / x would be 0 / 0 at a zero."""
        return (broadcast_back(upcast(g), x, axes) * conjugate(_products_of_others(upcast(x), axes)),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Count float32 products for a float16 result, or a compiled kernel's counters of overflowing rows."""
        return max(accumulation_buffer_bytes(out), partial_sums_bytes(types[0].size) if out.is_float else 0)


def _products_of_others(x: Value, axes: Sequence[int]) -> Value:
    """Return, for each element of x, the product of all other elements over `axes`."""
    if not axes:
        return x.full_like(1.0)
    order = (*(i for i in range(x.ndim) if i not in axes), *axes)
    permuted = permute(x, order)
    rows = shaped(permuted, (*permuted.shape[: -len(axes)], reduced_elements(x.shape, axes)))
    return unpermute(shaped(_sibling_products(rows), permuted.shape), order)


def _sibling_products(x: Value) -> Value:
    """Return, for each element, the product of all others over the last axis, by a recursive product tree.

    Element i is paired with element i + ⌈n / 2⌉. The product of all others is the sibling times the product of all
    other pairs. In rows of odd length the middle element has no sibling; 1 takes its place.
    """
    *rows, n = x.shape
    if n < 2:
        return x.full_like(1.0)
    last, half = x.ndim - 1, (n + 1) // 2
    first, second = slice_axis(x, last, 0, half), slice_axis(x, last, half, n)
    siblings = second.pad(pad_width=(0, 0) * len(rows) + (0, 1), fill=1.0) if n % 2 else second
    other_pairs = _sibling_products(first * siblings)
    return (siblings * other_pairs).cat(slice_axis(first * other_pairs, last, 0, n - half), axis=last)


def _variance(x: Scalar, count: int, ddof: int) -> Scalar:
    deviation = x - x.row_sum() / count
    return (deviation * deviation).row_sum() / max(count - ddof, 0)


class Var(RowIndicated, Rowwise, Reduction):
    """y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.

    Computed in two passes, the mean first, so that a large mean costs no digits. If n ≤ ddof, the division is by zero
    as in NumPy: the result is NaN or infinity.
    """

    name = "var"
    section = "var"
    attrs = {
        "axes": AXES,
        "keepdims": KEEPDIMS,
        "ddof": Attr("int", 0, "number subtracted from n; 1 for the unbiased estimate", minimum=0),
    }
    gradient = "g · 2 (x − mean x) / (n − ddof)"
    rows = staticmethod(_variance)
    joins_kernels = False
    keeps_single_elements = False
    samples = (
        *Reduction.samples,
        Sample(Real(5), ddof=1),
        Sample(Real(2, 3), axes=[0], ddof=1, keepdims=True),
        Sample(Real()),
        Sample(Ints(2, 3, high=9), axes=[1]),
    )
    result_dtype = staticmethod(mean_dtype)

    def reduce(
        self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, ddof: int
    ) -> None:
        """Compute the mean of the squared deviations in two passes."""
        xp = run.xp
        dtype, n = accumulator(out), reduced_elements(x.shape, axes)
        mean = xp.sum(x, axis=axes, dtype=dtype, keepdims=True)
        mean /= n
        deviation = xp.subtract(x, mean, dtype=dtype)
        deviation *= deviation
        squares = xp.sum(deviation, axis=axes, keepdims=keepdims)
        xp.divide(squares, max(n - ddof, 0), out=out)

    def vjp(
        self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool, ddof: int
    ) -> Sequence[Value | None]:
        """Ignore the derivative of the mean, which cancels: deviations add up to 0. Double last: 2g may overflow."""
        wide_x = upcast(x)
        deviation = wide_x - wide_x.mean(axes=axes, keepdims=True)
        return (broadcast_back(upcast(g) / max(reduced_elements(x.shape, axes) - ddof, 0), x, axes) * deviation * 2,)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Count the deviations, the means and the sums of squares."""
        return accumulator(out).itemsize * (types[0].size + 2 * int(out.size))


class TruthReduction(Reduction):
    """Base: a bool reduction over axes by numpy's and cupy's `function`."""

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
        """Return bool."""
        return BOOL

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], **attrs: Any) -> None:
        """Call the function."""
        getattr(run.xp, self.function)(x, axis=axes, out=out, **attrs)


class AnyTrue(TruthReduction):
    """y = whether any element over axes is true; nonzero numbers are true. False if no elements are reduced."""

    name = "any"
    function = "any"


class AllTrue(TruthReduction):
    """y = whether all elements over axes are true; nonzero numbers are true. True if no elements are reduced."""

    name = "all"
    function = "all"
