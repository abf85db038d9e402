"""Ops that relabel axes without moving elements: reshape and its variants, broadcast_to, transpose."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, ShapeMismatch, counted
from engine.ir.graph import Value, inverse
from engine.ir.op import Array, Composite, Namespace, ResultTypes, View
from engine.ir.sample import Real, Sample
from engine.ir.tensor_type import DTYPES, Shape, TensorType, normalise_axes, show_shape
from engine.ops.common.batching import shift_axes
from engine.ops.common.numerics import require_axes
from engine.ops.common.support import Indicated
from engine.ops.elementwise.base import unbroadcast
from engine.ops.rewrites import (
    broadcast_of_broadcast,
    reshape_of_reshape,
    reshape_of_sum,
    transpose_of_product,
    transpose_of_transpose,
    trivial_transpose,
)


class Reshape(Indicated, View):
    """y holds x's elements, in row-major order, in another shape; one extent may be −1 and is inferred.

    An absent or empty `shape` makes a 0-d tensor. `original_shape`, if given, must be x's shape.
    """

    name = "reshape"
    section = "reshape"
    propagates_constant = True
    aliases = {"ReshapeOp": "born", "Reshape": "born, cjc, minima"}
    operands = ("x",)
    dtypes = DTYPES
    attrs = {
        "shape": Attr("ints", (), "shape of the result; one extent may be -1 and is inferred", minimum=-1),
        "original_shape": Attr("ints", None, "x's shape, checked if given"),
    }
    gradient = "g, reshaped back"
    rewrites = (reshape_of_reshape, reshape_of_sum)
    reshapes = True
    samples = (
        Sample(Real(2, 3), shape=[3, -1]),
        Sample(Real(2, 3), shape=[6], original_shape=[2, 3]),
        Sample(Real(1, 1)),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Resolve −1, and check and drop `original_shape`. Raises ShapeMismatch."""
        shape, original = types[0].shape, attrs["original_shape"]
        if original is not None and tuple(original) != shape:
            expected, received = show_shape(original), show_shape(shape)
            raise ShapeMismatch(
                f"original_shape is {expected}, but the operand has shape {received}",
                attribute="original_shape",
                expected=expected,
                got=received,
            )
        return {"shape": _resolve_shape(tuple(attrs["shape"]), shape), "original_shape": None}

    def infer(self, x: TensorType, *, shape: Shape, original_shape: None) -> ResultTypes:
        """Return x's dtype with `shape`."""
        return x.with_shape(shape)

    def view(self, xp: Namespace, x: Array, *, shape: Shape, **attrs: Any) -> Array:
        """Reshape: a view, since x is contiguous."""
        return x.reshape(shape)

    def vjp(self, g: Value, y: Value, x: Value, **attrs: Any) -> Sequence[Value | None]:
        """Reshape g back."""
        return (g.reshape(shape=x.shape),)

    def batch(self, mapped: Sequence[bool], x: Value, *, shape: Shape, **attrs: Any) -> Value:
        """Keep the axis N in front."""
        return x.reshape(shape=(x.shape[0], *shape))


