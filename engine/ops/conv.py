"""Convolution on one, two and three spatial axes. It and its adjoint are each the derivative of the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.errors import counted
from engine.graph.ir import Value
from engine.graph.op import Array, Composite, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType
from engine.oplib.convolution import Convolution, placing, spread_values, typed
from engine.oplib.convolution_layout import Layout, layout
from engine.oplib.im2col import correlate, correlate_workspace
from engine.oplib.kernel_gradient import kernel_gradient
from engine.oplib.operands import require_extent, require_shape
from engine.oplib.spatial import check_fits, check_groups
from engine.oplib.windows import Windows


class Correlation(Convolution):
    """Base: y[n, o, p] = Σ x[n, c, p·s + t·d − p₀] · kernel[o, c, t] + bias[o], for positions p and taps t."""

    gradient: ClassVar[str] = "dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed"
    feature_axis: ClassVar[int] = 0
    kernel_axes: ClassVar[str] = "features, channels / groups"

    def least(self, windows: Windows, extents: Sequence[int], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Of windows that move over x."""
        check_fits(windows, extents)
        return windows.least(extents).placing

    def infer(
        self, x: TensorType, kernel: TensorType, bias: TensorType | None = None, *, groups: int, **spatial: Any
    ) -> ResultTypes:
        """[n, features, *positions]. Raises ShapeMismatch, BadAttribute."""
        channels, features = x.shape[1], kernel.shape[0]
        check_groups(groups, channels, "channels of x")
        check_groups(groups, features, "features, axis 0 of the kernel")
        why = f"{counted(channels, 'channel')} in {counted(groups, 'group')}"
        require_extent(kernel, 1, channels // groups, 1, "kernel", why)
        if bias is not None:
            require_shape(bias, (features,), 2, "bias", "one number for each feature")
        positions = Windows(kernel.shape[2:], **spatial).positions(x.shape[2:])
        return typed((x.shape[0], features, *positions), x, kernel, bias)

    def forward(self, run: RunContext, x: Array, kernel: Array, *, out: Array, groups: int, **spatial: Any) -> None:
        """Columns times the kernel."""
        correlate(run, x, kernel, out, Windows(kernel.shape[2:], **spatial), groups)

    def vjp(
        self, g: Value, y: Value, x: Value, kernel: Value, *, groups: int, **spatial: Any
    ) -> Sequence[Value | None]:
        """The adjoint; and the correlation of x with g."""
        windows = Windows(kernel.shape[2:], **spatial)
        return spread_values(g, kernel, x.shape[2:], windows, groups), kernel_gradient(x, g, windows, groups)

    def layout(self, out: TensorType, x: TensorType, windows: Windows, groups: int) -> Layout:
        """The windows move over x and give the result."""
        return layout(x, out, out, windows, groups)

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Columns, a chunk at a time."""
        assert isinstance(out, TensorType)
        return correlate_workspace(self.laid_out(out, *types, **attrs), out, *types)


class Conv1D(Composite, Correlation):
    """y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.

    x [n, channels, w], zero outside; kernel [features, channels / groups, kw]; y [n, features, w'] with
    w' = ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv1d.
    """

    name = "conv1d"
    section = "conv"
    rank = 1
    attrs: ClassVar[Mapping[str, Attr]] = placing(1)
    samples = (
        Sample(Real(2, 2, 5), Real(3, 2, 3)),
        Sample(Real(1, 2, 6), Real(2, 2, 2), Real(2), stride=[2], padding=[1]),
        Sample(Real(2, 4, 7), Real(2, 2, 2), stride=[3], dilation=[2], groups=2),
    )

    def compose(self, x: Value, kernel: Value, bias: Value | None = None, **attrs: Any) -> Value:
        """The convolution of images of height 1."""
        windows = Windows(kernel.shape[2:], *(attrs[name] for name in ("stride", "padding", "dilation")))
        images, taps = (v.unsqueeze(axes=(2,)) for v in (x, kernel))
        biases = () if bias is None else (bias,)
        return images.conv2d(taps, *biases, groups=attrs["groups"], **windows.on_axes(2).placing).squeeze(axes=(2,))


class Conv2D(Correlation):
    """y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a cross-correlation.

    x [n, channels, h, w], zero outside; kernel [features, channels / groups, kh, kw]; y [n, features, h', w'] with
    h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv2d.
    """

    name = "conv2d"
    section = "conv"
    aliases: ClassVar[Mapping[str, str]] = {"Conv2DOp": "born", "Conv2D": "born"}
    rank = 2
    attrs: ClassVar[Mapping[str, Attr]] = placing(2)
    gradient = "dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed"
    samples = (
        Sample(Real(2, 2, 4, 5), Real(3, 2, 3, 2)),
        Sample(Real(1, 2, 6, 5), Real(2, 2, 2, 2), Real(2), stride=[2, 2], padding=[1, 0]),
        Sample(Real(2, 4, 5, 6), Real(2, 2, 2, 3), stride=[1, 3], dilation=[2, 1], groups=2),
    )


class Conv3D(Correlation):
    """y[n, o, i, j, k] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p] · kernel[o, c, a, b, e] + bias[o].

    x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw]; y [n, features, d', h',
    w'] with extents as conv2d's, a cross-correlation. As PyTorch's conv3d.
    """

    name = "conv3d"
    section = "conv"
    rank = 3
    attrs: ClassVar[Mapping[str, Attr]] = placing(3)
    gradient = "dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed"
    samples = (
        Sample(Real(2, 2, 3, 4, 3), Real(2, 2, 2, 2, 2)),
        Sample(Real(1, 1, 3, 4, 2), Real(2, 1, 2, 3, 1), Real(2), stride=[2, 1, 1], padding=[0, 1, 1]),
        Sample(Real(1, 2, 3, 2, 5), Real(2, 1, 2, 1, 2), stride=[1, 2, 3], dilation=[2, 1, 1], groups=2),
    )
