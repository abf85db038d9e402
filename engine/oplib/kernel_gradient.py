"""The gradient of a convolution by its kernel, an op of its own: what taps see, times what windows give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from engine.graph.attributes import REQUIRED, Attr
from engine.graph.dtypes import FLOATS
from engine.graph.ir import Value
from engine.graph.op import Array, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import Shape, TensorType
from engine.oplib import batching
from engine.oplib.convolution import correlated, cropped, folded, of_none, placing, spread_values, typed, unfolded
from engine.oplib.convolution_layout import Layout, layout
from engine.oplib.im2col import sum_kernel, sum_kernel_workspace
from engine.oplib.windows import Windows


class KernelGradient(Op):
    """y[o, c, t] = Σ wide[n, c, p·s + t·d − p₀] · narrow[n, o, p], over images n and positions p, for c in o's group.

    wide [n, channels, *extents], zero outside; narrow [n, features, *positions]; y [features, channels / groups,
    *taps]. The cotangent of a convolution's kernel, of x and that of its result; and of its adjoint's, the other way.
    """

    name = "kernel_gradient"
    internal = True
    operands = ("wide", "narrow")
    dtypes = FLOATS
    attrs: ClassVar[Mapping[str, Attr]] = {
        "taps": Attr("ints", doc="extents of the kernel along each spatial axis", minimum=1),
        **{name: replace(attr, default=REQUIRED) for name, attr in placing(1).items()},
    }
    gradient: ClassVar[str] = "d wide = the adjoint of narrow with g as its kernel, d narrow = wide convolved with g"

    def infer(self, wide: TensorType, narrow: TensorType, *, taps: Shape, groups: int, **spatial: Any) -> ResultTypes:
        """[features, channels / groups, *taps]."""
        return typed((narrow.shape[1], wide.shape[1] // groups, *taps), wide, narrow)

    def forward(
        self, run: RunContext, wide: Array, narrow: Array, *, out: Array, taps: Shape, groups: int, **spatial: Any
    ) -> None:
        """Values times columns, summed up."""
        sum_kernel(run, wide, narrow, out, Windows(taps, **spatial), groups)

    def vjp(
        self, g: Value, y: Value, wide: Value, narrow: Value, *, taps: Shape, groups: int, **spatial: Any
    ) -> Sequence[Value | None]:
        """The adjoint and the convolution whose kernel is g."""
        windows = Windows(taps, **spatial)
        back = spread_values(narrow, g, wide.shape[2:], windows, groups)
        return back, correlated(wide, g, narrow.shape[2:], windows, groups)

    def batch(self, mapped: Sequence[bool], wide: Value, narrow: Value, *, groups: int, **attrs: Any) -> Value:
        """N goes into each group's channels, or its features, or, where both operands have it, into the groups.

        Not into the images: over these, all is summed.
        """
        n = batching.size(mapped, (wide, narrow))
        if n == 0:
            return of_none(self, mapped, (wide, narrow), {**attrs, "groups": groups})
        if all(mapped):
            wide, narrow = folded(wide, 1), folded(narrow, 1)
            return unfolded(self._emit(wide, narrow, n * groups, attrs), 0, n)
        if mapped[0]:
            return unfolded(self._emit(folded(wide, 1, groups), narrow, groups, attrs), 1, n)
        return unfolded(self._emit(wide, folded(narrow, 1, groups), groups, attrs), 0, n, groups)

    def _emit(self, wide: Value, narrow: Value, groups: int, attrs: Mapping[str, Any]) -> Value:
        return wide.builder.emit(self, (wide, narrow), {**attrs, "groups": groups})

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """As a convolution of exchanged views."""
        wide, narrow = operands
        return (_by_convolution(wide, narrow, **attrs),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """A multiplication and an addition for each tap of each window, in each channel that it sees or gives."""
        return 2 * _laid_out(out, *types, **attrs).products

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Columns, a chunk at a time, and sums."""
        assert isinstance(out, TensorType)
        return sum_kernel_workspace(_laid_out(out, *types, **attrs), out, *types)


KERNEL_GRADIENT = KernelGradient()


def kernel_gradient(wide: Value, narrow: Value, windows: Windows, groups: int) -> Value:
    """Append the gradient by the kernel of a convolution that these windows over `wide` are of."""
    attrs = {"taps": windows.size, **windows.placing, "groups": groups}
    return wide.builder.emit(KERNEL_GRADIENT, (wide, narrow), attrs)


def _laid_out(
    out: ResultTypes, wide: TensorType, narrow: TensorType, *, taps: Shape, groups: int, **spatial: Any
) -> Layout:
    assert isinstance(out, TensorType)
    return layout(wide, narrow, out, Windows(taps, **spatial), groups)


def _by_convolution(wide: Value, narrow: Value, *, taps: Shape, groups: int, **spatial: Any) -> Value:
    """In ops of the registry: a convolution whose kernel is `narrow`.

    Images and channels change places, and so do stride and dilation.
    """
    windows = Windows(taps, **spatial).exchanged(narrow.shape[2:])
    convolve = getattr(_by_group(wide, groups), f"conv{len(taps)}d")
    kernel = _exchanged(convolve(_exchanged(narrow), groups=groups, **windows.placing))
    return cropped(kernel, (*kernel.shape[:2], *taps))


def _exchanged(x: Value) -> Value:
    """x with its first two axes exchanged."""
    return x.transpose(axes=(1, 0, *range(2, x.ndim)))


def _by_group(x: Value, groups: int) -> Value:
    """x [n, channels, *extents] as [channels / groups, groups · n, *extents]."""
    if groups == 1:
        return _exchanged(x)
    n, channels, *extents = x.shape
    split = x.reshape(shape=(n, groups, channels // groups, *extents))
    moved = split.transpose(axes=(2, 1, 0, *range(3, split.ndim)))
    return moved.reshape(shape=(channels // groups, groups * n, *extents))
