"""Resizing by interpolation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, ShapeMismatch, counted
from engine.ir.graph import Builder, Value
from engine.ir.op import ResultTypes
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import FLOAT64, INT64, Shape, TensorType, normalise_axes, show_shape
from engine.ops.common.numerics import with_extent
from engine.ops.elementwise.base import Formula
from engine.ops.index.indices import axis_shape, take_slices

Method = Literal["nearest", "linear", "cubic"]

#: radius of each kernel, in distances between entries
_RADIUS: Final = {"nearest": 1, "linear": 1, "cubic": 2}


def source_positions(builder: Builder, extent: int, size: int, corners: bool) -> Value:
    """Return the positions of `size` new entries among `extent` old ones: float64 [size]."""
    numbers = builder.arange(size).cast(dtype=FLOAT64)
    if corners:
        return numbers * ((extent - 1) / (size - 1) if size > 1 else 0.0)
    return (numbers + 0.5) * (extent / size) - 0.5


def taps(method: Method, positions: Value, extent: int) -> Iterator[tuple[Value, Value]]:
    """Yield, tap by tap, the indices that entries at `positions` read, int64 [size], and their weights, float64 [size].

    Indices beyond an end are clamped to the end.
    """
    radius = _RADIUS[method]
    first = (positions + 0.5).floor() if method == "nearest" else positions.floor() - float(radius - 1)
    for tap in range(1 if method == "nearest" else 2 * radius):
        source = first + float(tap)
        yield source.clamp(min=0.0, max=float(extent - 1)).cast(dtype=INT64), _kernel(method, source - positions, -0.75)


def antialiasing_weights(method: Method, positions: Value, extent: int) -> Value:
    """Return the weight of each old entry in each new one, float64 [size, extent].

    Kernels are stretched to the distance between new entries. Entries beyond an end do not count: weights are
    normalised to sum to 1.
    """
    size = positions.shape[0]
    stretch = max(extent / max(size, 1), 1.0)
    old = positions.builder.arange(extent).cast(dtype=FLOAT64)
    offsets = old.reshape(shape=(1, extent)) - positions.reshape(shape=(size, 1))
    weights = _kernel(method, offsets * (1 / stretch), -0.5)
    return weights / weights.sum(axes=(1,), keepdims=True)


def _kernel(method: Method, offsets: Value, a: float) -> Value:
    """Evaluate a triangle or, for cubic, Keys's kernel with parameter `a`.

    R. Keys, "Cubic convolution interpolation for digital image processing" (1981).
    """
    distance = offsets.abs()
    if method != "cubic":
        return (1.0 - distance).clamp(min=0.0)
    inner = ((a + 2) * distance - (a + 3)) * distance.square() + 1.0
    outer = ((distance - 5.0) * distance + 8.0) * distance * a - 4 * a
    return (distance <= 1.0).where(inner, (distance < 2.0).where(outer, 0.0))


class Resize(Formula):
    """y = x resized to new extents on some axes, by interpolation.

    The centre of new entry i lies at (i + ½) · extent / size − ½; with `corners`, at i · (extent − 1) / (size − 1).
    `nearest` reads the nearest entry, `linear` two, and `cubic` four, with Keys's kernel and a = −0.75; beyond an end,
    the entry at that end is repeated. With `antialias`, kernels widen where the tensor shrinks, a is −0.5, and
    positions beyond an end are ignored. PyTorch: `interpolate` with modes nearest-exact, linear, bilinear, trilinear
    and bicubic, and with align_corners. JAX: `image.resize`, whose cubic always has a = −0.5, and which has no
    equivalent of `corners`.
    """

    name = "resize"
    section = "resize"
    operands = ("x",)
    since = 2
    attrs: ClassVar[Mapping[str, Attr]] = {
        "sizes": Attr("ints", doc="new extents", minimum=1),
        "axes": Attr("ints", None, "axes to resize; default: the last ones"),
        "method": Attr("string", "linear", "interpolation method", choices=("nearest", "linear", "cubic")),
        "antialias": Attr("bool", False, "whether to antialias where x shrinks; linear and cubic only"),
        "corners": Attr("bool", False, "whether to align the end entries; linear and cubic only, without antialias"),
    }
    gradient = "g times the weights of interpolation, added to the entries that were read"
    samples = (
        Sample(Real(2, 4), sizes=[7]),
        Sample(Real(3, 5), sizes=[4, 2], method="cubic"),
        Sample(Real(5, 2), sizes=[2], axes=[0], method="linear", antialias=True),
        Sample(Real(40), sizes=[3], method="cubic", antialias=True),
        Sample(Real(3, 2), sizes=[5], axes=[-2], corners=True),
        Sample(Real(2, 3, 2), sizes=[4, 5], axes=[1, 0], method="nearest"),
    )
    truths = (
        Truth(
            operands=[[0.0, 4.0]],
            attrs={"sizes": [4]},
            value=[0.0, 1.0, 3.0, 4.0],
            gradients=[[2.0, 2.0]],
            source="by hand: middles at -1/4, 1/4, 3/4 and 5/4",
        ),
        Truth(
            operands=[[0.0, 4.0]],
            attrs={"sizes": [3], "corners": True},
            value=[0.0, 2.0, 4.0],
            cotangent=[1.0, 2.0, 4.0],
            gradients=[[2.0, 5.0]],
            source="by hand",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Count the axes from the front. Raises BadAttribute, ShapeMismatch."""
        (x,), sizes = types, tuple(attrs["sizes"])
        _check_method(attrs)
        if attrs["axes"] is None and len(sizes) > x.ndim:
            expected, received = (
                f"at most {counted(x.ndim, 'entry', 'entries')}",
                counted(len(sizes), "entry", "entries"),
            )
            raise BadAttribute(
                f"attribute sizes must have {expected}, but has {received}",
                attribute="sizes",
                expected=expected,
                got=received,
            )
        given_axes = range(x.ndim - len(sizes), x.ndim) if attrs["axes"] is None else attrs["axes"]
        axes = tuple(normalise_axes(tuple(given_axes), x.ndim)) if sizes or attrs["axes"] else ()
        if len(axes) != len(sizes):
            expected, received = (
                f"{counted(len(axes), 'entry', 'entries')}, one for each entry of axes",
                str(len(sizes)),
            )
            raise BadAttribute(
                f"attribute sizes must have {expected}, but has {received}",
                attribute="sizes",
                expected=expected,
                got=received,
            )
        if any(not x.shape[a] for a in axes):
            received = show_shape(x.shape)
            raise ShapeMismatch(
                f"operand 0 (x) must have at least one entry on each resized axis, but has shape {received}",
                operand=0,
                expected="extents of at least 1",
                got=received,
            )
        return {**attrs, "sizes": sizes, "axes": axes}

    def infer(self, x: TensorType, *, sizes: Shape, axes: Shape, **attrs: Any) -> ResultTypes:
        """Return the type with the new extents."""
        shape = list(x.shape)
        for axis, size in zip(axes, sizes, strict=True):
            shape[axis] = size
        return x.with_shape(shape)

    def formula(self, x: Value, *, sizes: Shape, axes: Shape, method: Method, antialias: bool, corners: bool) -> Value:
        """Resize one axis after another."""
        for axis, size in zip(axes, sizes, strict=True):
            x = _resize_axis(x, axis, size, method, antialias, corners)
        return x


