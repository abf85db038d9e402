"""Sliding windows over the trailing axes of a tensor: how many there are, and which elements each of them sees.

Everything holds for any number of spatial axes. A window has `size` taps along each axis, `dilation` apart; windows
are `stride` apart, and the first one begins `padding` before the first element, or behind it where that is negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

from engine.ir.errors import BadAttribute, ShapeMismatch
from engine.ir.graph import Value
from engine.ir.op import Array, Namespace
from engine.ir.tensor_type import Shape, TensorType, show_shape
from engine.ops.common.numerics import wrong_shape
from engine.ops.index.indices import read_at


@dataclass(frozen=True, slots=True)
class Windows:
    """The shape and the placing of windows, one number for each spatial axis."""

    size: Shape
    stride: Shape
    padding: Shape
    dilation: Shape

    @property
    def placing(self) -> dict[str, Shape]:
        """The attributes of a convolution that say so."""
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}

    @property
    def taps(self) -> int:
        """Elements that one window sees."""
        return math.prod(self.size)

    @property
    def reach(self) -> Shape:
        """Extents that one window spans, from its first tap to its last."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.size, self.dilation, strict=True))

    def padded(self, extents: Sequence[int]) -> Shape:
        """`extents` with the padding on both sides."""
        return tuple(e + 2 * p for e, p in zip(extents, self.padding, strict=True))

    def positions(self, extents: Sequence[int]) -> Shape:
        """How many windows fit along each axis of a tensor of these `extents`; below 1 where none does."""
        spans = zip(self.padded(extents), self.reach, self.stride, strict=True)
        return tuple((e - r) // s + 1 for e, r, s in spans)

    def span(self, positions: Sequence[int]) -> Shape:
        """Extents from the first tap of the first of this many windows to the last tap of the last."""
        return tuple((n - 1) * s + r for n, s, r in zip(positions, self.stride, self.reach, strict=True))

    def cover(self, positions: Sequence[int]) -> Shape:
        """Extents, without padding, of the smallest tensor in which this many windows fit."""
        return tuple(e - 2 * p for e, p in zip(self.span(positions), self.padding, strict=True))

    def met(self, extents: Sequence[int], positions: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The elements within the span of the windows, and where in it they lie."""
        axes = zip(extents, self.span(positions), self.padding, strict=True)
        ranges = [(max(0, -p), max(0, -p, min(e, n - p)), p) for e, n, p in axes]
        return tuple(slice(a, b) for a, b, _ in ranges), tuple(slice(a + p, b + p) for a, b, p in ranges)

    def meetings(self, axis: int, extent: int, count: int) -> Iterator[tuple[int, slice, slice]]:
        """For each tap along `axis`: the windows, of `count`, at which it lies within `extent`, and the elements."""
        stride, padding, dilation = self.stride[axis], self.padding[axis], self.dilation[axis]
        first = max(0, -(((count - 1) * stride - padding) // dilation))
        for tap in range(first, min(self.size[axis], (extent - 1 + padding) // dilation + 1)):
            offset = tap * dilation - padding
            begin, end = max(0, -(offset // stride)), min(count - 1, (extent - 1 - offset) // stride)
            if begin <= end:
                yield tap, slice(begin, end + 1), slice(begin * stride + offset, end * stride + offset + 1, stride)

    def all_meetings(self, extents: Sequence[int], positions: Sequence[int]) -> Iterator[Sequence[tuple[Any, ...]]]:
        """`meetings` of all axes together: taps, windows, and elements, as they index arrays."""
        each = (list(self.meetings(*axis)) for axis in zip(range(len(self.size)), extents, positions, strict=True))
        return (tuple(zip(*met, strict=True)) for met in product(*each))

    def from_window(self, axis: int, number: int) -> Windows:
        """These windows from one of them on, along `axis`."""
        moved = (
            p - number * s if i == axis else p for i, (p, s) in enumerate(zip(self.padding, self.stride, strict=True))
        )
        return replace(self, padding=tuple(moved))

    def exchanged(self, positions: Shape) -> Windows:
        """Taps as windows, and these windows as taps."""
        return Windows(positions, self.dilation, self.padding, self.stride)

    def on_axes(self, rank: int) -> Windows:
        """The same windows over `rank` axes, with axes of one element in front."""
        more = rank - len(self.size)
        ones, zeros = (1,) * more, (0,) * more
        return Windows(ones + self.size, ones + self.stride, zeros + self.padding, ones + self.dilation)

    def least(self, extents: Sequence[int]) -> Self:
        """The same windows over a tensor of these `extents`, placed by the least numbers that say so.

        A single tap has no neighbour to be apart from; a single window moves as far as no second one
        fits behind it; and beside the tensor it lies next to it. Then no number is larger than the extents and the
        windows' span together. Of windows that do not fit, the same.
        """
        axes = zip(self.size, self.stride, self.padding, self.dilation, extents, strict=True)
        return type(self)(self.size, *zip(*(_least(*axis) for axis in axes), strict=True))

    def least_spread(self, positions: Sequence[int], more: Sequence[int]) -> tuple[Self, Shape]:
        """Return `least` for windows at `positions` that spread over a tensor, with `more` elements behind the last.

        `more` stays less than the larger of the two distances, as it is: where nothing else is felt of one, it is so
        much larger.
        """
        axes = zip(self.size, self.stride, self.padding, self.dilation, positions, more, strict=True)
        *placing, behind = zip(*(_least_spread(*axis) for axis in axes), strict=True)
        return type(self)(self.size, *placing), behind

    def view(self, xp: Namespace, spanned: Array, positions: Sequence[int]) -> Array:
        """An array [..., *span] as [..., *size, *positions]: what each tap sees at each position."""
        rank = len(self.size)
        lead, steps = spanned.strides[:-rank], spanned.strides[-rank:]
        shape = (*spanned.shape[:-rank], *self.size, *positions)
        strides = (*lead, *_strides(steps, self.dilation, self.size), *_strides(steps, self.stride, positions))
        return xp.lib.stride_tricks.as_strided(spanned, shape, strides)


def _least(size: int, stride: int, padding: int, dilation: int, extent: int) -> tuple[int, int, int]:
    dilation = dilation if size > 1 else 1
    reach = dilation * (size - 1) + 1
    if not 0 <= extent + 2 * padding - reach < stride:
        return stride, padding, dilation
    padding = min(padding, reach)
    return extent + 2 * padding - reach + 1, padding, dilation


def _least_spread(
    size: int, stride: int, padding: int, dilation: int, positions: int, more: int
) -> tuple[int, int, int, int]:
    stride, dilation = stride if positions > 1 else 1, dilation if size > 1 else 1
    lost = max(0, padding - (positions - 1) * stride - dilation * (size - 1) - 1)
    padding, more = padding - lost, more - 2 * lost
    if more >= max(stride, dilation):
        stride, dilation = (more + 1, dilation) if positions == 1 else (stride, more + 1)
    return stride, padding, dilation, more


def _strides(steps: Sequence[int], factors: Sequence[int], counts: Sequence[int]) -> Shape:
    # An axis of one entry is never stepped along, and its factor may be as large as a client likes.
    return tuple(b * f if n > 1 else 0 for b, f, n in zip(steps, factors, counts, strict=True))


def check_spatial(name: str, numbers: Sequence[int], rank: int = 2) -> None:
    """Raise BadAttribute unless there is one number for each of the `rank` spatial axes."""
    if len(numbers) != rank:
        axes = f"each of the {rank} spatial axes" if rank > 1 else "the spatial axis"
        wanted, got = f"one number for {axes}", show_shape(numbers)
        raise BadAttribute(f"attribute {name} must hold {wanted}, but is {got}", expected=wanted, got=got)


def check_ranks(x: TensorType, kernel: TensorType, rank: int, channels: str) -> None:
    """Raise ShapeMismatch unless both have two axes and then `rank` spatial ones; `channels` names the kernel's two."""
    spatial = "dhw"[-rank:]
    images, taps = ", ".join(spatial), ", ".join(f"k{axis}" for axis in spatial)
    for i, name, type, axes in ((0, "x", x, f"n, channels, {images}"), (1, "kernel", kernel, f"{channels}, {taps}")):
        if type.ndim != rank + 2:
            raise wrong_shape(i, name, f"rank {rank + 2}, [{axes}]", type)


def check_groups(groups: int, count: int, what: str) -> None:
    """Raise BadAttribute unless `what`, of which there are `count`, can be cut into equal groups."""
    if count % groups:
        wanted = f"a divisor of {count}, the number of {what}"
        raise BadAttribute(f"attribute groups must be {wanted}, but is {groups}", expected=wanted, got=str(groups))


def check_fits(windows: Windows, extents: Sequence[int], operand: int = 0) -> None:
    """Raise ShapeMismatch unless windows are not empty and at least one fits along each axis of x, the `operand`."""
    check_size(windows)
    if min(windows.positions(extents)) < 1:
        padded, reach = show_shape(windows.padded(extents)), show_shape(windows.reach)
        raise ShapeMismatch(
            f"the windows span {reach}, more than the extents {padded} of operand {operand} (x) with its padding",
            operand=operand,
            expected=f"padded extents of at least {reach}",
            got=padded,
        )


def check_size(windows: Windows) -> None:
    """Raise ShapeMismatch for a kernel without taps."""
    if not windows.taps:
        got = show_shape(windows.size)
        raise ShapeMismatch(
            f"operand 1 (kernel) must have taps, but its spatial extents are {got}",
            operand=1,
            expected="spatial extents of at least 1",
            got=got,
        )


def check_spread(windows: Windows, positions: Sequence[int], output_padding: Sequence[int]) -> None:
    """Raise ShapeMismatch or BadAttribute unless a result can be laid out from windows at `positions`."""
    check_size(windows)
    if min(positions) < 1:
        got = show_shape(positions)
        raise ShapeMismatch(
            f"operand 0 (x) must have spatial extents of at least 1, but they are {got}",
            operand=0,
            expected="spatial extents of at least 1",
            got=got,
        )
    below = [max(s, d) for s, d in zip(windows.stride, windows.dilation, strict=True)]
    if any(o >= b for o, b in zip(output_padding, below, strict=True)):
        wanted, shown = f"below {show_shape(below)}, the larger of stride and dilation", show_shape(output_padding)
        raise BadAttribute(f"attribute output_padding must be {wanted}, but is {shown}", expected=wanted, got=shown)


def check_extents(extents: Sequence[int], padding: Sequence[int]) -> None:
    """Raise BadAttribute where the padding takes away more than there is."""
    if min(extents) < 0:
        got = show_shape(padding)
        raise BadAttribute(
            f"attribute padding is {got}, which takes away more than the result has: its extents would be "
            f"{show_shape(extents)}",
            expected="padding that leaves extents of at least 0",
            got=got,
        )


def windows_at(x: Value, axis: int, places: Value) -> Value:
    """x with `axis` replaced by two, those of `places` int64 [windows, taps], at which it is read."""
    count, taps = places.shape
    read = read_at(x, places.reshape(shape=(count * taps,)), axis)
    return read.reshape(shape=(*x.shape[:axis], count, taps, *x.shape[axis + 1 :]))


def first_largest(windows: Value, axis: int) -> Value:
    """The largest along `axis`, NaN before all; of equal ones the first takes the gradient."""
    found = windows.argmax(axis=axis, keepdims=True)
    return windows.gather(found, axis=axis).squeeze(axes=(axis,))


def regular_places(x: Value, count: int, taps: int, stride: int, dilation: int) -> Value:
    """The places i · stride + t · dilation of window i's tap t: int64 [count, taps]."""
    starts = x.builder.arange(count * stride, step=stride).reshape(shape=(count, 1))
    return starts.add(x.builder.arange(taps * dilation, step=dilation).reshape(shape=(1, taps)))


def adaptive_ranges(x: Value, extent: int, count: int) -> tuple[Value, Value]:
    """Return the start ⌊i · extent / count⌋ and the end of each of `count` windows over an axis: int64 [count, 1]."""
    numbers = x.builder.arange(count).reshape(shape=(count, 1))
    ends = numbers.add(1).mul(extent).add(count - 1)
    return numbers.mul(extent).floor_div(count), ends.floor_div(count)
