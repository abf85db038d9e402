"""Quotients that are whole numbers, rounded down or towards 0, and the latter's remainder; the other's is `mod`."""

from __future__ import annotations

from typing import ClassVar

from engine.graph.op import Array, NoGradient
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.truth import Truth
from engine.oplib.elementwise import Binary

_APART = (
    Sample(Ints(2, 3, low=-9, high=9), Ints(3, low=1, high=5)),
    Sample(Ints(4, low=-9, high=9), Ints(low=-5, high=0)),
)
_FLOATS = (
    Sample(Real(2, 3, low=4.1, high=4.9), Real(3, low=1.8, high=2)),
    Sample(Real(2, low=-1.9, high=-1.1), Real(low=0.97, high=1)),
)


class WholeQuotient(Binary):
    """Base: constant between its steps."""

    since = 2
    cost = 20
    gradient: ClassVar[str] = "none: constant between its steps"
    partials = vjp = NoGradient("it is constant between its steps")
    samples: ClassVar[tuple[Sample, ...]] = (*_FLOATS, *_APART)


class FloorDiv(WholeQuotient):
    """y = ⌊a / b⌋, elementwise, broadcasting: Python's //, with the remainder `mod`. An integer by 0 is 0.

    PyTorch's and NumPy's `floor_divide`, JAX's `jnp.floor_divide`. JAX's gives −1 for an integer by 0.
    """

    name = "floor_div"
    section = "whole_division"
    ufunc = "floor_divide"
    truths = (
        Truth(operands=[[7, -7, 7, -7], [2, 2, -2, -2]], value=[3, -4, -4, 3], source="Python's //"),
        Truth(operands=[[7.5, -7.5], [2.0, 2.0]], value=[3.0, -4.0], source="Python's //"),
    )


class TruncDiv(WholeQuotient):
    """y = a / b without its fraction, elementwise, broadcasting: C's /, with the remainder `rem`. An integer by 0 is 0.

    PyTorch's `div` with rounding_mode trunc; JAX's `lax.div` of integers, which gives −1 for one by 0.
    """

    name = "trunc_div"
    section = "whole_division"
    ufunc = "floor_divide"
    truths = (
        Truth(operands=[[7, -7, 7, -7], [2, 2, -2, -2]], value=[3, -3, -3, 3], source="C's /"),
        Truth(operands=[[7.5, -7.5], [2.0, 2.0]], value=[3.0, -3.0], source="by hand"),
    )

    def compute(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """Of integers what is left without the remainder, which b divides."""
        xp = run.xp
        if out.dtype.kind == "f":
            xp.divide(a, b, out=out)
            xp.trunc(out, out=out)
        else:
            xp.fmod(a, b, out=out)
            xp.subtract(a, out, out=out)
            xp.floor_divide(out, b, out=out)


class Rem(Binary):
    """y = a − b · (a / b without its fraction): C's % and fmod, with a's sign. `mod` has b's.

    A float by 0 gives NaN, an integer 0. PyTorch's `fmod`, JAX's `lax.rem`, which gives a for an integer by 0.
    """

    name = "rem"
    section = "whole_division"
    ufunc = "fmod"
    since = 2
    cost = 20
    gradient = "da = g, db = −g · (a / b without its fraction)"
    samples = (*_FLOATS, *_APART)
    partials = (lambda y, a, b: 1, lambda y, a, b: ((y - a) / b).round())
    truths = (
        Truth(operands=[[7, -7, 7, -7], [2, 2, -2, -2]], value=[1, -1, 1, -1], source="C's %"),
        Truth(
            operands=[[7.5, -7.5], [2.0, 2.0]],
            value=[1.5, -1.5],
            gradients=[[1.0, 1.0], [-3.0, 3.0]],
            source="by hand",
        ),
    )
