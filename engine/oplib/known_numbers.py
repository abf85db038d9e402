"""Knowledge of elements before they are computed with; on a card there is none, since one would wait for it."""

from __future__ import annotations

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.dtypes import has_infinities
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import DType, HostArray


@DeviceFunction
def are_finite(_: RunContext, *arrays: Array, dtype: DType | None = None) -> bool:  # noqa: ARG001 - nothing is known
    """Whether all elements are known to be finite, so that 0 times one of them is 0.

    On the CPU by their sums, added up in `dtype` (by default in their own), which take no memory: where one is finite,
    so is all that is in it. Finite elements may have an infinite sum, and are not known to be finite then.
    """
    return False


@are_finite.on("cpu")
def _are_finite(_: RunContext, *arrays: HostArray, dtype: DType | None = None) -> bool:
    return all(not has_infinities(x.dtype) or bool(np.isfinite(np.add.reduce(x, None, dtype))) for x in arrays)


@DeviceFunction
def are_numbers(_: RunContext, x: Array) -> bool:
    """Whether it is known that no element is NaN."""
    return not has_infinities(x.dtype)


@are_numbers.on("cpu")
def _are_numbers(_: RunContext, x: HostArray) -> bool:
    return not has_infinities(x.dtype) or not bool(np.isnan(x).any())
