"""Products of a row in any order: where that may be another number than in the order of the row."""

from __future__ import annotations

from typing import Final

from engine.functions.float_parts import at_most, format_of
from engine.loops.program import Scalar

#: beyond, products of a few more elements might overflow: a power of two below the largest number
_MOST: Final = {"float32": 2.0**126, "float64": 2.0**1022}


def may_leave_range(x: Scalar) -> Scalar:
    """Whether the product of some elements of the row may overflow, or be subnormal. NaN makes no difference.

    Each that has no 0 lies between the products of all elements that are less than 1 in size, but not 0, and of all
    that are greater.
    """
    size = x.abs()
    greatest, least = (size > 1.0).where(size, 1.0), (size > 0.0).where(at_most(size, 1.0), 1.0)
    is_within = (greatest.row_prod() < _MOST[x.dtype]).and_(least.row_prod() >= format_of(x).smallest_normal)
    return is_within.not_()
