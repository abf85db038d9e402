"""Sliding windows over the trailing axes of a tensor: how many there are, and which elements each of them sees.

Everything holds for any number of spatial axes. A window has `size` taps along each axis, `dilation` apart; windows
are `stride` apart, and the first one begins `padding` before the first element, or behind it where that is negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from engine.graph.op import Array, Namespace
from engine.graph.tensor_type import Shape


@dataclass(frozen=True, slots=True)
class Windows:
    """The shape and the placing of windows, one number for each spatial axis."""

    size: Shape
    stride: Shape
    padding: Shape
    dilation: Shape

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

    def inside(self, extents: Sequence[int]) -> tuple[slice, ...]:
        """Where a tensor of these `extents` lies in the padded one."""
        return tuple(slice(p, p + e) for p, e in zip(self.padding, extents, strict=True))

    def met(self, extents: Sequence[int], positions: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The elements within the span of the windows, and where in it they lie."""
        axes = zip(extents, self.span(positions), self.padding, strict=True)
        ranges = [(max(0, -p), max(0, -p, min(e, n - p)), p) for e, n, p in axes]
        return tuple(slice(a, b) for a, b, _ in ranges), tuple(slice(a + p, b + p) for a, b, p in ranges)

    def view(self, xp: Namespace, spanned: Array, positions: Sequence[int]) -> Array:
        """An array [..., *span] as [..., *size, *positions]: what each tap sees at each position."""
        rank = len(self.size)
        lead, steps = spanned.strides[:-rank], spanned.strides[-rank:]
        shape = (*spanned.shape[:-rank], *self.size, *positions)
        strides = (*lead, *_strides(steps, self.dilation, self.size), *_strides(steps, self.stride, positions))
        return xp.lib.stride_tricks.as_strided(spanned, shape, strides)


def _strides(steps: Sequence[int], factors: Sequence[int], counts: Sequence[int]) -> Shape:
    # An axis of one entry is never stepped along, and its factor may be as large as a client likes.
    return tuple(b * f if n > 1 else 0 for b, f, n in zip(steps, factors, counts, strict=True))


def each_index(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All index tuples below `counts`, in row-major order."""
    return product(*map(range, counts))
