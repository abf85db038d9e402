"""Base of the functions that are SciPy's and CuPy's on whole arrays.

"Units" in the docstrings are units in the last place of a float64, on NumPy; on a GPU the functions are CuPy's own,
and in compiled kernels of float32 they are those of docs/accuracy.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

from engine.graph.by_device import DeviceMethod
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import DType, TensorType, to_float
from engine.loops.array_functions import ARRAY_FUNCTIONS, fill_function
from engine.loops.program import Scalar
from engine.loops.special import block_workspace, broadcast_blocks, library
from engine.oplib.element_formula import ScalarFormula
from engine.oplib.elementwise import Elementwise, FloatUnary


class LibraryFunction(FloatUnary):
    """Base: one of ARRAY_FUNCTIONS, in float64 and block by block, so that it takes little memory.

    A `scalar` is for kernels: so float16 is rounded once, from float64.
    """

    #: its name among ARRAY_FUNCTIONS
    function: ClassVar[str]
    cost = 50

    def compute(self, run: RunContext, x: Array, *, out: Array) -> None:
        """The kernel."""
        fill_function(run, self.function, x, out)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        arrays = ARRAY_FUNCTIONS[self.function].arrays
        return block_workspace(out.size, arrays) if isinstance(out, TensorType) else 0


class LibraryUfunc(Elementwise):
    """Base: a function of several operands that both libraries have under one name, in float64 and block by block."""

    #: its name in both
    function: ClassVar[str]
    cost = 200

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """The common dtype where it is float; of integers as NumPy's exp."""
        return to_float(*dtypes)

    @DeviceMethod
    def compute(self, run: RunContext, *xs: Array, out: Array) -> None:
        """The kernel."""
        wide = [run.xp.asarray(x, "float64") for x in xs]
        out[...] = getattr(library(run.xp), self.function)(*wide)

    @compute.on("cpu")
    def _compute_in_blocks(self, run: RunContext, *xs: Array, out: Array) -> None:
        broadcast_blocks(run, getattr(library(run.xp), self.function), xs, out)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """A block of each operand, and of the result."""
        return block_workspace(out.size, len(types) + 2) if isinstance(out, TensorType) else 0


def in_float32(primitive: str) -> ScalarFormula:
    """The formula that is a primitive written out in float32; in float64 the op is opaque."""

    def formula(x: Scalar) -> Scalar | None:
        return x.builder.apply(primitive, x) if x.dtype == "float32" else None

    return formula
