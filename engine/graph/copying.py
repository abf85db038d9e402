"""Copies of views: NumPy's own, and in strips for a transposed array, so that cache lines are read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from engine.graph.by_device import DeviceFunction
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import HostArray

#: columns of a strip: NumPy goes through it row by row, and so reads as many lines of the cache as there are columns
_STRIP: Final = 16
#: what a strip must have for NumPy's call to be worth it, and a whole copy for any of this to show
_LEAST_ROWS: Final = 64
_LEAST_ELEMENTS: Final = 1 << 15
#: bytes between neighbours from which each of them lies in a line of its own
_LINE: Final = 64


@DeviceFunction
def copying(_: RunContext, x: Any, out: Any) -> tuple[Callable[..., object], tuple[Any, ...]]:
    """A call that makes out = x, arrays of one shape and dtype: a function, and its arguments."""
    return out.__setitem__, (..., x)


@copying.on("cpu")
def _copying(run: RunContext, x: HostArray, out: HostArray) -> tuple[Callable[..., object], tuple[Any, ...]]:
    return (_copy_in_strips, (run, x, out)) if _is_turned(x) else (out.__setitem__, (..., x))


def _is_turned(x: HostArray) -> bool:
    """Whether rows of x run across those of memory, and there are enough of them."""
    if x.size < _LEAST_ELEMENTS or x.strides[-1] < _LINE:
        return False
    columns: int = x.shape[-1]
    return columns > _STRIP and x.size >= _LEAST_ROWS * columns


def _copy_in_strips(run: RunContext, x: HostArray, out: HostArray) -> None:
    """out = x. A strip has some columns, of all rows."""
    for start in run.through(range(0, x.shape[-1], _STRIP)):
        strip = (..., slice(start, start + _STRIP))
        out[strip] = x[strip]
