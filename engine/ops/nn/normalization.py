"""Normalisation to mean 0 and variance 1, or to mean square 1, followed by a scale and an offset."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute
from engine.ir.graph import Value
from engine.ir.op import Composite, ResultTypes
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import FLOATS, Shape, TensorType, normalise_axes, normalise_axis, promote
from engine.ops.common.batching import pack
from engine.ops.common.numerics import require_axes, require_shape, upcast
from engine.ops.conv.windows import check_groups
from engine.ops.elementwise.base import Formula

_AXES = Attr("ints", (-1,), "axes to normalise over")
FEATURES = Attr("int", 1, "axis of the features")
EPS = Attr("float", 1e-5, "positive number added to the variance or mean square")


class Normalization(Formula):
    """Base: parameters lie along axes of x and apply to the result of `normalised`."""

    section = "normalization"
    operands: ClassVar[tuple[str, ...]] = ("x", "weight?", "bias?")

    def parameter_axes(self, **attrs: Any) -> tuple[int, ...]:
        """Return the axes of x that weight and bias have."""
        return tuple(attrs["axes"])

    @abstractmethod
    def normalised(self, *operands: Any, **attrs: Any) -> Value:
        """Normalise x, before weight and bias."""

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Sort the axes, counted from the front. Raises BadAttribute."""
        check_eps(attrs["eps"])
        return {**attrs, "axes": tuple(sorted(normalise_axes(attrs["axes"], types[0].ndim)))}

    def infer(self, x: TensorType, *parameters: TensorType, **attrs: Any) -> ResultTypes:
        """Return x's shape. Raises ShapeMismatch."""
        shape = tuple(x.shape[a] for a in self.parameter_axes(**attrs))
        for i, (name, parameter) in enumerate(zip(("weight", "bias"), parameters, strict=False), start=1):
            require_shape(parameter, shape, i, name, f"that of x on axes {list(self.parameter_axes(**attrs))}")
        return x.with_dtype(promote(x.dtype, *(p.dtype for p in parameters)))

    def formula(self, x: Value, weight: Value | None = None, bias: Value | None = None, **attrs: Any) -> Value:
        """Compute normalised(x) · weight + bias."""
        return scale_and_shift(self.normalised(x, **attrs), weight, bias, self.parameter_axes(**attrs), x)


def scale_and_shift(y: Value, weight: Value | None, bias: Value | None, axes: Sequence[int], x: Value) -> Value:
    """Compute y · weight + bias for parameters on `axes` of x, either of which may be absent."""
    if weight is not None:
        y = y * align_parameter(weight, axes, x)
    return y if bias is None else y + align_parameter(bias, axes, x)


def feature_attrs(attrs: dict[str, Any], x: TensorType) -> dict[str, Any]:
    """Return the attributes with the axis of the features counted from the front. Raises BadAttribute."""
    check_eps(attrs["eps"])
    return {**attrs, "axis": normalise_axis(attrs["axis"], x.ndim)}


def check_eps(eps: float) -> None:
    """Raise BadAttribute unless eps is positive: with 0, a constant row has no gradient."""
    if eps <= 0:
        raise BadAttribute(
            f"attribute eps must be positive, but is {eps:g}", attribute="eps", expected="above 0", got=f"{eps:g}"
        )


def align_parameter(parameter: Value, axes: Sequence[int], x: Value) -> Value:
    """Reshape a parameter with an extent for each of `axes` so that it broadcasts to x."""
    shape: Shape = tuple(e if i in axes else 1 for i, e in enumerate(x.shape))
    return parameter.reshape(shape=shape)


def standardise(x: Value, axes: Sequence[int], eps: float) -> Value:
    """Compute (x − mean) / √(variance + eps) over `axes`. Subtracting a large mean first costs no digits."""
    centred = x - x.mean(axes=tuple(axes), keepdims=True)
    return centred * (centred.square().mean(axes=tuple(axes), keepdims=True) + eps).rsqrt()


