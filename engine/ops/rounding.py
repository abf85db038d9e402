"""Rounding to whole numbers: of a float in its own dtype, and of an integer nothing."""

from __future__ import annotations

from typing import Any

from engine.graph.op import Array, NoGradient
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import DType
from engine.oplib.elementwise import Unary


class Rounding(Unary):
    """Base: by NumPy's ufunc, for floats."""

    cost = 1
    gradient = "none: constant between its steps"
    samples = (Sample(Real(2, 3)), Sample(Real()), Sample(Ints(3, high=5)))
    partials = vjp = NoGradient("it is constant between its steps")

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """x's own."""
        return dtypes[0]

    def compute(self, run: RunContext, x: Array, *, out: Array) -> None:
        """A copy, where x is not float."""
        xp = run.xp
        if x.dtype.kind == "f":
            getattr(xp, self.ufunc)(x, out=out)
        else:
            xp.copyto(out, x)


class Floor(Rounding):
    """y = ⌊x⌋: down to the next whole number."""

    name = "floor"
    section = "rounding"
    ufunc = "floor"


class Ceil(Rounding):
    """y = ⌈x⌉: up to the next whole number."""

    name = "ceil"
    section = "rounding"
    ufunc = "ceil"


class Round(Rounding):
    """y = x rounded to the nearest whole number, halves to the even one: 0.5 → 0, 1.5 → 2."""

    name = "round"
    section = "rounding"
    ufunc = "rint"