def _check_method(attrs: Mapping[str, Any]) -> None:
    method, antialias, corners = attrs["method"], attrs["antialias"], attrs["corners"]
    if method == "nearest" and (antialias or corners):
        name = "antialias" if antialias else "corners"
        raise BadAttribute(
            f"attribute {name} requires method linear or cubic", attribute=name, expected="false", got="true"
        )
    if antialias and corners:
        raise BadAttribute(
            "attribute corners cannot be combined with antialias", attribute="corners", expected="false", got="true"
        )


def _resize_axis(x: Value, axis: int, size: int, method: Method, antialias: bool, corners: bool) -> Value:
    extent = x.shape[axis]
    if size == extent:
        return x
    positions = source_positions(x.builder, extent, size, corners)
    if antialias:
        weights, before, after = (
            antialiasing_weights(method, positions, extent),
            math.prod(x.shape[:axis]),
            math.prod(x.shape[axis + 1 :]),
        )
        rows = weights.cast(dtype=x.dtype) @ x.reshape(shape=(before, extent, after))
        return rows.reshape(shape=with_extent(x.shape, axis, size))
    y: Value | None = None
    for indices, weights in taps(method, positions, extent):
        read = take_slices(x, indices, axis)
        if method != "nearest":
            read = read * weights.cast(dtype=x.dtype).reshape(shape=axis_shape(x.ndim, axis, size))
        y = read if y is None else y + read
    assert y is not None
    return y
