"""Convolution and its adjoint. Each is the derivative of the other, so that both differentiate to any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add, sub
from typing import TYPE_CHECKING, Any, ClassVar

from engine import batching
from engine.attrs import Attr
from engine.op import Array, Namespace, Op, Types
from engine.ops.correlation import Layout, correlate, correlate_workspace, layout, spread, spread_workspace
from engine.ops.operands import require_extent, require_shape
from engine.ops.spatial import (
    check_extents,
    check_fits,
    check_groups,
    check_ranks,
    check_spatial,
    check_spread,
)
from engine.sample import Real, Sample
from engine.tensor_type import NUMBERS, Shape, TensorType, promote
from engine.windows import Windows

if TYPE_CHECKING:
    from engine.ir import Value

STRIDE = Attr("ints", (1, 1), "distance of the windows along each spatial axis", minimum=1)
PADDING = Attr("ints", (0, 0), "zeros put on both sides of each spatial axis", minimum=0)
DILATION = Attr("ints", (1, 1), "distance of the kernel's taps along each spatial axis", minimum=1)
GROUPS = Attr("int", 1, "how many equal parts the channels are cut into, each with its own kernels", minimum=1)
OUTPUT_PADDING = Attr("ints", (0, 0), "extent added at the end of each spatial axis of the result", minimum=0)


class Convolution(Op):
    """Base: images [n, channels, h, w] and a kernel of rank 4; a bias has one number for each feature."""

    operands: ClassVar[tuple[str, ...]] = ("x", "kernel", "bias?")
    attrs: ClassVar[Mapping[str, Attr]] = {"stride": STRIDE, "padding": PADDING, "dilation": DILATION, "groups": GROUPS}
    dtypes: ClassVar[tuple[str, ...]] = NUMBERS
    #: the kernel's axis of the features of one group
    feature_axis: ClassVar[int]

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Raises BadAttribute unless there is one number for each spatial axis."""
        for name, value in attrs.items():
            if name != "groups":
                check_spatial(name, value)
        return attrs

    def decompose(self, x: Value, kernel: Value, bias: Value | None = None, **attrs: Any) -> Value | None:
        """A bias is added afterwards."""
        if bias is None:
            return None
        return x.builder.emit(self, (x, kernel), attrs) + bias.reshape(shape=(*bias.shape, 1, 1))

    def batch(self, mapped: Sequence[bool], x: Value, kernel: Value, *, groups: int, **attrs: Any) -> Value:
        """N goes into the images, or into the features, or, where both operands have it, into the groups."""
        if 0 in (v.shape[0] for v, m in zip((x, kernel), mapped, strict=True) if m):
            return self._of_none(mapped, x, kernel, groups=groups, **attrs)
        if not mapped[1]:
            return _unfold(self._emit(_fold(x, 0), kernel, groups, attrs), 0, x.shape[0])
        if not mapped[0] and groups == 1:
            return _unfold(self._emit(x, _fold(kernel, self.feature_axis), 1, attrs), 1, kernel.shape[0])
        x, kernel = batching.expand(mapped, (x, kernel))
        n = x.shape[0]
        return _unfold(self._emit(_fold(x, 1), _fold(kernel, 0), n * groups, attrs), 1, n)

    def _of_none(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """No examples: an extent that nothing was folded into does not come back out of 0."""
        each = [v.type.with_shape(v.shape[1:]) if m else v.type for v, m in zip(operands, mapped, strict=True)]
        y = self.infer(*each, **attrs)
        assert isinstance(y, TensorType)
        return operands[0].full_like(0.0, (0, *y.shape)).cast(dtype=y.dtype)

    def _emit(self, x: Value, kernel: Value, groups: int, attrs: Mapping[str, Any]) -> Value:
        return x.builder.emit(self, (x, kernel), {**attrs, "groups": groups})


def _typed(shape: Shape, *operands: TensorType | None) -> TensorType:
    return TensorType(shape, promote(*(x.dtype for x in operands if x is not None)))


def _fold(x: Value, axis: int) -> Value:
    """x [N, *shape] as `shape`, with N in front of the entries of `axis`."""
    n, *shape = x.shape
    moved = x.transpose(axes=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))
    return moved.reshape(shape=(*shape[:axis], n * shape[axis], *shape[axis + 1 :]))


