"""Pools: windows side by side, where these are small."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from engine.graph.dtypes import has_loops
from engine.microkernels.pooling import avg_pool, max_pool, max_pool_indices
from engine.microkernels.recipe import Recipe
from engine.microkernels.unpooling import max_pool_back
from engine.microkernels.windows import DirectedPool, PoolGeometry

#: elements of a plane that an int32 can number
_LARGEST: Final = 2**31 - 1
#: how many times longer NumPy takes for a tap than a kernel
_MORE_TAPS: Final = 8


def pool_recipe(pool: DirectedPool) -> Recipe | None:
    """A search, a sum or a maximum for windows side by side.

    Not of large ones, unless places are searched for: these take longer than their rows and then their columns.
    """
    of, direction, given = pool
    if not _fits(of):
        return None
    if direction == "max_indices":
        return max_pool_indices(of)
    if not _is_small(of):
        return None
    if given is not None:
        return max_pool_back(of, given)
    return max_pool(of) if direction == "max" else avg_pool(of)


def _fits(of: PoolGeometry) -> bool:
    """Whether kernels can hold its numbers and its offsets."""
    return has_loops(np.dtype(of.dtype)) and math.prod(of.extents) <= _LARGEST and of.is_addressable


def _is_small(of: PoolGeometry) -> bool:
    """Whether going through all taps of a window is quicker than first combining whole rows of planes."""
    return math.prod(of.size) <= _MORE_TAPS * sum(of.size)