class LayerNorm(Normalization):
    """y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance (n in the denominator) over `axes`.

    weight and bias have x's extents on `axes`, in ascending order. CJC normalises the whole tensor: for that, pass all
    axes. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization" (2016).
    """

    name = "layer_norm"
    aliases: ClassVar[Mapping[str, str]] = {"LayerNorm": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {"axes": _AXES, "eps": EPS}
    gradient = "with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps)"
    samples = (
        Sample(Real(2, 4)),
        Sample(Real(2, 3, 2), Real(3, 2), axes=[-1, 1]),
        Sample(Real(2, 3, 2), Real(2, 3), Real(2, 3), axes=[0, 1], eps=0.1),
    )

    def normalised(self, x: Value, *, axes: Sequence[int], eps: float) -> Value:
        """Standardise over the axes of the parameters."""
        return standardise(x, axes, eps)


class BatchNorm(Normalization):
    """y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each feature over all other axes.

    `axis` is the axis of the features; weight and bias have its extent. The statistics are those of the operand, as in
    training, with n in the denominator. CJC normalises the whole tensor: for that, reshape it to [n, 1]. S. Ioffe, C.
    Szegedy, "Batch normalization" (2015).
    """

    name = "batch_norm"
    aliases: ClassVar[Mapping[str, str]] = {"BatchNorm": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": FEATURES, "eps": EPS}
    gradient = "as in layer_norm, over all axes but that of the features"
    samples = (
        Sample(Real(4, 3)),
        Sample(Real(2, 3, 2, 2), Real(3), eps=0.1),
        Sample(Real(3, 4), Real(3), Real(3), axis=-2),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Count the axis from the front. Raises BadAttribute."""
        return feature_attrs(attrs, types[0])

    def parameter_axes(self, **attrs: Any) -> tuple[int, ...]:
        """Return the axis of the features."""
        return (attrs["axis"],)

    def normalised(self, x: Value, *, axis: int, eps: float) -> Value:
        """Standardise over the other axes. If the features' axis is the only one, there is one example of each."""
        if x.ndim == 1:
            return standardise(x.reshape(shape=(1, *x.shape)), (0,), eps).reshape(shape=x.shape)
        return standardise(x, [i for i in range(x.ndim) if i != axis], eps)


class GroupNorm(Normalization):
    """y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each group of channels per example.

    x [n, channels, …]; weight and bias [channels]. The channels are divided into `groups` equal groups. The variance
    has n in the denominator. PyTorch: `group_norm`. Flax: `GroupNorm`, with channels last. Y. Wu, K. He, "Group
    normalization" (2018).
    """

    name = "group_norm"
    since = 2
    attrs: ClassVar[Mapping[str, Attr]] = {
        "groups": Attr("int", doc="number of equal groups of channels", minimum=1),
        "eps": EPS,
    }
    gradient = "as in layer_norm, over each group"
    samples = (
        Sample(Real(2, 4, 3), groups=2),
        Sample(Real(2, 3, 2, 2), Real(3), groups=1, eps=0.1),
        Sample(Real(3, 4, 3), Real(4), Real(4), groups=2),
    )
    truths = (
        Truth(
            operands=[[[1.0, 3.0, 10.0, 10.0]], [2.0, 2.0, 5.0, 5.0], [0.5, 0.5, 7.0, 7.0]],
            attrs={"groups": 2, "eps": 3.0},
            value=[[-0.5, 1.5, 7.0, 7.0]],
            cotangent=[[4.0, 0.0, 1.0, 2.0]],
            gradients=[[[1.5, -1.5, -2.5 / 3**0.5, 2.5 / 3**0.5]], [-2.0, 0.0, 0.0, 0.0], [4.0, 0.0, 1.0, 2.0]],
            source="by hand: deviations of 1 and 0",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Check the groups. Raises BadAttribute unless they divide the channels, ShapeMismatch for missing axes."""
        check_eps(attrs["eps"])
        require_axes(types[0], 2, "examples and channels")
        check_groups(attrs["groups"], types[0].shape[1], "channels of x")
        return attrs

    def parameter_axes(self, **attrs: Any) -> tuple[int, ...]:
        """Return the axis of the channels."""
        return (1,)

    def normalised(self, x: Value, *, groups: int, eps: float) -> Value:
        """Standardise over all elements of a group."""
        n, count = x.shape[0], math.prod(x.shape[1:])
        parts = x.reshape(shape=(n, groups, count // groups))
        return standardise(parts, (2,), eps).reshape(shape=x.shape)


class RMSNorm(Normalization):
    """y = x / √(mean x² + eps) · weight, with the mean over `axes`; weight has x's extents there, in ascending order.

    B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
    """

    name = "rms_norm"
    operands = ("x", "weight?")
    attrs: ClassVar[Mapping[str, Attr]] = {"axes": _AXES, "eps": EPS}
    gradient = "with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps)"
    samples = (Sample(Real(2, 4)), Sample(Real(2, 3, 2), Real(2, 2), axes=[0, 2], eps=0.1))

    def normalised(self, x: Value, *, axes: Sequence[int], eps: float) -> Value:
        """Apply the formula."""
        return x * (x.square().mean(axes=tuple(axes), keepdims=True) + eps).rsqrt()


def _check(names: tuple[str, ...], types: tuple[TensorType, ...], axis: int) -> None:
    """Raise ShapeMismatch unless each operand but the first has one number per feature."""
    for i, (name, type) in enumerate(zip(names[1:], types[1:], strict=False), start=1):
        require_shape(type, (types[0].shape[axis],), i, name.rstrip("?"), f"that of x on axis {axis}")


class BatchNormGiven(Formula):
    """y = (x − mean) / √(variance + eps) · weight + bias, with given statistics, as in inference.

    `axis` is the axis of the features; all other operands have its extent. PyTorch: `batch_norm` with training false.
    Flax: `BatchNorm` with use_running_average, with features last.
    """

    name = "batch_norm_given"
    section = "batch_statistics"
    operands = ("x", "mean", "variance", "weight?", "bias?")
    since = 2
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": FEATURES, "eps": EPS}
    gradient = "with r = 1 / √(variance + eps): dx = g · weight · r; for the other operands, that of the formula"
    samples = (
        Sample(Real(4, 3), Real(3), Real(3, low=0.5, high=2)),
        Sample(Real(2, 3, 2), Real(3), Real(3, low=0.5, high=2), Real(3), eps=0.1),
        Sample(Real(3, 4), Real(3), Real(3, low=0.5, high=2), Real(3), Real(3), axis=-2),
    )
    truths = (
        Truth(
            operands=[[[5.0, 1.0]], [1.0, 3.0], [3.0, 15.0], [2.0, 3.0], [0.5, 7.0]],
            attrs={"eps": 1.0},
            value=[[4.5, 5.5]],
            gradients=[[[1.0, 0.75]], [-1.0, -0.75], [-0.5, 0.046875], [2.0, -0.5], [1.0, 1.0]],
            source="by hand: roots of 4 and 16",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Count the axis from the front. Raises BadAttribute."""
        return feature_attrs(attrs, types[0])

    def infer(self, *types: TensorType, axis: int, **attrs: Any) -> ResultTypes:
        """Return x's shape. Raises ShapeMismatch."""
        _check(self.operands, types, axis)
        return types[0].with_dtype(promote(*(t.dtype for t in types)))

    def formula(
        self,
        x: Value,
        mean: Value,
        variance: Value,
        weight: Value | None = None,
        bias: Value | None = None,
        *,
        axis: int,
        eps: float,
    ) -> Value:
        """Subtract the mean first, so that a large one costs no digits."""
        y = (x - align_parameter(mean, (axis,), x)) * align_parameter((variance + eps).rsqrt(), (axis,), x)
        return scale_and_shift(y, weight, bias, (axis,), x)


class BatchNormRunning(Composite):
    """y of `batch_norm`, and the updated running mean and variance: (1 − momentum) · old + momentum · this batch's.

    `axis` is the axis of the features; all other operands have its extent. The variance of the batch has n − 1 in the
    denominator in the running variance, and n in y. PyTorch: `batch_norm` with training true, which updates the running
    statistics in place and gives them no gradient. Flax: `BatchNorm`, whose momentum is 1 minus this one, and whose
    running variance has n in the denominator.
    """

    name = "batch_norm_running"
    section = "batch_statistics"
    operands = ("x", "mean", "variance", "weight?", "bias?")
    since = 2
    several = True
    dtypes = FLOATS
    attrs: ClassVar[Mapping[str, Attr]] = {
        "axis": FEATURES,
        "eps": EPS,
        "momentum": Attr("float", 0.1, "weight of the batch's statistics in the running ones"),
    }
    gradient = "as in batch_norm; for the running statistics, that of their formula"
    samples = (
        Sample(Real(4, 3), Real(3), Real(3, low=0.5, high=2)),
        Sample(Real(2, 3, 2), Real(3), Real(3, low=0.5, high=2), Real(3), eps=0.1, momentum=0.5),
        Sample(Real(3, 4), Real(3), Real(3, low=0.5, high=2), Real(3), Real(3), axis=-2),
    )
    truths = (
        Truth(
            operands=[[[1.0], [3.0]], [10.0], [20.0]],
            attrs={"eps": 3.0, "momentum": 0.25},
            value=([[-0.5], [0.5]], [8.0], [15.5]),
            cotangent=([[0.0], [0.0]], [8.0], [2.0]),
            gradients=[[[0.0], [2.0]], [6.0], [1.5]],
            source="by hand: the mean is 2, the variance 1, and 2 with n − 1",
        ),
        Truth(
            operands=[[[1.0], [3.0]], [10.0], [20.0], [2.0], [5.0]],
            attrs={"eps": 3.0},
            value=([[4.0], [6.0]], [9.2], [18.2]),
            cotangent=([[4.0], [0.0]], [0.0], [0.0]),
            gradients=[[[1.5], [-1.5]], [0.0], [0.0], [-2.0], [4.0]],
            source="by hand: as of batch_norm",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Count the axis from the front. Raises BadAttribute."""
        return feature_attrs(attrs, types[0])

    def infer(self, *types: TensorType, axis: int, **attrs: Any) -> ResultTypes:
        """Return x's shape, and those of the running statistics. Raises ShapeMismatch."""
        _check(self.operands, types, axis)
        x, mean, variance, *parameters = types
        return x.with_dtype(promote(x.dtype, *(p.dtype for p in parameters))), mean, variance

    def compose(
        self, x: Value, mean: Value, variance: Value, *parameters: Value, axis: int, eps: float, momentum: float
    ) -> Value:
        """Mix the batch's statistics with the running ones."""
        axes, rows = tuple(i for i in range(x.ndim) if i != axis), upcast(x)
        count = math.prod(x.shape[i] for i in axes)
        if not axes:
            axes, rows = (0,), rows.reshape(shape=(1, *x.shape))
        batch_statistics = rows.mean(axes=axes), rows.var(axes=axes) * (count / max(count - 1, 1))
        running = [
            (upcast(old) * (1 - momentum) + new * momentum).cast(dtype=old.dtype)
            for old, new in zip((mean, variance), batch_statistics, strict=True)
        ]
        return pack(x.builder, [x.batch_norm(*parameters, axis=axis, eps=eps), *running])