def _unfold(y: Value, axis: int, n: int) -> Value:
    """The inverse of `_fold`."""
    shape = y.shape
    split = y.reshape(shape=(*shape[:axis], n, shape[axis] // n, *shape[axis + 1 :]))
    return split.transpose(axes=(axis, *(i for i in range(split.ndim) if i != axis)))


class Conv2D(Convolution):
    """y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a cross-correlation.

    x [n, channels, h, w], zero outside; kernel [features, channels / groups, kh, kw]; y [n, features, h', w'] with
    h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv2d.
    """

    name = "conv2d"
    aliases: ClassVar[Mapping[str, str]] = {"Conv2DOp": "born", "Conv2D": "born"}
    gradient = "dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed"
    feature_axis = 0
    samples = (
        Sample(Real(2, 2, 4, 5), Real(3, 2, 3, 2)),
        Sample(Real(1, 2, 6, 5), Real(2, 2, 2, 2), Real(2), stride=[2, 2], padding=[1, 0]),
        Sample(Real(2, 4, 5, 6), Real(2, 2, 2, 3), stride=[1, 3], dilation=[2, 1], groups=2),
    )

    def infer(
        self, x: TensorType, kernel: TensorType, bias: TensorType | None = None, *, groups: int, **spatial: Any
    ) -> Types:
        """[n, features, *positions]. Raises ShapeMismatch."""
        check_ranks(x, kernel, "[features, channels / groups, kh, kw]")
        channels, features = x.shape[1], kernel.shape[0]
        check_groups(groups, channels, "channels of x")
        check_groups(groups, features, "features, axis 0 of the kernel")
        require_extent(kernel, 1, channels // groups, 1, "kernel", f"{channels} channels in {groups} groups")
        if bias is not None:
            require_shape(bias, (features,), 2, "bias", "one number for each feature")
        windows = Windows(kernel.shape[2:], **spatial)
        check_fits(windows, x.shape[2:])
        return _typed((x.shape[0], features, *windows.positions(x.shape[2:])), x, kernel, bias)

    def forward(self, xp: Namespace, x: Array, kernel: Array, *, out: Array, groups: int, **spatial: Any) -> None:
        """Columns times the kernel."""
        correlate(xp, x, kernel, out, Windows(kernel.shape[2:], **spatial), groups)

    def vjp(
        self, g: Value, y: Value, x: Value, kernel: Value, *, groups: int, **spatial: Any
    ) -> Sequence[Value | None]:
        """The adjoint; and the correlation of x with g."""
        windows = Windows(kernel.shape[2:], **spatial)
        rest = tuple(map(sub, x.shape[2:], windows.cover(g.shape[2:])))
        dx = g.conv_transpose2d(kernel, output_padding=rest, groups=groups, **spatial)
        return dx, by_kernel(x, g, windows, groups)

    def flops(self, out: Types, *types: TensorType, **attrs: Any) -> int:
        """A multiplication and an addition for each tap of each result."""
        return 2 * self._layout(out, *types, **attrs).products

    def workspace(self, out: Types, *types: TensorType, **attrs: Any) -> int:
        """Columns, a chunk at a time."""
        return correlate_workspace(self._layout(out, *types, **attrs))

    def _layout(self, out: Types, x: TensorType, kernel: TensorType, *, groups: int, **spatial: Any) -> Layout:
        assert isinstance(out, TensorType)
        return layout(x, out, out, Windows(kernel.shape[2:], **spatial), groups)


class ConvTranspose2D(Convolution):
    """y[n, o, i·s + a·d − p, j·s + b·d − p] = Σ x[n, c, i, j] · kernel[c, o, a, b] + bias[o]: the adjoint of conv2d.

    x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with
    h' = (h − 1)·s − 2p + d·(kh − 1) + 1 + output_padding. As PyTorch's conv_transpose2d.
    """

    name = "conv_transpose2d"
    attrs: ClassVar[Mapping[str, Attr]] = {**Convolution.attrs, "output_padding": OUTPUT_PADDING}
    gradient = "dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed"
    feature_axis = 1
    samples = (
        Sample(Real(2, 2, 3, 2), Real(2, 3, 2, 3)),
        Sample(Real(1, 2, 3, 2), Real(2, 2, 2, 3), Real(2), stride=[2, 3], padding=[1, 0], output_padding=[1, 2]),
        Sample(Real(2, 4, 3, 3), Real(4, 1, 2, 2), stride=[1, 2], dilation=[3, 1], output_padding=[2, 0], groups=2),
    )

    def infer(
        self,
        x: TensorType,
        kernel: TensorType,
        bias: TensorType | None = None,
        *,
        output_padding: Shape,
        groups: int,
        **spatial: Any,
    ) -> Types:
        """[n, features, *extents]. Raises ShapeMismatch, BadAttribute."""
        check_ranks(x, kernel, "[channels, features / groups, kh, kw]")
        channels, features = x.shape[1], kernel.shape[1] * groups
        check_groups(groups, channels, "channels of x")
        require_extent(kernel, 0, channels, 1, "kernel", "the channels of x")
        if bias is not None:
            require_shape(bias, (features,), 2, "bias", "one number for each feature")
        windows = Windows(kernel.shape[2:], **spatial)
        check_spread(windows, x.shape[2:], output_padding)
        extents = tuple(map(add, windows.cover(x.shape[2:]), output_padding))
        check_extents(extents, windows.padding)
        return _typed((x.shape[0], features, *extents), x, kernel, bias)

    def forward(
        self, xp: Namespace, x: Array, kernel: Array, *, out: Array, output_padding: Shape, groups: int, **spatial: Any
    ) -> None:
        """The kernel times each value, added where its window lies."""
        spread(xp, x, kernel, out, Windows(kernel.shape[2:], **spatial), groups)

    def vjp(
        self, g: Value, y: Value, x: Value, kernel: Value, *, output_padding: Shape, groups: int, **spatial: Any
    ) -> Sequence[Value | None]:
        """The correlation that this is the adjoint of; and the correlation of g with x."""
        windows = Windows(kernel.shape[2:], **spatial)
        dx = g.conv2d(kernel, groups=groups, **spatial)
        return cropped(dx, x.shape), by_kernel(g, x, windows, groups)

    def flops(self, out: Types, *types: TensorType, **attrs: Any) -> int:
        """A multiplication and an addition for each tap of each operand's element."""
        return 2 * self._layout(out, *types, **attrs).products

    def workspace(self, out: Types, *types: TensorType, **attrs: Any) -> int:
        """Products and the padded result, a chunk at a time."""
        return spread_workspace(self._layout(out, *types, **attrs))

    def _layout(
        self, out: Types, x: TensorType, kernel: TensorType, *, output_padding: Shape, groups: int, **spatial: Any
    ) -> Layout:
        assert isinstance(out, TensorType)
        return layout(out, x, out, Windows(kernel.shape[2:], **spatial), groups)


def by_kernel(wide: Value, narrow: Value, windows: Windows, groups: int) -> Value:
    """Σ over images and positions p of wide[n, c, p·s + t·d − p₀] · narrow[n, o, p], as [o, c, *t].

    A convolution whose kernel is `narrow`: images and channels change places, and so do stride and dilation.
    """
    correlated = _by_group(wide, groups).conv2d(
        narrow.transpose(axes=(1, 0, 2, 3)),
        stride=windows.dilation,
        padding=windows.padding,
        dilation=windows.stride,
        groups=groups,
    )
    kernel = correlated.transpose(axes=(1, 0, 2, 3))
    return cropped(kernel, (*kernel.shape[:2], *windows.size))


def _by_group(x: Value, groups: int) -> Value:
    """x [n, channels, h, w] as [channels / groups, groups · n, h, w]."""
    if groups == 1:
        return x.transpose(axes=(1, 0, 2, 3))
    n, channels, *extents = x.shape
    split = x.reshape(shape=(n, groups, channels // groups, *extents)).transpose(axes=(2, 1, 0, 3, 4))
    return split.reshape(shape=(channels // groups, groups * n, *extents))


def cropped(x: Value, shape: Sequence[int]) -> Value:
    """The leading part of x: windows that do not fit evenly see a few positions more."""
    if x.shape == tuple(shape):
        return x
    return x.slice(stops=tuple(shape))
