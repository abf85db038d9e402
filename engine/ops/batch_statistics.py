"""Batch norm by statistics that are given, and with running ones that it moves on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import FLOATS
from engine.graph.ir import Value
from engine.graph.op import Composite, ResultTypes
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType, promote
from engine.graph.truth import Truth
from engine.oplib.formula import Formula
from engine.oplib.operands import require_shape
from engine.oplib.pack import bundled
from engine.oplib.widening import wide
from engine.ops.normalization import EPS, FEATURES, laid_along, of_features, scaled


def _check(names: tuple[str, ...], types: tuple[TensorType, ...], axis: int) -> None:
    """Raise ShapeMismatch unless each operand but the first has one number for each feature."""
    for i, (name, type) in enumerate(zip(names[1:], types[1:], strict=False), start=1):
        require_shape(type, (types[0].shape[axis],), i, name.rstrip("?"), f"that of x on axis {axis}")


class BatchNormGiven(Formula):
    """y = (x − mean) / √(variance + eps) · weight + bias, by statistics that are given, as when a network is used.

    `axis` is that of the features; all other operands have its extent. PyTorch's `batch_norm` with training false;
    Flax's `BatchNorm` with use_running_average, whose features are last.
    """

    name = "batch_norm_given"
    section = "batch_statistics"
    operands = ("x", "mean", "variance", "weight?", "bias?")
    since = 2
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": FEATURES, "eps": EPS}
    gradient = "with r = 1 / √(variance + eps): dx = g · weight · r, and those of all others as the formula says"
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
        """The axis counted from the front. Raises BadAttribute."""
        return of_features(attrs, types[0])

    def infer(self, *types: TensorType, axis: int, **attrs: Any) -> ResultTypes:
        """x's shape. Raises ShapeMismatch."""
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
        """The mean is taken off first, so that a large one costs no digits."""
        y = (x - laid_along(mean, (axis,), x)) * laid_along((variance + eps).rsqrt(), (axis,), x)
        return scaled(y, weight, bias, (axis,), x)


class BatchNormRunning(Composite):
    """y of `batch_norm`, and the running mean and variance, moved on: (1 − momentum) · old + momentum · this batch's.

    `axis` is that of the features; all other operands have its extent. The variance that is moved to has n − 1 in the
    denominator, that of y has n. Three results, read through get_output. PyTorch's `batch_norm` with training true,
    whose running statistics are written in place, and carry no gradient; Flax's `BatchNorm`, whose momentum is 1 − this
    one, and whose running variance has n.
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
        "momentum": Attr("float", 0.1, "how much of the new statistics the running ones take"),
    }
    gradient = "as of batch_norm; of the running statistics as their formula"
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
        """The axis counted from the front. Raises BadAttribute."""
        return of_features(attrs, types[0])

    def infer(self, *types: TensorType, axis: int, **attrs: Any) -> ResultTypes:
        """x's shape, and those of the running statistics. Raises ShapeMismatch."""
        _check(self.operands, types, axis)
        x, mean, variance, *parameters = types
        return x.with_dtype(promote(x.dtype, *(p.dtype for p in parameters))), mean, variance

    def compose(
        self, x: Value, mean: Value, variance: Value, *parameters: Value, axis: int, eps: float, momentum: float
    ) -> Value:
        """Statistics of the batch, mixed with those before."""
        axes, rows = tuple(i for i in range(x.ndim) if i != axis), wide(x)
        count = math.prod(x.shape[i] for i in axes)
        if not axes:
            axes, rows = (0,), rows.reshape(shape=(1, *x.shape))
        found = rows.mean(axes=axes), rows.var(axes=axes) * (count / max(count - 1, 1))
        moved = [
            (wide(old) * (1 - momentum) + new * momentum).cast(dtype=old.dtype)
            for old, new in zip((mean, variance), found, strict=True)
        ]
        return bundled(x.builder, [x.batch_norm(*parameters, axis=axis, eps=eps), *moved])
