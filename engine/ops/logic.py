"""Logic on truth values, and questions that are answered by one. A number counts as true where it is not zero."""

from __future__ import annotations

import math

from engine.graph.dtypes import DTYPES
from engine.graph.sample import Bools, Ints, Real, Sample
from engine.oplib.elementwise import Binary, Predicate, Unary


class Connective(Predicate, Binary):
    """Base: of two operands."""

    commutative = True
    samples = (
        Sample(Bools(2, 3), Bools(3)),
        Sample(Real(2, 1), Ints(3, high=2)),
        Sample(Bools(), Bools(0, 2)),
    )


class LogicalAnd(Connective):
    """y = a and b, elementwise, broadcasting. Numbers are true where they are not 0; NaN is true."""

    name = "logical_and"
    section = "logic"
    aliases = {"And": "born"}
    ufunc = "logical_and"


class LogicalOr(Connective):
    """y = a or b (or both), elementwise, broadcasting. Numbers are true where they are not 0; NaN is true."""

    name = "logical_or"
    section = "logic"
    aliases = {"Or": "born"}
    ufunc = "logical_or"


class LogicalNot(Predicate, Unary):
    """y = not x, elementwise. Numbers are true where they are not 0; NaN is true."""

    name = "logical_not"
    section = "logic"
    aliases = {"Not": "born"}
    ufunc = "logical_not"
    cost = 1
    samples = (Sample(Bools(2, 3)), Sample(Ints(3, high=2)), Sample(Real()))


class IsFinite(Predicate, Unary):
    """y = whether x is neither infinite nor NaN."""

    name = "is_finite"
    section = "logic"
    dtypes = DTYPES
    ufunc = "isfinite"
    scalar = staticmethod(lambda x: x.abs() < math.inf)
    complex_scalar = staticmethod(lambda x: (x.real().abs() < math.inf).and_(x.imag().abs() < math.inf))
    cost = 1
    samples = (Sample(Real(2, 3)), Sample(Ints(3, high=5)), Sample(Bools()))
