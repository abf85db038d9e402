"""The regularised incomplete gamma and beta functions: distribution functions, with their densities in nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from engine.bodies.entrywise import entrywise
from engine.graph.errors import NotDifferentiable
from engine.graph.ir import Value
from engine.graph.sample import Ints, Real, Sample
from engine.graph.truth import Truth
from engine.oplib.gamma_density import gamma_density, slope_by_shape
from engine.oplib.library_function import LibraryUfunc
from engine.ops.identity import PassThrough


class ShapeOnce(PassThrough):
    """A shape that a derivative has been taken by: what is handed on cannot be differentiated by it again."""

    name = "shape_once"
    internal = True

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Raises NotDifferentiable."""
        raise NotDifferentiable(
            "the incomplete gamma functions have no second derivative by a", expected="one derivative by a", got="two"
        )

    def written_out(self, x: Value) -> Sequence[Value]:
        """x itself."""
        return [x]


_ONCE = ShapeOnce()


def _by_shape(a: Value, x: Value) -> Value:
    """The derivative of P by a, where x is constant or not."""
    return entrywise(slope_by_shape, a.builder.emit(_ONCE, (a,), {}), x)


_AT = ([0.5, 1.0, 3.5, 12.0], [0.25, 2.0, 2.0, 13.0])
#: P, Q, ∂P/∂a, ∂P/∂x
_P = [0.5204998778130465, 0.8646647167633873, 0.2202225915242841, 0.6468350671487296]
_Q = [0.4795001221869535, 0.1353352832366127, 0.7797774084757159, 0.3531649328512704]
_BY_A = [-0.797947316783223, -0.2208254262118595, -0.1801009452864442, -0.1070770167187148]
_BY_X = [0.8787825789354448, 0.1353352832366127, 0.2303614571229357, 0.1014829054600716]
_SOURCE = "their series and its derivative in 50 digits (DLMF 8.7.1); erf(1/2) and 1 − exp(−2)"


class IncompleteGamma(LibraryUfunc):
    """Base: of a shape a ≥ 0 and x ≥ 0; NaN elsewhere."""

    operands: ClassVar[tuple[str, ...]] = ("a", "x")
    since: ClassVar[int] = 2
    samples = (
        Sample(Real(2, 3, low=0.5, high=3), Real(2, 3, low=0.2, high=4)),
        Sample(Real(2, 3, low=0.5, high=20), Real(3, low=1.2, high=20)),
        Sample(Real(2, 1, low=11, high=15), Real(1, 3, low=8, high=18)),
        Sample(Real(low=0.5, high=3), Real(2, low=0.2, high=0.9)),
        Sample(Real(0, 3), Real(3)),
        Sample(Ints(3, low=1, high=5), Ints(3, low=1, high=20)),
    )


class Igamma(IncompleteGamma):
    """y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), broadcasting: `torch.special.gammainc`, JAX's `igamma`, SciPy's.

    To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives by x are to 1e-12 of their value,
    by a (of which PyTorch has none, and JAX's are to 1e-7 of 1) to 1e-12; there is no second derivative by a.
    """

    name = "igamma"
    section = "igamma"
    function = "gammainc"
    gradient = "da = g · ∂P/∂a by an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a)"
    truths = (Truth(operands=_AT, value=_P, gradients=(_BY_A, _BY_X), source=_SOURCE),)
    partials = (lambda y, a, x: _by_shape(a, x), lambda y, a, x: gamma_density(a, x))


class Igammac(IncompleteGamma):
    """y = Q(a, x) = 1 − P(a, x), accurate where it is small: `torch.special.gammaincc`, JAX's `igammac`, SciPy's.

    To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives as those of `igamma`, with the
    other sign.
    """

    name = "igammac"
    section = "igamma"
    function = "gammaincc"
    gradient = "da = −g · ∂P/∂a by an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a)"
    truths = (Truth(operands=_AT, value=_Q, gradients=([-g for g in _BY_A], [-g for g in _BY_X]), source=_SOURCE),)
    partials = (lambda y, a, x: -_by_shape(a, x), lambda y, a, x: -gamma_density(a, x))
