"""Copies of what lies in another order: a transposed matrix, in strips, so that what is read stays in the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.graph.op import Array, KernelCall, Namespace, View
from engine.graph.tensor_type import HostArray

#: columns of a strip: NumPy goes through it row by row, and so reads as many lines of the cache as there are columns
_STRIP: Final = 16
#: what a strip must have for NumPy's call to be worth it, and a whole copy for any of this to show
_LEAST_ROWS: Final = 64
_LEAST_ELEMENTS: Final = 1 << 15
#: bytes between neighbours from which each of them lies in a line of its own
_LINE: Final = 64


class CopiedView(View):
    """Base: a view of which a copy may be one in another order."""

    def forward(self, xp: Namespace, *arrays: Any, out: Array, **attrs: Any) -> None:
        """As its parent."""
        function, arguments = self.bind(xp, arrays, out, attrs)
        function(*arguments)

    def bind(self, xp: Namespace, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """As its parent."""
        (x,) = operands
        if self.reshapes:
            out = out.reshape(x.shape)
        else:
            x = self.view(xp, x, **attrs)
        if xp is np and _is_turned(x):
            return _copy_in_strips, (x, out)
        return out.__setitem__, (..., x)


def _is_turned(x: HostArray) -> bool:
    """Whether rows of x are read across those of memory, and there are enough of them."""
    if x.size < _LEAST_ELEMENTS:
        return False
    columns = x.shape[-1]
    return x.strides[-1] >= _LINE and columns > _STRIP and x.size >= _LEAST_ROWS * columns


def _copy_in_strips(x: HostArray, out: HostArray) -> None:
    """out = x. A strip has some columns, of all rows."""
    for start in range(0, x.shape[-1], _STRIP):
        strip = (..., slice(start, start + _STRIP))
        out[strip] = x[strip]
