"""Sliding windows over the trailing axes of a tensor: how many there are, and which elements each one sees.

All functions work for any number of spatial axes. A window has `size` taps along each axis, `dilation` apart. Windows
are `stride` apart, and the first begins `padding` before the first element, or after it if padding is negative.
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
from engine.ops.index.indices import take_slices


@dataclass(frozen=True, slots=True)
class Windows:
    """Shape and placement of windows, with one number per spatial axis."""

    size: Shape
    stride: Shape
    padding: Shape
    dilation: Shape

    @property
    def placing(self) -> dict[str, Shape]:
        """Stride, padding and dilation as the attributes of a convolution."""
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}

    @property
    def taps(self) -> int:
        """Number of elements that one window sees."""
        return math.prod(self.size)

    @property
    def reach(self) -> Shape:
        """Extent of one window along each axis, from its first tap to its last."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.size, self.dilation, strict=True))

    def padded(self, extents: Sequence[int]) -> Shape:
        """Add the padding to both sides of `extents`."""
        return tuple(e + 2 * p for e, p in zip(extents, self.padding, strict=True))

    def positions(self, extents: Sequence[int]) -> Shape:
        """Count the windows that fit along each axis of a tensor of these `extents`; below 1 if none does."""
        spans = zip(self.padded(extents), self.reach, self.stride, strict=True)
        return tuple((e - r) // s + 1 for e, r, s in spans)

    def span(self, positions: Sequence[int]) -> Shape:
        """Return the extents from the first tap of the first window to the last tap of the last."""
        return tuple((n - 1) * s + r for n, s, r in zip(positions, self.stride, self.reach, strict=True))

    def cover(self, positions: Sequence[int]) -> Shape:
        """Return the extents, without padding, of the smallest tensor in which this many windows fit."""
        return tuple(e - 2 * p for e, p in zip(self.span(positions), self.padding, strict=True))

    def overlap(self, extents: Sequence[int], positions: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Return the elements within the span of the windows, and their location in that span."""
        axes = zip(extents, self.span(positions), self.padding, strict=True)
        ranges = [(max(0, -p), max(0, -p, min(e, n - p)), p) for e, n, p in axes]
        return tuple(slice(a, b) for a, b, _ in ranges), tuple(slice(a + p, b + p) for a, b, p in ranges)

    def tap_slices(self, axis: int, extent: int, count: int) -> Iterator[tuple[int, slice, slice]]:
        """Yield each tap along `axis`, the windows, of `count`, in which it lies within `extent`, and its elements."""
        stride, padding, dilation = self.stride[axis], self.padding[axis], self.dilation[axis]
        first = max(0, -(((count - 1) * stride - padding) // dilation))
        for tap in range(first, min(self.size[axis], (extent - 1 + padding) // dilation + 1)):
            offset = tap * dilation - padding
            begin, end = max(0, -(offset // stride)), min(count - 1, (extent - 1 - offset) // stride)
            if begin <= end:
                yield tap, slice(begin, end + 1), slice(begin * stride + offset, end * stride + offset + 1, stride)

    def all_tap_slices(self, extents: Sequence[int], positions: Sequence[int]) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Combine `tap_slices` of all axes: yield taps, windows and elements as array indices."""
        per_axis = (
            list(self.tap_slices(*axis)) for axis in zip(range(len(self.size)), extents, positions, strict=True)
        )
        return (tuple(zip(*combination, strict=True)) for combination in product(*per_axis))

    def from_window(self, axis: int, number: int) -> Windows:
        """Return the windows that start at number `number` along `axis`."""
        new_padding = (
            p - number * s if i == axis else p for i, (p, s) in enumerate(zip(self.padding, self.stride, strict=True))
        )
        return replace(self, padding=tuple(new_padding))

    def exchanged(self, positions: Shape) -> Windows:
        """Exchange the roles of taps and positions."""
        return Windows(positions, self.dilation, self.padding, self.stride)

    def on_axes(self, rank: int) -> Windows:
        """Return the same windows over `rank` axes, with axes of one element in front."""
        new_axes = rank - len(self.size)
        ones, zeros = (1,) * new_axes, (0,) * new_axes
        return Windows(ones + self.size, ones + self.stride, zeros + self.padding, ones + self.dilation)

    def canonical_placing(self, extents: Sequence[int]) -> Self:
        """Return the same windows over a tensor of these `extents`, placed by the smallest equivalent numbers.

        A single tap needs no dilation. A single window gets the smallest stride with which no second window fits,
        and if it lies in the padding alone, it is moved next to the tensor. No number then exceeds the sum of the
        extents and the windows' span. Windows that do not fit are returned unchanged.
        """
        axes = zip(self.size, self.stride, self.padding, self.dilation, extents, strict=True)
        return type(self)(self.size, *zip(*(_canonical_placing(*axis) for axis in axes), strict=True))

    def canonical_spread(self, positions: Sequence[int], extra: Sequence[int]) -> tuple[Self, Shape]:
        """Return `canonical_placing` for windows at `positions` over a tensor with `extra` elements after the last.

        `extra` has to stay below the larger of stride and dilation, as convolutions require it of output_padding. If
        one of them has no effect otherwise, it is increased as far as necessary.
        """
        axes = zip(self.size, self.stride, self.padding, self.dilation, positions, extra, strict=True)
        *placing, new_extra = zip(*(_canonical_spread(*axis) for axis in axes), strict=True)
        return type(self)(self.size, *placing), new_extra

    def view(self, xp: Namespace, spanned: Array, positions: Sequence[int]) -> Array:
        """View an array [..., *span] as [..., *size, *positions]: the element of each tap at each position."""
        rank = len(self.size)
        lead, steps = spanned.strides[:-rank], spanned.strides[-rank:]
        shape = (*spanned.shape[:-rank], *self.size, *positions)
        strides = (*lead, *_strides(steps, self.dilation, self.size), *_strides(steps, self.stride, positions))
        return xp.lib.stride_tricks.as_strided(spanned, shape, strides)


def _canonical_placing(size: int, stride: int, padding: int, dilation: int, extent: int) -> tuple[int, int, int]:
    dilation = dilation if size > 1 else 1
    reach = dilation * (size - 1) + 1
    # unless exactly one window fits, the stride cannot change
    if not 0 <= extent + 2 * padding - reach < stride:
        return stride, padding, dilation
    # a window with `reach` of padding before it sees zeros only, as one with more padding does
    padding = min(padding, reach)
    return extent + 2 * padding - reach + 1, padding, dilation


def _canonical_spread(
    size: int, stride: int, padding: int, dilation: int, positions: int, extra: int
) -> tuple[int, int, int, int]:
    stride, dilation = stride if positions > 1 else 1, dilation if size > 1 else 1
    # the padding removes elements on both sides: beyond the windows' span it can be taken off `extra` instead
    unused = max(0, padding - (positions - 1) * stride - dilation * (size - 1) - 1)
    padding, extra = padding - unused, extra - 2 * unused
    if extra >= max(stride, dilation):
        stride, dilation = (extra + 1, dilation) if positions == 1 else (stride, extra + 1)
    return stride, padding, dilation, extra


def _strides(steps: Sequence[int], factors: Sequence[int], counts: Sequence[int]) -> Shape:
    # The stride of an axis with one entry is never used, and its factor may be arbitrarily large in a client's graph.
    return tuple(b * f if n > 1 else 0 for b, f, n in zip(steps, factors, counts, strict=True))


def check_spatial(name: str, numbers: Sequence[int], rank: int = 2) -> None:
    """Raise BadAttribute unless there is one number for each of the `rank` spatial axes."""
    if len(numbers) != rank:
        axes = f"each of the {rank} spatial axes" if rank > 1 else "the spatial axis"
        expected, received = f"one number for {axes}", show_shape(numbers)
        raise BadAttribute(
            f"attribute {name} must hold {expected}, but is {received}", attribute=name, expected=expected, got=received
        )


def check_ranks(x: TensorType, kernel: TensorType, rank: int, channels: str) -> None:
    """Raise ShapeMismatch unless x and kernel have two axes and then `rank` spatial ones.

    `channels` names the kernel's first two axes.
    """
    spatial = "dhw"[-rank:]
    images, taps = ", ".join(spatial), ", ".join(f"k{axis}" for axis in spatial)
    for i, name, type, axes in ((0, "x", x, f"n, channels, {images}"), (1, "kernel", kernel, f"{channels}, {taps}")):
        if type.ndim != rank + 2:
            raise wrong_shape(i, name, f"rank {rank + 2}, [{axes}]", type)


def check_groups(groups: int, count: int, noun: str) -> None:
    """Raise BadAttribute unless `count` divides into equal groups. `noun` names the counted things in the message."""
    if count % groups:
        expected = f"a divisor of {count}, the number of {noun}"
        raise BadAttribute(
            f"attribute groups must be {expected}, but is {groups}",
            attribute="groups",
            expected=expected,
            got=str(groups),
        )


def check_fits(windows: Windows, extents: Sequence[int], operand: int = 0) -> None:
    """Raise ShapeMismatch unless windows have taps and at least one fits along each axis of x, number `operand`."""
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
        received = show_shape(windows.size)
        raise ShapeMismatch(
            f"operand 1 (kernel) must have taps, but its spatial extents are {received}",
            operand=1,
            expected="spatial extents of at least 1",
            got=received,
        )


def check_spread(windows: Windows, positions: Sequence[int], output_padding: Sequence[int]) -> None:
    """Raise ShapeMismatch or BadAttribute unless windows at `positions` determine a result."""
    check_size(windows)
    if min(positions) < 1:
        received = show_shape(positions)
        raise ShapeMismatch(
            f"operand 0 (x) must have spatial extents of at least 1, but they are {received}",
            operand=0,
            expected="spatial extents of at least 1",
            got=received,
        )
    limits = [max(s, d) for s, d in zip(windows.stride, windows.dilation, strict=True)]
    if any(o >= b for o, b in zip(output_padding, limits, strict=True)):
        expected, received_padding = (
            f"below {show_shape(limits)}, the larger of stride and dilation",
            show_shape(output_padding),
        )
        raise BadAttribute(
            f"attribute output_padding must be {expected}, but is {received_padding}",
            attribute="output_padding",
            expected=expected,
            got=received_padding,
        )


def check_extents(extents: Sequence[int], padding: Sequence[int]) -> None:
    """Raise BadAttribute if the padding removes more than there is."""
    if min(extents) < 0:
        received = show_shape(padding)
        raise BadAttribute(
            f"attribute padding is {received}, which is larger than the result: its extents would be "
            f"{show_shape(extents)}",
            attribute="padding",
            expected="padding that leaves extents of at least 0",
            got=received,
        )


def gather_windows(x: Value, axis: int, positions: Value) -> Value:
    """Read x along `axis` at `positions`, int64 [windows, taps], whose two axes replace it."""
    count, taps = positions.shape
    read = take_slices(x, positions.reshape(shape=(count * taps,)), axis)
    return read.reshape(shape=(*x.shape[:axis], count, taps, *x.shape[axis + 1 :]))


def first_max(windows: Value, axis: int) -> Value:
    """Return the largest along `axis`, NaN first; among equal ones, the first gets the gradient."""
    index = windows.argmax(axis=axis, keepdims=True)
    return windows.gather(index, axis=axis).squeeze(axes=(axis,))


def tap_positions(x: Value, count: int, taps: int, stride: int, dilation: int) -> Value:
    """Return the positions i · stride + t · dilation of tap t of window i: int64 [count, taps]."""
    starts = x.builder.arange(count * stride, step=stride).reshape(shape=(count, 1))
    return starts.add(x.builder.arange(taps * dilation, step=dilation).reshape(shape=(1, taps)))


def adaptive_ranges(x: Value, extent: int, count: int) -> tuple[Value, Value]:
    """Return the start ⌊i · extent / count⌋ and the end of each of `count` windows over an axis: int64 [count, 1]."""
    numbers = x.builder.arange(count).reshape(shape=(count, 1))
    ends = numbers.add(1).mul(extent).add(count - 1)
    return numbers.mul(extent).floor_div(count), ends.floor_div(count)
