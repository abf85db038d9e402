"""Convolution, its adjoint, and its gradient with respect to the kernel, on one, two and three spatial axes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import add, sub
from typing import Any, ClassVar

from engine.ir.attributes import REQUIRED, Attr
from engine.ir.errors import counted
from engine.ir.graph import Value, shaped
from engine.ir.op import Array, Composite, Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import FLOATS, NUMBERS, Shape, TensorType, promote
from engine.ops.common import batching
from engine.ops.common.numerics import floats_for_rule, require_extent, require_shape
from engine.ops.conv.im2col import (
    Layout,
    add_windows,
    add_windows_workspace,
    correlate,
    correlate_workspace,
    layout,
    sum_kernel,
    sum_kernel_workspace,
)
from engine.ops.conv.windows import (
    Windows,
    check_extents,
    check_fits,
    check_groups,
    check_ranks,
    check_spatial,
    check_spread,
)

GROUPS = Attr("int", 1, "number of equal groups of channels, each with its own kernels", minimum=1)


def placing_attrs(rank: int) -> dict[str, Attr]:
    """Return the attributes of a convolution on `rank` spatial axes."""
    return {
        "stride": Attr("ints", (1,) * rank, "distance between windows along each spatial axis", minimum=1),
        "padding": Attr("ints", (0,) * rank, "zeros added on both sides of each spatial axis", minimum=0),
        "dilation": Attr("ints", (1,) * rank, "distance between the kernel's taps along each spatial axis", minimum=1),
        "groups": GROUPS,
    }


def transposed_placing_attrs(rank: int) -> dict[str, Attr]:
    """Return the attributes of a transposed convolution on `rank` spatial axes."""
    doc = "extent added at the end of each spatial axis of the result"
    return {**placing_attrs(rank), "output_padding": Attr("ints", (0,) * rank, doc, minimum=0)}


class Convolution(Op):
    """Base: images [n, channels, *extents] and a kernel of the same rank; a bias has one number per feature."""

    is_product = True
    supports_partial_results = True
    #: number of spatial axes
    rank: ClassVar[int]
    operands: ClassVar[tuple[str, ...]] = ("x", "kernel", "bias?")
    dtypes: ClassVar[tuple[str, ...]] = NUMBERS
    #: axis of the kernel with the features of one group
    feature_axis: ClassVar[int]
    #: names of the kernel's first two axes
    kernel_axes: ClassVar[str]

    @abstractmethod
    def layout(self, out: TensorType, x: TensorType, windows: Windows, groups: int) -> Layout:
        """Return the layout with which `out` is computed."""

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Place the windows by the smallest equivalent numbers. Raises BadAttribute, ShapeMismatch."""
        for name, value in attrs.items():
            if name != "groups":
                check_spatial(name, value, self.rank)
        x, kernel = types[:2]
        check_ranks(x, kernel, self.rank, self.kernel_axes)
        spatial = {name: attrs[name] for name in ("stride", "padding", "dilation")}
        return {**attrs, **self.canonical_placing(Windows(kernel.shape[2:], **spatial), x.shape[2:], attrs)}

    @abstractmethod
    def canonical_placing(
        self, windows: Windows, extents: Sequence[int], attrs: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the smallest numbers for `windows` on x of these `extents`. Raises BadAttribute, ShapeMismatch."""

    def compose(self, x: Value, kernel: Value, bias: Value | None = None, **attrs: Any) -> Value | None:
        """Add a bias as an op of its own."""
        if bias is None:
            return None
        return x.builder.emit(self, (x, kernel), attrs) + bias.reshape(shape=(*bias.shape, *[1] * self.rank))

    def batch(self, mapped: Sequence[bool], x: Value, kernel: Value, *, groups: int, **attrs: Any) -> Value:
        """Fold N into the images, the features or, if both operands have it, the groups."""
        if 0 in (v.shape[0] for v, m in zip((x, kernel), mapped, strict=True) if m):
            return empty_batch(self, mapped, (x, kernel), {**attrs, "groups": groups})
        if not mapped[1]:
            return unfold_batch(self._emit(fold_batch(x, 0), kernel, groups, attrs), 0, x.shape[0])
        if not mapped[0] and groups == 1:
            return unfold_batch(self._emit(x, fold_batch(kernel, self.feature_axis), 1, attrs), 1, kernel.shape[0])
        x, kernel = batching.expand(mapped, (x, kernel))
        n = x.shape[0]
        return unfold_batch(self._emit(fold_batch(x, 1), fold_batch(kernel, 0), n * groups, attrs), 1, n)

    def _emit(self, x: Value, kernel: Value, groups: int, attrs: Mapping[str, Any]) -> Value:
        return x.builder.emit(self, (x, kernel), {**attrs, "groups": groups})

    def flops(self, out: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Return two for each tap of each window, in each pair of an input and an output channel of a group."""
        return 2 * self.layout_for(out, *types, **attrs).products

    def layout_for(
        self,
        out: TensorType,
        x: TensorType,
        kernel: TensorType,
        *,
        groups: int,
        output_padding: Any = None,
        **spatial: Any,
    ) -> Layout:
        """Return `layout` from the arguments of `flops` and `workspace`."""
        return self.layout(out, x, Windows(kernel.shape[2:], **spatial), groups)


def result_type(shape: Sequence[int], *operands: TensorType | None) -> TensorType:
    """Return the type of a result of `shape` in the operands' common dtype."""
    return TensorType(tuple(shape), promote(*(x.dtype for x in operands if x is not None)))


def empty_batch(op: Op, mapped: Sequence[bool], operands: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
    """Return the result of `op` for an empty batch: an extent of 0 cannot be unfolded."""
    example_types = [v.type.with_shape(v.shape[1:]) if m else v.type for v, m in zip(operands, mapped, strict=True)]
    y = op.infer(*example_types, **attrs)
    assert isinstance(y, TensorType)
    return operands[0].builder.full((0, *y.shape), 0.0, y.dtype)


def fold_batch(x: Value, axis: int, groups: int = 1) -> Value:
    """Move the batch axis of x [N, *shape] in front of the entries of `axis`, in each of its groups."""
    n, *shape = x.shape
    split = (groups,) if groups > 1 else ()
    grouped = shaped(x, (n, *shape[:axis], *split, shape[axis] // groups, *shape[axis + 1 :]))
    target = axis + len(split)
    moved = grouped.transpose(axes=(*range(1, target + 1), 0, *range(target + 1, grouped.ndim)))
    return moved.reshape(shape=(*shape[:axis], n * shape[axis], *shape[axis + 1 :]))


def unfold_batch(y: Value, axis: int, n: int, groups: int = 1) -> Value:
    """Invert `fold_batch`."""
    shape = y.shape
    split, batch_axis = ((groups,), axis + 1) if groups > 1 else ((), axis)
    grouped = y.reshape(shape=(*shape[:axis], *split, n, shape[axis] // (n * groups), *shape[axis + 1 :]))
    moved = grouped.transpose(axes=(batch_axis, *(i for i in range(grouped.ndim) if i != batch_axis)))
    return shaped(moved, (n, *shape[:axis], shape[axis] // n, *shape[axis + 1 :]))


def emit_correlation(wide: Value, kernel: Value, positions: Sequence[int], windows: Windows, groups: int) -> Value:
    """Append Σ wide[n, c, p·s + t·d − p₀] · kernel[o, c, t] over channels c of a group and taps: [n, o, *positions]."""
    convolve = getattr(wide, f"conv{len(windows.size)}d")
    result = convolve(kernel, groups=groups, **windows.placing)
    return crop(result, (*result.shape[:2], *positions))


def spread_values(narrow: Value, kernel: Value, extents: Sequence[int], windows: Windows, groups: int) -> Value:
    """Append the adjoint of `emit_correlation` with respect to `wide`: `narrow` times the kernel, as [n, c, *extents].

    One spatial axis is raised to two, as in `Conv1D`.
    """
    if len(extents) == 1:
        images, taps = (v.unsqueeze(axes=(2,)) for v in (narrow, kernel))
        return spread_values(images, taps, (1, *extents), windows.on_axes(2), groups).squeeze(axes=(2,))
    transposed = getattr(narrow, f"conv_transpose{len(extents)}d")
    output_padding = tuple(map(sub, extents, windows.cover(narrow.shape[2:])))
    dx: Value = transposed(kernel, output_padding=output_padding, groups=groups, **windows.placing)
    return dx


def crop(x: Value, shape: Sequence[int]) -> Value:
    """Return the leading part of x: windows that do not fit evenly see a few positions more."""
    if x.shape == tuple(shape):
        return x
    return x.slice(stops=tuple(shape))


class KernelGradient(Op):
    """y[o, c, t] = Σ wide[n, c, p·s + t·d − p₀] · narrow[n, o, p], over images n and positions p, for c in o's group.

    wide [n, channels, *extents], zero outside; narrow [n, features, *positions]; y [features, channels / groups,
    *taps]. The cotangent of a convolution's kernel, from x and the cotangent of its result; for a transposed
    convolution, from the cotangent and x.
    """

    is_product = True
    name = "kernel_gradient"
    internal = True
    operands = ("wide", "narrow")
    dtypes = FLOATS
    attrs: ClassVar[Mapping[str, Attr]] = {
        "taps": Attr("ints", doc="extents of the kernel along each spatial axis", minimum=1),
        **{name: replace(attr, default=REQUIRED) for name, attr in placing_attrs(1).items()},
    }
    gradient: ClassVar[str] = "d wide = the adjoint of narrow with g as its kernel, d narrow = wide convolved with g"

    def infer(self, wide: TensorType, narrow: TensorType, *, taps: Shape, groups: int, **spatial: Any) -> ResultTypes:
        """Return the type [features, channels / groups, *taps]."""
        return result_type((narrow.shape[1], wide.shape[1] // groups, *taps), wide, narrow)

    def forward(
        self, run: RunContext, wide: Array, narrow: Array, *, out: Array, taps: Shape, groups: int, **spatial: Any
    ) -> None:
        """Multiply values and columns, and sum."""
        sum_kernel(run, wide, narrow, out, Windows(taps, **spatial), groups)

    def vjp(
        self, g: Value, y: Value, wide: Value, narrow: Value, *, taps: Shape, groups: int, **spatial: Any
    ) -> Sequence[Value | None]:
        """Append the adjoint and the convolution whose kernel is g."""
        windows = Windows(taps, **spatial)
        wide_cotangent = spread_values(narrow, g, wide.shape[2:], windows, groups)
        return wide_cotangent, emit_correlation(wide, g, narrow.shape[2:], windows, groups)

    def batch(self, mapped: Sequence[bool], wide: Value, narrow: Value, *, groups: int, **attrs: Any) -> Value:
        """Fold N into each group's channels, or its features or, if both operands have it, the groups.

        It cannot go into the images, which are summed over.
        """
        n = batching.batch_size(mapped, (wide, narrow))
        if n == 0:
            return empty_batch(self, mapped, (wide, narrow), {**attrs, "groups": groups})
        if all(mapped):
            wide, narrow = fold_batch(wide, 1), fold_batch(narrow, 1)
            return unfold_batch(self._emit(wide, narrow, n * groups, attrs), 0, n)
        if mapped[0]:
            return unfold_batch(self._emit(fold_batch(wide, 1, groups), narrow, groups, attrs), 1, n)
        return unfold_batch(self._emit(wide, fold_batch(narrow, 1, groups), groups, attrs), 0, n, groups)

    def _emit(self, wide: Value, narrow: Value, groups: int, attrs: Mapping[str, Any]) -> Value:
        return wide.builder.emit(self, (wide, narrow), {**attrs, "groups": groups})

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write it as a convolution of transposed operands."""
        wide, narrow = operands
        return (_write_as_convolution(wide, narrow, **attrs),)

    def flops(self, out: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Return two for each tap of each window, in each pair of an input and an output channel of a group."""
        return 2 * _layout_for(out, *types, **attrs).products

    def workspace(self, out: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Return the bytes of a chunk of columns, and of the sums."""
        return sum_kernel_workspace(_layout_for(out, *types, **attrs), out, *types)


KERNEL_GRADIENT = KernelGradient()


def kernel_gradient(wide: Value, narrow: Value, windows: Windows, groups: int) -> Value:
    """Append the gradient of a convolution with respect to its kernel, for these windows over `wide`."""
    attrs = {"taps": windows.size, **windows.placing, "groups": groups}
    return wide.builder.emit(KERNEL_GRADIENT, (wide, narrow), attrs)


def _layout_for(
    out: TensorType, wide: TensorType, narrow: TensorType, *, taps: Shape, groups: int, **spatial: Any
) -> Layout:
    return layout(wide, narrow, out, Windows(taps, **spatial), groups)


def _write_as_convolution(wide: Value, narrow: Value, *, taps: Shape, groups: int, **spatial: Any) -> Value:
    """Write the gradient as a convolution whose kernel is `narrow`.

    Images and channels exchange places, and so do stride and dilation.
    """
    windows = Windows(taps, **spatial).exchanged(narrow.shape[2:])
    convolve = getattr(_by_group(wide, groups), f"conv{len(taps)}d")
    kernel = _swap_leading_axes(convolve(_swap_leading_axes(narrow), groups=groups, **windows.placing))
    return crop(kernel, (*kernel.shape[:2], *taps))


def _swap_leading_axes(x: Value) -> Value:
    """Swap the first two axes of x."""
    return x.transpose(axes=(1, 0, *range(2, x.ndim)))


def _by_group(x: Value, groups: int) -> Value:
    """Reshape x [n, channels, *extents] to [channels / groups, groups · n, *extents]."""
    if groups == 1:
        return _swap_leading_axes(x)
    n, channels, *extents = x.shape
    split = x.reshape(shape=(n, groups, channels // groups, *extents))
    moved = split.transpose(axes=(2, 1, 0, *range(3, split.ndim)))
    return moved.reshape(shape=(channels // groups, groups * n, *extents))


class Correlation(Convolution):
    """Base: y[n, o, p] = Σ x[n, c, p·s + t·d − p₀] · kernel[o, c, t] + bias[o], for positions p and taps t."""

    section = "conv"
    gradient: ClassVar[str] = "dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed"
    feature_axis: ClassVar[int] = 0
    kernel_axes: ClassVar[str] = "features, channels / groups"

    def canonical_placing(
        self, windows: Windows, extents: Sequence[int], attrs: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the smallest equivalent placing of windows that move over x."""
        check_fits(windows, extents)
        return windows.canonical_placing(extents).placing

    def infer(
        self, x: TensorType, kernel: TensorType, bias: TensorType | None = None, *, groups: int, **spatial: Any
    ) -> ResultTypes:
        """Return the type [n, features, *positions]. Raises ShapeMismatch, BadAttribute."""
        channels, features = x.shape[1], kernel.shape[0]
        check_groups(groups, channels, "channels of x")
        check_groups(groups, features, "features, axis 0 of the kernel")
        why = f"{counted(channels, 'channel')} in {counted(groups, 'group')}"
        require_extent(kernel, 1, channels // groups, 1, "kernel", why)
        if bias is not None:
            require_shape(bias, (features,), 2, "bias", "one number for each feature")
        positions = Windows(kernel.shape[2:], **spatial).positions(x.shape[2:])
        return result_type((x.shape[0], features, *positions), x, kernel, bias)

    def forward(self, run: RunContext, x: Array, kernel: Array, *, out: Array, groups: int, **spatial: Any) -> None:
        """Multiply columns and kernel."""
        correlate(run, x, kernel, out, Windows(kernel.shape[2:], **spatial), groups)

    def vjp(
        self, g: Value, y: Value, x: Value, kernel: Value, *, groups: int, **spatial: Any
    ) -> Sequence[Value | None]:
        """Append the adjoint, and the correlation of x with g."""
        x, kernel = floats_for_rule(y.dtype, (x, kernel))
        windows = Windows(kernel.shape[2:], **spatial)
        return spread_values(g, kernel, x.shape[2:], windows, groups), kernel_gradient(x, g, windows, groups)

    def layout(self, out: TensorType, x: TensorType, windows: Windows, groups: int) -> Layout:
        """Return the layout of windows that move over x and give the result."""
        return layout(x, out, out, windows, groups)

    def workspace(self, out: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Return the bytes of a chunk of columns."""
        return correlate_workspace(self.layout_for(out, *types, **attrs), out, *types)


class Conv1D(Composite, Correlation):
    """y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.

    s, d and p are stride, dilation and padding. x [n, channels, w], zero outside; kernel [features, channels / groups,
    kw]; y [n, features, w'] with w' = ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Each feature reads only the channels of its
    own group. Same as PyTorch's conv1d.
    """

    name = "conv1d"
    rank = 1
    attrs: ClassVar[Mapping[str, Attr]] = placing_attrs(1)
    samples = (
        Sample(Real(2, 2, 5), Real(3, 2, 3)),
        Sample(Real(1, 2, 6), Real(2, 2, 2), Real(2), stride=[2], padding=[1]),
        Sample(Real(2, 4, 7), Real(2, 2, 2), stride=[3], dilation=[2], groups=2),
    )

    def compose(self, x: Value, kernel: Value, bias: Value | None = None, **attrs: Any) -> Value:
        """Convolve images of height 1."""
        windows = Windows(kernel.shape[2:], *(attrs[name] for name in ("stride", "padding", "dilation")))
        images, taps = (v.unsqueeze(axes=(2,)) for v in (x, kernel))
        biases = () if bias is None else (bias,)
        return images.conv2d(taps, *biases, groups=attrs["groups"], **windows.on_axes(2).placing).squeeze(axes=(2,))


class Conv2D(Correlation):
    """y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a cross-correlation.

    s, d and p are stride, dilation and padding. x [n, channels, h, w], zero outside; kernel [features, channels /
    groups, kh, kw]; y [n, features, h', w'] with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Each feature reads only the
    channels of its own group. Same as PyTorch's conv2d.
    """

    name = "conv2d"
    aliases: ClassVar[Mapping[str, str]] = {"Conv2DOp": "born", "Conv2D": "born"}
    rank = 2
    attrs: ClassVar[Mapping[str, Attr]] = placing_attrs(2)
    gradient = "dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed"
    samples = (
        Sample(Real(2, 2, 4, 5), Real(3, 2, 3, 2)),
        Sample(Real(1, 2, 6, 5), Real(2, 2, 2, 2), Real(2), stride=[2, 2], padding=[1, 0]),
        Sample(Real(2, 4, 5, 6), Real(2, 2, 2, 3), stride=[1, 3], dilation=[2, 1], groups=2),
    )


class Conv3D(Correlation):
    """y[n, o, i, j, k] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p] · kernel[o, c, a, b, e] + bias[o].

    A cross-correlation. x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw]; y [n,
    features, d', h', w'] with extents as in conv2d. Same as PyTorch's conv3d.
    """

    name = "conv3d"
    rank = 3
    attrs: ClassVar[Mapping[str, Attr]] = placing_attrs(3)
    gradient = "dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed"
    samples = (
        Sample(Real(2, 2, 3, 4, 3), Real(2, 2, 2, 2, 2)),
        Sample(Real(1, 1, 3, 4, 2), Real(2, 1, 2, 3, 1), Real(2), stride=[2, 1, 1], padding=[0, 1, 1]),
        Sample(Real(1, 2, 3, 2, 5), Real(2, 1, 2, 1, 2), stride=[1, 2, 3], dilation=[2, 1, 1], groups=2),
    )


class TransposedConvolution(Convolution):
    """Base: y[n, o, p·s + t·d − p₀] = Σ x[n, c, p] · kernel[c, o, t] + bias[o], for positions p and taps t."""

    section = "conv_transpose"
    feature_axis: ClassVar[int] = 1
    kernel_axes: ClassVar[str] = "channels, features / groups"

    def canonical_placing(
        self, windows: Windows, extents: Sequence[int], attrs: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the smallest equivalent placing of windows that spread over the result."""
        output_padding = attrs["output_padding"]
        check_spread(windows, extents, output_padding)
        check_extents(tuple(map(add, windows.cover(extents), output_padding)), windows.padding)
        windows, output_padding = windows.canonical_spread(extents, output_padding)
        return {**windows.placing, "output_padding": output_padding}

    def infer(
        self,
        x: TensorType,
        kernel: TensorType,
        bias: TensorType | None = None,
        *,
        output_padding: Shape,
        groups: int,
        **spatial: Any,
    ) -> ResultTypes:
        """Return the type [n, features, *extents]. Raises ShapeMismatch, BadAttribute."""
        channels, features = x.shape[1], kernel.shape[1] * groups
        check_groups(groups, channels, "channels of x")
        require_extent(kernel, 0, channels, 1, "kernel", "the channels of x")
        if bias is not None:
            require_shape(bias, (features,), 2, "bias", "one number for each feature")
        cover = Windows(kernel.shape[2:], **spatial).cover(x.shape[2:])
        extents = map(add, cover, output_padding)
        return result_type((x.shape[0], features, *extents), x, kernel, bias)

    def forward(
        self,
        run: RunContext,
        x: Array,
        kernel: Array,
        *,
        out: Array,
        output_padding: Shape,
        groups: int,
        **spatial: Any,
    ) -> None:
        """Add the kernel times each value where its window lies."""
        add_windows(run, x, kernel, out, Windows(kernel.shape[2:], **spatial), groups)

    def vjp(
        self, g: Value, y: Value, x: Value, kernel: Value, *, output_padding: Shape, groups: int, **spatial: Any
    ) -> Sequence[Value | None]:
        """Append the correlation whose adjoint this is, and the correlation of g with x."""
        x, kernel = floats_for_rule(y.dtype, (x, kernel))
        windows = Windows(kernel.shape[2:], **spatial)
        return emit_correlation(g, kernel, x.shape[2:], windows, groups), kernel_gradient(g, x, windows, groups)

    def layout(self, out: TensorType, x: TensorType, windows: Windows, groups: int) -> Layout:
        """Return the layout of windows in the result, one for each value of x."""
        return layout(out, x, out, windows, groups)

    def workspace(self, out: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Return the bytes of products and the padded result, for one chunk."""
        return add_windows_workspace(self.layout_for(out, *types, **attrs), *types)


class ConvTranspose1D(Composite, TransposedConvolution):
    """y[n, o, i·s + a·d − p] = Σ x[n, c, i] · kernel[c, o, a] + bias[o]: the adjoint of conv1d.

    x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'] with w' = (w − 1)·s + d·(kw − 1) +
    1 + output_padding − 2p. PyTorch: `conv_transpose1d`. JAX: `lax.conv_transpose` with transpose_kernel, which has the
    kernel's axes in another order and takes the padding of the underlying dilated convolution.
    """

    name = "conv_transpose1d"
    rank = 1
    since = 2
    attrs: ClassVar[Mapping[str, Attr]] = transposed_placing_attrs(1)
    gradient = "dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed"
    samples = (
        Sample(Real(2, 2, 3), Real(2, 3, 2)),
        Sample(Real(1, 2, 3), Real(2, 2, 3), Real(2), stride=[2], padding=[1], output_padding=[1]),
        Sample(Real(2, 4, 3), Real(4, 1, 2), stride=[2], dilation=[3], output_padding=[2], groups=2),
    )
    truths = (
        Truth(
            operands=([[[1.0, 2.0]]], [[[3.0, 5.0, 7.0]]]),
            attrs={"stride": [2]},
            value=[[[3.0, 5.0, 13.0, 10.0, 14.0]]],
            gradients=[[[[15.0, 15.0]]], [[[3.0, 3.0, 3.0]]]],
            source="by hand",
        ),
    )

    def compose(self, x: Value, kernel: Value, bias: Value | None = None, **attrs: Any) -> Value:
        """Convolve images of height 1."""
        windows = Windows(kernel.shape[2:], *(attrs[name] for name in ("stride", "padding", "dilation")))
        images, taps = (v.unsqueeze(axes=(2,)) for v in (x, kernel))
        biases = () if bias is None else (bias,)
        other_attrs = {"output_padding": (0, *attrs["output_padding"]), "groups": attrs["groups"]}
        return images.conv_transpose2d(taps, *biases, **other_attrs, **windows.on_axes(2).placing).squeeze(axes=(2,))


class ConvTranspose2D(TransposedConvolution):
    """y[n, o, i·s + a·d − p, j·s + b·d − p] = Σ x[n, c, i, j] · kernel[c, o, a, b] + bias[o]: the adjoint of conv2d.

    x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with h' = (h − 1)·s −
    2p + d·(kh − 1) + 1 + output_padding. Same as PyTorch's conv_transpose2d.
    """

    name = "conv_transpose2d"
    rank = 2
    attrs: ClassVar[Mapping[str, Attr]] = transposed_placing_attrs(2)
    gradient = "dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed"
    samples = (
        Sample(Real(2, 2, 3, 2), Real(2, 3, 2, 3)),
        Sample(Real(1, 2, 3, 2), Real(2, 2, 2, 3), Real(2), stride=[2, 3], padding=[1, 0], output_padding=[1, 2]),
        Sample(Real(2, 4, 3, 3), Real(4, 1, 2, 2), stride=[1, 2], dilation=[3, 1], output_padding=[2, 0], groups=2),
    )


class ConvTranspose3D(TransposedConvolution):
    """y[n, o, i·s + a·d − p, …] = Σ x[n, c, i, j, k] · kernel[c, o, a, b, e] + bias[o]: the adjoint of conv3d.

    x [n, channels, d, h, w]; kernel [channels, features / groups, kd, kh, kw]; y [n, features, d', h', w'] with extents
    as in conv_transpose2d. Same as PyTorch's conv_transpose3d.
    """

    name = "conv_transpose3d"
    rank = 3
    attrs: ClassVar[Mapping[str, Attr]] = transposed_placing_attrs(3)
    gradient = "dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed"
    samples = (
        Sample(Real(2, 2, 2, 3, 2), Real(2, 2, 2, 2, 1)),
        Sample(Real(1, 2, 2, 1, 3), Real(2, 1, 1, 2, 3), Real(1), stride=[2, 1, 3], output_padding=[1, 0, 2]),
        Sample(Real(1, 2, 2, 3, 2), Real(2, 1, 2, 2, 2), padding=[1, 0, 1], dilation=[1, 2, 1], groups=2),
    )
