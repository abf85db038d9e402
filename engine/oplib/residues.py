"""The adjoint of a correlation with a stride, as correlations without one.

Of the elements that windows lie over, those at the same distance from the stride's grid are seen by the same taps.
So they are a correlation of the windows' values with these taps, turned round; each such class is one by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from engine.oplib.windows import Windows


class ResidueClass(NamedTuple):
    """The elements at `places`, which are correlations of values by `windows` with the kernel at `taps`."""

    taps: tuple[slice, ...]
    places: tuple[slice, ...]
    windows: Windows


class _AxisResidue(NamedTuple):
    taps: slice
    places: slice
    size: int
    padding: int
    dilation: int


def residue_classes(windows: Windows, extents: Sequence[int], positions: Sequence[int]) -> Iterator[ResidueClass]:
    """All classes that a tap sees, from windows at `positions`, of a tensor of these `extents`."""
    axes = zip(windows.size, windows.stride, windows.padding, windows.dilation, extents, positions, strict=True)
    for each in product(*(list(_along(*axis)) for axis in axes)):
        taps, places, size, padding, dilation = zip(*each, strict=True)
        yield ResidueClass(taps, places, Windows(size, (1,) * len(size), padding, dilation))


def residues_cover(windows: Windows) -> bool:
    """Whether every element is of a class that a tap sees."""
    axes = zip(windows.size, windows.stride, windows.dilation, strict=True)
    return all(math.gcd(s, d) == 1 and k >= s for k, s, d in axes)


def _along(size: int, stride: int, padding: int, dilation: int, extent: int, positions: int) -> Iterator[_AxisResidue]:
    """The classes along one axis.

    Element e meets tap t of window p where e + padding = p · stride + t · dilation. With t = first + j · period, that
    is e + padding = first · dilation + u · stride for u = p + j · (dilation / common): so e is element u of a
    correlation whose taps look back. Those that look beyond the windows, wherever they look from, are left out: of taps
    that are far apart, all but a few.
    """
    common = math.gcd(stride, dilation)
    period, step = stride // common, dilation // common
    for first in range(min(size, period)):
        least = -((first * dilation - padding) // stride)
        most = (extent - 1 + padding - first * dilation) // stride
        if least <= most:
            begin, end = (u * stride + first * dilation - padding for u in (least, most))
            last = (size - 1 - first) // period
            near = min(max(0, -((positions - 1 - least) // step)), last)
            far = max(near, min(last, most // step))
            taps = slice(far * period + first, near * period + first - 1 if near or first else None, -period)
            yield _AxisResidue(taps, slice(begin, end + 1, stride), far - near + 1, far * step - least, step)
