"""Recipes of pools: windows side by side, where these are small."""

from __future__ import annotations

import math
from typing import Any, Final

from engine.graph.dtypes import has_loops
from engine.graph.op import Kernel
from engine.graph.tensor_type import Shape, TensorType
from engine.microkernels.pooling import avg_pool, max_pool, max_pool_indices
from engine.microkernels.product import Matrices
from engine.microkernels.recipe import Recipe
from engine.microkernels.unpooling import max_pool_back
from engine.microkernels.windows import PoolGeometry
from engine.oplib.pooling import placed

#: elements of a plane that an int32 can number
_LARGEST: Final = 2**31 - 1
#: how many times longer NumPy takes for a tap than a kernel
_MORE_TAPS: Final = 8


def max_pool_recipe(_: Kernel, out: TensorType, x: TensorType, **attrs: Any) -> Recipe | None:
    """Windows side by side; not the large ones, which take longer than their rows and then their columns."""
    pool = _pool(out, x, **attrs)
    return max_pool(pool) if pool and _is_small(**attrs) else None


def max_pool_indices_recipe(_: Kernel, out: TensorType, x: TensorType, **attrs: Any) -> Recipe | None:
    """A search in windows side by side."""
    pool = _pool(out, x, **attrs)
    return pool and max_pool_indices(pool)


def max_pool_back_recipe(_: Kernel, out: TensorType, g: TensorType, x: TensorType, **attrs: Any) -> Recipe | None:  # noqa: ARG001 - has the type of x
    """A search, and then sums over windows side by side; not of large ones, as with the maxima."""
    pool = _pool(g, x, **attrs) if g.dtype == x.dtype else None
    return max_pool_back(pool, _lying(g)) if pool and _is_small(**attrs) else None


def avg_pool_recipe(_: Kernel, out: TensorType, x: TensorType, **attrs: Any) -> Recipe | None:
    """As the maxima."""
    pool = _pool(out, x, **attrs)
    return avg_pool(pool) if pool and _is_small(**attrs) else None


def _pool(pooled: TensorType, x: TensorType, **attrs: Any) -> PoolGeometry | None:
    """The windows for kernels, which see x and give as many numbers as `pooled` has; None where there are no such."""
    if not has_loops(x.dtype) or math.prod(x.shape[-2:]) > _LARGEST:
        return None
    windows, positions = placed(**attrs), _pair(pooled.shape[-2:])
    extents, size, stride, padding = map(_pair, (x.shape[-2:], windows.size, windows.stride, windows.padding))
    batch = x.shape[:-2]
    pool = PoolGeometry(x.dtype.name, x.dtype.itemsize, batch, extents, positions, size, stride, padding, _lying(x))
    return pool if pool.is_addressable else None


def _lying(x: TensorType) -> Matrices:
    row, column = x.strides[-2:]
    return Matrices(row, column, x.strides[:-2])


def _pair(numbers: Shape) -> tuple[int, int]:
    first, second = numbers
    return first, second


def _is_small(**attrs: Any) -> bool:
    """Whether going through all taps of a window is quicker than first combining whole rows of planes."""
    windows = placed(**attrs)
    return windows.taps <= _MORE_TAPS * sum(windows.size)
