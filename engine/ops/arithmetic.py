"""Arithmetic of two operands. Each gradient is one line a partial derivative."""

from __future__ import annotations

from typing import ClassVar

from engine.elementwise import Elementwise
from engine.sample import Real, Sample

_PAIRS = (
    Sample(Real(2, 3), Real(2, 3)),
    Sample(Real(2, 3), Real(3)),
    Sample(Real(2, 1), Real(1, 3)),
    Sample(Real(), Real(2)),
)


class Binary(Elementwise):
    """Base: two broadcasting operands."""

    operands: ClassVar[tuple[str, ...]] = ("a", "b")
    samples: ClassVar[tuple[Sample, ...]] = _PAIRS


class Add(Binary):
    """y = a + b, elementwise, broadcasting as NumPy."""

    name = "add"
    aliases = {"AddOp": "born", "Add": "born, cjc", "EWiseAdd": "minima"}
    ufunc = "add"
    commutative = True
    gradient = "da = g, db = g"
    partials = (lambda y, a, b: 1, lambda y, a, b: 1)


class Sub(Binary):
    """y = a − b, elementwise, broadcasting as NumPy."""

    name = "sub"
    aliases = {"SubOp": "born", "Sub": "born, cjc", "subtract": "sadl"}
    ufunc = "subtract"
    gradient = "da = g, db = −g"
    partials = (lambda y, a, b: 1, lambda y, a, b: -1)


class Mul(Binary):
    """y = a · b, elementwise, broadcasting as NumPy."""

    name = "mul"
    aliases = {"MulOp": "born", "Mul": "born, cjc", "EWiseMul": "minima", "multiply": "minima, sadl"}
    ufunc = "multiply"
    commutative = True
    gradient = "da = g · b, db = g · a"
    partials = (lambda y, a, b: b, lambda y, a, b: a)


class Div(Binary):
    """y = a / b, elementwise, broadcasting as NumPy; integers give floats, x / 0 gives ±inf or NaN."""

    name = "div"
    aliases = {"DivOp": "born", "Div": "born, cjc", "EWiseDiv": "minima", "divide": "minima, sadl"}
    ufunc = "divide"
    gradient = "da = g / b, db = −g · y / b"
    samples = tuple(Sample(a, Real(*b.shape, low=0.5, high=2)) for a, b in (s.operands for s in _PAIRS))
    partials = (lambda y, a, b: 1 / b, lambda y, a, b: -y / b)
