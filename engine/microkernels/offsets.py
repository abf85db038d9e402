"""Offsets: how far apart what a kernel reads may lie, so that none that it computes wraps around."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: lanes of a vector, at most
MOST_LANES: Final = 16


def hold_offsets(axes: Iterable[tuple[int, int]], apart: Iterable[int]) -> bool:
    """Whether 64 bits hold the offsets along all `axes` together, and 32 bits the numbers of a vector's lanes.

    Of each axis: how far indices go from 0, and bytes to the next one. Lanes are so many elements `apart`.
    """
    reach = sum((indices + MOST_LANES) * abs(step) for indices, step in axes)
    return reach < 1 << 62 and all(MOST_LANES * abs(elements) < 1 << 30 for elements in apart)
