"""Comparisons, logic, and choices between values. They broadcast as NumPy."""

from __future__ import annotations

from engine.graph.dtypes import DTYPES
from engine.graph.sample import Ints, Real, Sample
from engine.oplib.elementwise import Binary, Predicate


class Comparison(Predicate, Binary):
    """Base of the six."""

    samples = (Sample(Real(2, 3), Real(3)), Sample(Real(), Real()), Sample(Ints(2, 1, high=3), Ints(3, high=3)))


class Equal(Comparison):
    """y = (a = b), elementwise; NaN equals nothing."""

    name = "equal"
    section = "comparison"
    aliases = {"Equal": "born"}
    dtypes = DTYPES
    ufunc = "equal"
    commutative = True


class NotEqual(Comparison):
    """y = (a ≠ b), elementwise; NaN differs from everything."""

    name = "not_equal"
    section = "comparison"
    aliases = {"NotEqual": "born"}
    dtypes = DTYPES
    ufunc = "not_equal"
    commutative = True


class Greater(Comparison):
    """y = (a > b), elementwise; false beside NaN."""

    name = "greater"
    section = "comparison"
    aliases = {"Greater": "born"}
    ufunc = "greater"


class GreaterEqual(Comparison):
    """y = (a ≥ b), elementwise; false beside NaN."""

    name = "greater_equal"
    section = "comparison"
    aliases = {"GreaterEqual": "born"}
    ufunc = "greater_equal"


class Less(Comparison):
    """y = (a < b), elementwise; false beside NaN."""

    name = "less"
    section = "comparison"
    aliases = {"Lower": "born"}
    ufunc = "less"


class LessEqual(Comparison):
    """y = (a ≤ b), elementwise; false beside NaN."""

    name = "less_equal"
    section = "comparison"
    aliases = {"LowerEqual": "born"}
    ufunc = "less_equal"
