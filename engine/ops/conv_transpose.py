"""The adjoint of convolution, on one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.ir import Value
from engine.graph.op import Array, Composite, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import Shape, TensorType
from engine.graph.truth import Truth
from engine.oplib.col2im import add_windows, add_windows_workspace
from engine.oplib.convolution import Convolution, correlated, placing_transposed, typed
from engine.oplib.convolution_layout import Layout, layout
from engine.oplib.kernel_gradient import kernel_gradient
from engine.oplib.operands import require_extent, require_shape
from engine.oplib.spatial import check_extents, check_groups, check_spread
from engine.oplib.windows import Windows


class TransposedConvolution(Convolution):
    """Base: y[n, o, p·s + t·d − p₀] = Σ x[n, c, p] · kernel[c, o, t] + bias[o], for positions p and taps t."""

    feature_axis: ClassVar[int] = 1
    kernel_axes: ClassVar[str] = "channels, features / groups"

    def least(self, windows: Windows, extents: Sequence[int], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Of windows that spread over the result."""
        more = attrs["output_padding"]
        check_spread(windows, extents, more)
        check_extents(tuple(map(add, windows.cover(extents), more)), windows.padding)
        windows, more = windows.least_spread(extents, more)
        return {**windows.placing, "output_padding": more}

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
        """[n, features, *extents]. Raises ShapeMismatch, BadAttribute."""
        channels, features = x.shape[1], kernel.shape[1] * groups
        check_groups(groups, channels, "channels of x")
        require_extent(kernel, 0, channels, 1, "kernel", "the channels of x")
        if bias is not None:
            require_shape(bias, (features,), 2, "bias", "one number for each feature")
        cover = Windows(kernel.shape[2:], **spatial).cover(x.shape[2:])
        extents = map(add, cover, output_padding)
        return typed((x.shape[0], features, *extents), x, kernel, bias)

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
        """The kernel times each value, added where its window lies."""
        add_windows(run, x, kernel, out, Windows(kernel.shape[2:], **spatial), groups)

    def vjp(
        self, g: Value, y: Value, x: Value, kernel: Value, *, output_padding: Shape, groups: int, **spatial: Any
    ) -> Sequence[Value | None]:
        """The correlation that this is the adjoint of; and the correlation of g with x."""
        windows = Windows(kernel.shape[2:], **spatial)
        return correlated(g, kernel, x.shape[2:], windows, groups), kernel_gradient(g, x, windows, groups)

    def layout(self, out: TensorType, x: TensorType, windows: Windows, groups: int) -> Layout:
        """The windows lie in the result, one for each value of x."""
        return layout(out, x, out, windows, groups)

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Products and the padded result, a chunk at a time."""
        return add_windows_workspace(self.laid_out(out, *types, **attrs), *types)


class ConvTranspose1D(Composite, TransposedConvolution):
    """y[n, o, i·s + a·d − p] = Σ x[n, c, i] · kernel[c, o, a] + bias[o]: the adjoint of conv1d.

    x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'], and
    w' = (w − 1)·s + d·(kw − 1) + 1 + output_padding − 2p. PyTorch's `conv_transpose1d`; JAX's `lax.conv_transpose` with
    transpose_kernel, which has the kernel's axes in another order, and paddings of the convolution that it widens.
    """

    name = "conv_transpose1d"
    section = "conv_transpose"
    rank = 1
    since = 2
    attrs: ClassVar[Mapping[str, Attr]] = placing_transposed(1)
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
        """That of images of height 1."""
        windows = Windows(kernel.shape[2:], *(attrs[name] for name in ("stride", "padding", "dilation")))
        images, taps = (v.unsqueeze(axes=(2,)) for v in (x, kernel))
        biases = () if bias is None else (bias,)
        more = {"output_padding": (0, *attrs["output_padding"]), "groups": attrs["groups"]}
        return images.conv_transpose2d(taps, *biases, **more, **windows.on_axes(2).placing).squeeze(axes=(2,))


class ConvTranspose2D(TransposedConvolution):
    """y[n, o, i·s + a·d − p, j·s + b·d − p] = Σ x[n, c, i, j] · kernel[c, o, a, b] + bias[o]: the adjoint of conv2d.

    x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with
    h' = (h − 1)·s − 2p + d·(kh − 1) + 1 + output_padding. As PyTorch's conv_transpose2d.
    """

    name = "conv_transpose2d"
    section = "conv_transpose"
    rank = 2
    attrs: ClassVar[Mapping[str, Attr]] = placing_transposed(2)
    gradient = "dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed"
    samples = (
        Sample(Real(2, 2, 3, 2), Real(2, 3, 2, 3)),
        Sample(Real(1, 2, 3, 2), Real(2, 2, 2, 3), Real(2), stride=[2, 3], padding=[1, 0], output_padding=[1, 2]),
        Sample(Real(2, 4, 3, 3), Real(4, 1, 2, 2), stride=[1, 2], dilation=[3, 1], output_padding=[2, 0], groups=2),
    )


class ConvTranspose3D(TransposedConvolution):
    """y[n, o, i·s + a·d − p, …] = Σ x[n, c, i, j, k] · kernel[c, o, a, b, e] + bias[o]: the adjoint of conv3d.

    x [n, channels, d, h, w]; kernel [channels, features / groups, kd, kh, kw]; y [n, features, d', h', w'] with
    extents as conv_transpose2d's. As PyTorch's conv_transpose3d.
    """

    name = "conv_transpose3d"
    section = "conv_transpose"
    rank = 3
    attrs: ClassVar[Mapping[str, Attr]] = placing_transposed(3)
    gradient = "dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed"
    samples = (
        Sample(Real(2, 2, 2, 3, 2), Real(2, 2, 2, 2, 1)),
        Sample(Real(1, 2, 2, 1, 3), Real(2, 1, 1, 2, 3), Real(1), stride=[2, 1, 3], output_padding=[1, 0, 2]),
        Sample(Real(1, 2, 2, 3, 2), Real(2, 1, 2, 2, 2), padding=[1, 0, 1], dilation=[1, 2, 1], groups=2),
    )
