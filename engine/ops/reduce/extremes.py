"""Maximum and minimum, and their positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from engine.ir.attributes import Attr
from engine.ir.errors import ShapeMismatch
from engine.ir.graph import Value
from engine.ir.op import Array, NoGradient, Op, ResultTypes
from engine.ir.run_context import DeviceMethod, RunContext
from engine.ir.sample import Ints, Real, Sample
from engine.ir.tensor_type import INT64, Strided, TensorType, normalise_axis, reduced_shape, show_shape
from engine.ops.common.numerics import first_extreme, is_chosen, reduced_elements
from engine.ops.common.support import Selecting
from engine.ops.reduce.sums import KEEPDIMS, Reduction, Rowwise, restore_axes


class Extremum(Selecting, Rowwise, Reduction):
    """Base: y = an extremum of x over axes, by numpy's and cupy's `function`."""

    section = "max_min"
    function: ClassVar[str]
    gradient: ClassVar[str] = "g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others"
    samples: ClassVar[tuple[Sample, ...]] = (
        *Reduction.samples,
        Sample(Real()),
        Sample(Real(0, 3), axes=[1]),
        Sample(Ints(2, 3, high=4), axes=[1]),
    )

    def infer(self, x: TensorType, *, axes: tuple[int, ...], keepdims: bool, **attrs: Any) -> ResultTypes:
        """Return the reduced shape with x's dtype. Raises ShapeMismatch if rows have no elements."""
        require_elements(x, axes)
        return super().infer(x, axes=axes, keepdims=keepdims)

    @DeviceMethod
    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
        """Call the function; NaN propagates."""
        getattr(run.xp, self.function)(x, axis=axes, keepdims=keepdims, out=out)

    @reduce.on("cuda")
    def _reduce_on_cuda(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
        """Copy the result, since cupy.min misreads `out` as a dtype (CuPy 14.2)."""
        out[...] = getattr(run.xp, self.function)(x, axis=axes, keepdims=keepdims)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Split g equally among ties. Which elements tie is a constant, so higher orders split equally as well."""
        tied = is_chosen(x, restore_axes(y, x, axes))
        share = restore_axes(g, x, axes) / tied.sum(axes=axes, keepdims=True)
        return (tied.where(share.cast(dtype=g.dtype), 0.0),)


class Max(Extremum):
    """y = max x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally."""

    name = "max"
    aliases = {"max": "sadl"}
    function = "max"
    rows = staticmethod(lambda x, count: x.row_max())


class Min(Extremum):
    """y = min x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally."""

    name = "min"
    aliases = {"min": "sadl"}
    function = "min"
    rows = staticmethod(lambda x, count: x.row_min())


class ArgExtremum(Op):
    """Base: the position of an extremum along one axis, by numpy's and cupy's `function`."""

    section = "max_min"
    function: ClassVar[Literal["argmax", "argmin"]]
    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": Attr("int", doc="axis to search"), "keepdims": KEEPDIMS}
    gradient: ClassVar[str] = "none: positions are whole numbers"
    vjp = NoGradient("positions are whole numbers")
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(4), axis=0),
        Sample(Real(2, 3), axis=-1),
        Sample(Real(2, 3, 2), axis=1, keepdims=True),
        Sample(Ints(3, 4, high=3), axis=0),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis to count from the front. Raises BadAttribute."""
        return {**attrs, "axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def infer(self, x: TensorType, *, axis: int, keepdims: bool) -> ResultTypes:
        """Return the reduced shape with dtype int64. Raises ShapeMismatch if the axis is empty."""
        require_elements(x, (axis,))
        return TensorType(reduced_shape(x.shape, (axis,), keepdims), INT64)

    @DeviceMethod
    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int, keepdims: bool) -> None:
        """Call the function; the first NaN is selected."""
        getattr(run.xp, self.function)(x, axis=axis, keepdims=keepdims, out=out)

    @forward.on("cuda")
    def _forward_on_cuda(self, run: RunContext, x: Array, *, out: Array, axis: int, keepdims: bool) -> None:
        out.reshape(reduced_shape(x.shape, (axis,), False))[...] = first_extreme(run, self.function, x, axis)

    def batch(self, mapped: Sequence[bool], x: Value, *, axis: int, keepdims: bool) -> Value:
        """Search along the next axis."""
        return x.builder.emit(self, (x,), {"axis": axis + 1, "keepdims": keepdims})

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Count one operation per element read."""
        return types[0].size

    def workspace(self, out: ResultTypes, x: TensorType, *, axis: int, **attrs: Any) -> int:
        """Count a copy with the axis last, unless x is laid out that way."""
        return 0 if moved_last(x, axis).is_dense else x.nbytes


class ArgMax(ArgExtremum):
    """y = the int64 position of the largest element along `axis`: the first in a tie; the first NaN if any."""

    name = "argmax"
    aliases = {"Argmax": "born"}
    function = "argmax"


class ArgMin(ArgExtremum):
    """y = the int64 position of the smallest element along `axis`: the first in a tie; the first NaN if any."""

    name = "argmin"
    function = "argmin"


def moved_last(x: TensorType, axis: int) -> TensorType:
    """Return the type of a view of x with `axis` moved to the end."""
    order = [*(i for i in range(x.ndim) if i != axis), axis]
    return Strided(x.with_shape([x.shape[i] for i in order]), [x.strides[i] for i in order])


def require_elements(x: TensorType, axes: Sequence[int]) -> None:
    """Raise ShapeMismatch if x has no elements over `axes` to select from."""
    if reduced_elements(x.shape, axes) == 0:
        expected, received = f"at least one element over axes {show_shape(axes)}", show_shape(x.shape)
        raise ShapeMismatch(
            f"operand 0 (x) must have {expected} to choose from, but has shape {received}",
            operand=0,
            expected=expected,
            got=received,
        )
