"""Base of the functions that SciPy and CuPy have, mended where SciPy's are wrong beyond a few units in the last place.

"Units" in the docstrings are units in the last place of a float64, on NumPy; on a GPU the functions are CuPy's own.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from engine.graph.op import Array, Namespace, ResultTypes
from engine.graph.tensor_type import TensorType
from engine.loops.special import Floats, block_workspace, in_blocks, library
from engine.oplib.elementwise import FloatUnary


class LibraryFunction(FloatUnary):
    """Base: a function of scipy.special, in float64 and block by block, so that what it mends takes little memory."""

    #: its name in scipy.special and in cupyx.scipy.special
    function: ClassVar[str]
    #: arrays of a block that `mended` has at once
    arrays: ClassVar[int] = 16
    cost = 50

    def compute(self, xp: Namespace, x: Array, *, out: Array) -> None:
        """The kernel."""
        if xp is np:
            in_blocks(np, self.mended, x, out)
        else:
            getattr(library(xp), self.function)(x, out=out)

    def mended(self, x: Floats) -> Floats:
        """The function on NumPy."""
        y: Floats = getattr(library(np), self.function)(x)
        return y

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        return block_workspace(out.size, self.arrays) if isinstance(out, TensorType) else 0
