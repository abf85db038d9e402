"""The incomplete beta function, regularised: the distribution function of the beta distribution."""

from __future__ import annotations

from typing import ClassVar

from engine.bodies.entrywise import entrywise
from engine.graph.sample import Ints, Real, Sample
from engine.graph.truth import Truth
from engine.oplib.beta_density import beta_density, slope_by_first
from engine.oplib.library_function import LibraryUfunc


class Betainc(LibraryUfunc):
    """y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), broadcasting, for 0 ≤ x ≤ 1, and a, b > 0: SciPy's, JAX's.

    To 256 units, SciPy's own on NumPy. Derivatives by all operands, of any order: by x to 1e-12 of their value, by a
    and b, of which JAX has none, to 1e-11. PyTorch has no such function.
    """

    name = "betainc"
    section = "betainc"
    operands: ClassVar[tuple[str, ...]] = ("a", "b", "x")
    since = 2
    function = "betainc"
    cost = 300
    gradient = "da, db = g · ∂I/∂a, g · ∂I/∂b by an integral; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b)"
    samples = (
        Sample(Real(2, 3, low=0.5, high=3), Real(2, 3, low=0.5, high=3), Real(2, 3, low=0.1, high=0.9)),
        Sample(Real(2, 3, low=0.5, high=8), Real(3, low=0.5, high=8), Real(2, 1, low=0.2, high=0.8)),
        Sample(Real(low=11, high=15), Real(2, low=11, high=15), Real(2, low=0.3, high=0.7)),
        Sample(Real(0, 3), Real(3), Real()),
        Sample(Ints(3, low=1, high=5), Ints(3, low=1, high=5), Ints(3, high=2)),
    )
    truths = (
        Truth(
            operands=([2.0, 1.0, 0.5], [1.0, 3.0, 0.5], [0.25, 0.5, 0.5]),
            value=[0.0625, 0.875, 0.5],
            gradients=(
                [-0.08664339756999316, -0.16900378298995215, -0.5831218080616376],
                [0.08220194292354462, 0.08664339756999316, 0.5831218080616376],
                [0.5, 0.75, 0.6366197723675814],
            ),
            source="by hand: x², 1 − (1 − x)³ and 2/π arcsin √x; by a and b, mpmath.betainc's differences in 60 digits",
        ),
    )
    partials = (
        lambda y, a, b, x: entrywise(slope_by_first, a, b, x, 1.0 - x),
        # The function is 1 less itself, with both shapes exchanged, at 1 − x (DLMF 8.17.4).
        lambda y, a, b, x: -entrywise(slope_by_first, b, a, 1.0 - x, x),
        lambda y, a, b, x: beta_density(a, b, x),
    )
