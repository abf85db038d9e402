"""Base of the reductions: `axes` and `keepdims`, shapes, batching, and formulas for a row of elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from engine.codegen.kernels.program import Scalar
from engine.ir.attributes import Attr
from engine.ir.dtypes import has_loops
from engine.ir.graph import Value
from engine.ir.op import Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Real, Sample
from engine.ir.tensor_type import DType, TensorType, normalise_axes, reduced_shape
from engine.ir.value_functions import shaped
from engine.ops.common.batching import shift
from engine.ops.common.numerics import count

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


# Formulas for a row of elements, over scalars of a loop: fused kernels read them.


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
        """Of a sum, which may be made in parts: what Σ x over `extent` elements is divided by. None of all others."""
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