def _resolve_shape(target: Shape, shape: Shape) -> Shape:
    free, size = target.count(-1), math.prod(shape)
    if free > 1:
        received = show_shape(target)
        raise BadAttribute(
            f"shape may contain only one -1, but is {received}",
            attribute="shape",
            expected="at most one -1",
            got=received,
        )
    known = math.prod(e for e in target if e != -1)
    if free and known and size % known == 0:
        return tuple(size // known if e == -1 else e for e in target)
    if free or known != size:
        elements = counted(size, "element")
        raise ShapeMismatch(
            f"shape {show_shape(shape)} has {elements} and cannot be reshaped to {show_shape(target)}",
            operand=0,
            expected=elements,
            got=show_shape(target),
        )
    return target


class BroadcastTo(Indicated, View):
    """y = x repeated along new leading axes and along axes of extent 1, to `shape`, by NumPy's rules."""

    name = "broadcast_to"
    section = "reshape"
    propagates_constant = True
    aliases = {"Expand": "born", "BroadcastTo": "minima", "BroadcastScalar": "cjc"}
    operands = ("x",)
    dtypes = DTYPES
    attrs = {"shape": Attr("ints", (), "shape of the result", minimum=0)}
    gradient = "g, summed over the repeated axes"
    rewrites = (broadcast_of_broadcast,)
    samples = (Sample(Real(3), shape=[2, 3]), Sample(Real(2, 1), shape=[2, 3]), Sample(Real(), shape=[]))

    def infer(self, x: TensorType, *, shape: Shape) -> ResultTypes:
        """Return x's dtype with `shape`. Raises ShapeMismatch if x does not broadcast to it."""
        lead = len(shape) - x.ndim
        if lead < 0 or any(e not in (1, s) for e, s in zip(x.shape, shape[lead:], strict=True)):
            expected, received = show_shape(shape), show_shape(x.shape)
            raise ShapeMismatch(
                f"shape {received} does not broadcast to {expected}", operand=0, expected=expected, got=received
            )
        return x.with_shape(shape)

    def view(self, xp: Namespace, x: Array, *, shape: Shape) -> Array:
        """Broadcast: a view with strides of zero."""
        return xp.broadcast_to(x, shape)

    def vjp(self, g: Value, y: Value, x: Value, **attrs: Any) -> Sequence[Value | None]:
        """Sum g over the repeated axes."""
        return (unbroadcast(g, x),)

    def batch(self, mapped: Sequence[bool], x: Value, *, shape: Shape) -> Value:
        """Keep the axis N in front, followed by unit axes if x has a lower rank."""
        n, *inner = x.shape
        aligned = x.reshape(shape=(n, *[1] * (len(shape) - len(inner)), *inner))
        return aligned.broadcast_to(shape=(n, *shape))


class Transpose(Indicated, View):
    """y = x with its axes permuted.

    y's axis i is x's axis axes[i]. Without `axes`, the last two axes are swapped (born reverses all axes: for that,
    pass `axes`). If x does not have rank 2, two entries swap those two axes (minima).
    """

    name = "transpose"
    section = "reshape"
    aliases = {"TransposeOp": "born", "Transpose": "born, cjc, minima"}
    operands = ("x",)
    dtypes = DTYPES
    attrs = {"axes": Attr("ints", None, "permutation, or two axes to swap; default: the last two")}
    gradient = "g, permuted back"
    rewrites = (trivial_transpose, transpose_of_transpose, transpose_of_product)
    samples = (
        Sample(Real(2, 3)),
        Sample(Real(2, 3, 4), axes=[2, 0, 1]),
        Sample(Real(2, 3, 4), axes=[0, -1]),
        Sample(Real(3), axes=[0]),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Expand `axes` to a full permutation. Raises BadAttribute, ShapeMismatch."""
        if not attrs["axes"]:
            require_axes(types[0], 2, "to swap the last two")
        return {"axes": _permutation(attrs["axes"], types[0].ndim)}

    def infer(self, x: TensorType, *, axes: Sequence[int]) -> ResultTypes:
        """Return x's type with permuted extents."""
        return x.with_shape(tuple(x.shape[a] for a in axes))

    def view(self, xp: Namespace, x: Array, *, axes: Sequence[int]) -> Array:
        """Transpose: a view with permuted strides."""
        return x.transpose(axes)

    def leading_part(self, read: Shape, operand: Shape, attrs: Mapping[str, Any]) -> Shape:
        """Permute the extents read back to the operand's axes."""
        extents = dict(zip(attrs["axes"], read, strict=True))
        return tuple(extents[axis] for axis in range(len(operand)))

    def vjp(self, g: Value, y: Value, x: Value, *, axes: Sequence[int]) -> Sequence[Value | None]:
        """Apply the inverse permutation to g."""
        return (g.transpose(axes=inverse(axes)),)

    def batch(self, mapped: Sequence[bool], x: Value, *, axes: Sequence[int]) -> Value:
        """Keep the axis N in front."""
        return x.transpose(axes=(0, *shift_axes(axes)))


def _permutation(axes: Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    if not axes:
        return _swap_axes((ndim - 2, ndim - 1), ndim)
    normalised = normalise_axes(axes, ndim)
    if len(normalised) == ndim:
        return normalised
    if len(normalised) == 2:
        return _swap_axes(normalised, ndim)
    expected = f"a permutation of {ndim} axes, or two axes to swap"
    received = show_shape(axes)
    raise BadAttribute(f"axes must be {expected}, but is {received}", attribute="axes", expected=expected, got=received)


def _swap_axes(pair: Sequence[int], ndim: int) -> tuple[int, ...]:
    first, second = pair
    return tuple(second if i == first else first if i == second else i for i in range(ndim))


class Relabelled(Composite):
    """Base: x reshaped. A subclass defines `relabel`, which returns the shape of the result."""

    section = "squeeze"
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    gradient: ClassVar[str] = "g, reshaped back"

    @abstractmethod
    def relabel(self, shape: Shape, axes: Sequence[int]) -> Shape:
        """Return the result's shape for an operand of `shape`."""

    def infer(self, x: TensorType, *, axes: Sequence[int]) -> ResultTypes:
        """Return x's dtype with the new shape."""
        return x.with_shape(self.relabel(x.shape, axes))

    def compose(self, x: Value, *, axes: Sequence[int]) -> Value:
        """Write a reshape."""
        return x.reshape(shape=self.relabel(x.shape, axes))


class Squeeze(Relabelled):
    """y = x without `axes`, each of which must have extent 1; by default, without all axes of extent 1."""

    name = "squeeze"
    aliases: ClassVar[Mapping[str, str]] = {"Squeeze": "born"}
    attrs = {"axes": Attr("ints", None, "axes of extent 1 to remove; default: all of them")}
    samples = (Sample(Real(1, 3, 1)), Sample(Real(1, 3, 1), axes=[-1]), Sample(Real(2)), Sample(Real()))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Sort `axes`, counted from the front. Raises BadAttribute, ShapeMismatch."""
        shape = types[0].shape
        if not attrs["axes"]:
            return {"axes": tuple(i for i, extent in enumerate(shape) if extent == 1)}
        axes = tuple(sorted(normalise_axes(attrs["axes"], len(shape))))
        for axis in axes:
            _check_unit(shape, axis)
        return {"axes": axes}

    def relabel(self, shape: Shape, axes: Sequence[int]) -> Shape:
        """Drop the axes."""
        return tuple(extent for i, extent in enumerate(shape) if i not in axes)


def _check_unit(shape: Shape, axis: int) -> None:
    if shape[axis] != 1:
        raise ShapeMismatch(
            f"axis {axis} has extent {shape[axis]}, and only an axis of extent 1 can be squeezed",
            operand=0,
            expected="extent 1",
            got=f"extent {shape[axis]}",
        )


class Unsqueeze(Relabelled):
    """y = x with axes of extent 1 inserted; `axes` are their positions in the result."""

    name = "unsqueeze"
    aliases: ClassVar[Mapping[str, str]] = {"Unsqueeze": "born"}
    attrs = {"axes": Attr("ints", None, "positions of the new axes in the result; must be given")}
    samples = (Sample(Real(2, 3), axes=[0]), Sample(Real(2, 3), axes=[-1, 1]), Sample(Real(), axes=[0]))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Sort `axes`, counted from the front of the result. Raises BadAttribute."""
        if not attrs["axes"]:
            raise BadAttribute("attribute axes is required", attribute="axes", expected="axes", got="nothing")
        rank = types[0].ndim + len(attrs["axes"])
        return {"axes": tuple(sorted(normalise_axes(attrs["axes"], rank)))}

    def relabel(self, shape: Shape, axes: Sequence[int]) -> Shape:
        """Insert extents of 1 at `axes`."""
        extents = iter(shape)
        return tuple(1 if i in axes else next(extents) for i in range(len(shape) + len(axes)))


class Flatten(Relabelled):
    """y = x with adjacent axes merged into one; by default, all axes. A 0-d tensor becomes [1]."""

    name = "flatten"
    attrs = {"axes": Attr("ints", None, "adjacent axes to merge; default: all")}
    samples = (Sample(Real(2, 3)), Sample(Real(2, 3, 2, 2), axes=[1, -2]), Sample(Real()), Sample(Real(2, 3), axes=[1]))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Sort `axes`, counted from the front. Raises BadAttribute unless they are adjacent."""
        axes = tuple(sorted(normalise_axes(attrs["axes"], types[0].ndim)))
        if axes and axes != tuple(range(axes[0], axes[-1] + 1)):
            expected, received = "neighbouring axes, such as [1, 2]", show_shape(attrs["axes"])
            raise BadAttribute(
                f"attribute axes must be {expected}, but is {received}",
                attribute="axes",
                expected=expected,
                got=received,
            )
        return {"axes": axes}

    def relabel(self, shape: Shape, axes: Sequence[int]) -> Shape:
        """Replace the adjacent axes by one."""
        first, last = (axes[0], axes[-1] + 1) if axes else (0, 0)
        return (*shape[:first], math.prod(shape[first:last]), *shape[last:])
