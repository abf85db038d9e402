"""Base of the reductions: `axes` and `keepdims`, shapes, batching, and formulas for a row of elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.ir import Value
from engine.graph.op import Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import DType, TensorType, normalise_axes, reduced_shape
from engine.oplib.batching import shift
from engine.oplib.permutation import shaped

AXES = Attr("ints", None, "axes to reduce over; absent: all")
KEEPDIMS = Attr("bool", False, "keep the reduced axes, with extent 1")


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
