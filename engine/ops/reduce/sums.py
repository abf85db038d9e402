"""Sums, means, products and variance, and the truth of any or of all elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.codegen.kernels.program import Scalar
from engine.ir.attributes import Attr
from engine.ir.dtypes import DTYPES
from engine.ir.graph import Value
from engine.ir.op import Array, KernelCall, NoGradient
from engine.ir.run_context import RunContext
from engine.ir.sample import Bools, Ints, Real, Sample
from engine.ir.tensor_type import BOOL, DType, TensorType, to_add_up, to_average
from engine.ir.value_functions import conjugate, permute, shaped, unpermute
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
from engine.ops.reduce.reduction import AXES, KEEPDIMS, Reduction, Rowwise, broadcast_back
from engine.ops.rewrites import sum_of_broadcast, sum_of_product, sum_of_transpose


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
        """As the sum's, divided by n."""
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
