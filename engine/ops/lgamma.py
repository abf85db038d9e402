"""Logarithms of the gamma and beta functions with derivatives of every order, and the Hurwitz zeta function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.errors import BadAttribute
from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import TensorType
from engine.loops.gamma_arrays import fill_polygamma
from engine.loops.special import block_workspace
from engine.oplib.elementwise import FloatUnary
from engine.oplib.library_function import LibraryFunction, in_float32

_POSITIVE = (Sample(Real(2, 3, low=0.3, high=4)), Sample(Real(low=2, high=40)), Sample(Real(0, 2)))
_SAMPLES = (*_POSITIVE, Sample(Real(3, low=-1.7, high=-1.3)), Sample(Ints(3, low=1, high=5)))

LARGEST_ORDER = 170  # 171! is no float64

_trigamma = in_float32("trigamma")


class Lgamma(LibraryFunction):
    """y = log |Γ(x)|: ∞ at 0, −1, −2, …. To 4 units; near its zeros below 0 (−2.457, −2.748, −3.144, …) to 1e-15.

    SciPy's has no correct digit left where x is within 1e-16 of 1 or 2, the zeros above 0; this one keeps all.
    """

    name = "lgamma"
    section = "lgamma"
    function = "lgamma"
    gradient = "g · digamma(x)"
    samples = _SAMPLES
    scalar = staticmethod(in_float32("lgamma"))
    partials = (lambda y, x: x.digamma(),)


class Digamma(LibraryFunction):
    """y = ψ(x) = Γ'(x) / Γ(x): −∞ at 0, NaN at −1, −2, …. To 10 units; near its zeros below −1 to 1e-15.

    SciPy's loses one digit with each digit by which x < 0 is closer to a pole; this one keeps all.
    """

    name = "digamma"
    section = "lgamma"
    function = "digamma"
    gradient = "g · polygamma(x, order=1)"
    samples = _SAMPLES
    partials = (lambda y, x: x.polygamma(order=1),)


class Polygamma(FloatUnary):
    """y = ψ⁽ⁿ⁾(x) for n = `order`, the n-th derivative of `digamma`; order 0 is `digamma` itself.

    ±∞ at 0, −1, −2, …, with the sign that it has to the right of 0. To 10 units; for even orders, near the zeros
    below 0, to 10 units of what the nearest poles add up to. Values of less than 1e-307 · n! are inaccurate or 0.

    Orders go to 170, whose factorial is the largest in a float64; `polygamma` of order 170 has no derivative.
    """

    name = "polygamma"
    section = "lgamma"
    is_captured = False
    attrs: ClassVar[Mapping[str, Attr]] = {
        "order": Attr("int", doc="which derivative of digamma: 0 to 170", minimum=0),
    }
    cost = 200
    gradient = "g · polygamma(x, order + 1)"
    samples = (
        *(Sample(Real(2, 3, low=0.8, high=4), order=n) for n in (0, 1, 2, 5)),
        *(Sample(Real(3, low=-1.7, high=-1.3), order=n) for n in (1, 2)),
        Sample(Real(low=2, high=40), order=1),
        Sample(Real(0, 2), order=1),
        Sample(Ints(3, low=1, high=5), order=1),
    )
    scalar = staticmethod(lambda x, order: _trigamma(x) if order == 1 else None)
    partials = (lambda y, x, order: x.polygamma(order=order + 1),)

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The order is not too large."""
        order, wanted = attrs["order"], f"a whole number of at most {LARGEST_ORDER}"
        if order > LARGEST_ORDER:
            raise BadAttribute(f"attribute order must be {wanted}, but is {order}", expected=wanted, got=str(order))
        return attrs

    def compose(self, x: Value, *, order: int) -> Value | None:
        """`digamma`, where it is that."""
        return None if order else x.digamma()

    def compute(self, run: RunContext, x: Array, *, out: Array, order: int) -> None:
        """(−1)ⁿ⁺¹ n! ζ(n + 1, x), of the Hurwitz zeta function (DLMF 25.11.12)."""
        fill_polygamma(run, x, out, order)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        return block_workspace(out.size) if isinstance(out, TensorType) else 0
