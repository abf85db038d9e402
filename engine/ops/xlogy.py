"""Products with a logarithm that are 0 where the factor is: terms of entropies and likelihoods."""

from __future__ import annotations

from typing import ClassVar

from engine.graph.ir import Value
from engine.graph.sample import Ints, Real, Sample
from engine.graph.truth import Truth
from engine.loops.program import Scalar
from engine.oplib.elementwise import FloatBinary


def _product(x: Scalar, y: Scalar, log: Scalar) -> Scalar:
    """x · log; but 0 where x is, unless y is NaN."""
    return x.eq(0.0).and_(y.eq(y)).where(0.0, x * log)


def _no_log(x: Value, y: Value, pole: float) -> Value:
    """Where the factor is 0 and the logarithm −∞."""
    return x.equal(0.0).logical_and(y.equal(pole))


class TimesLogarithm(FloatBinary):
    """Base: a factor, and what the logarithm is of."""

    operands: ClassVar[tuple[str, ...]] = ("x", "y")
    since: ClassVar[int] = 2
    cost = 20


class Xlogy(TimesLogarithm):
    """y = x · log y, broadcasting; 0 where x = 0, whatever y is but NaN.

    As SciPy and PyTorch have it; JAX has 0 for NaN, too. By x, the derivative is 0 where x and y are, and where x = 0
    and y < 0 it is NaN, as JAX's (PyTorch's is 0); by y, it is x / y everywhere: NaN where both are 0.
    """

    name = "xlogy"
    section = "xlogy"
    gradient = "dx = g · log y, and 0 where x = y = 0; dy = g · x / y"
    samples = (
        Sample(Real(2, 3), Real(2, 3, low=0.5, high=2)),
        Sample(Real(2, 3), Real(3, low=0.5, high=2)),
        Sample(Real(2, 1), Real(1, 3, low=0.5, high=2)),
        Sample(Real(), Real(2, low=0.5, high=2)),
        Sample(Real(0, 3), Real(3, low=0.5, high=2)),
        Sample(Ints(3, high=4), Ints(3, low=1, high=4)),
    )
    truths = (
        Truth(
            operands=([2.0, -0.5, 0.0], [3.0, 0.25, 0.0]),
            value=[2.1972245773362196, 0.6931471805599453, 0.0],
            gradients=([1.0986122886681098, -1.3862943611198906, 0.0], [0.6666666666666666, -2.0, float("nan")]),
            source="log 3, log 4 of a table; 2 / 3 and −0.5 / 0.25 by hand",
        ),
    )
    scalar = staticmethod(lambda x, y: _product(x, y, y.log()))
    partials = (lambda z, x, y: _no_log(x, y, 0.0).where(1.0, y).log(), lambda z, x, y: x / y)


class Xlog1py(TimesLogarithm):
    """y = x · log(1 + y), broadcasting, accurate for small y; 0 where x = 0, whatever y is but NaN.

    As SciPy and PyTorch (`special.xlog1py`) have it; JAX has 0 for NaN, too. By x, the derivative is 0 where x = 0 and
    y = −1, and where x = 0 and y < −1 it is NaN, as JAX's; by y, it is x / (1 + y) everywhere: NaN where x = 0 and
    y = −1.
    """

    name = "xlog1py"
    section = "xlogy"
    gradient = "dx = g · log(1 + y), and 0 where x = 0 and y = −1; dy = g · x / (1 + y)"
    samples = (
        Sample(Real(2, 3), Real(2, 3, low=-0.5, high=2)),
        Sample(Real(2, 3), Real(3, low=-0.5, high=2)),
        Sample(Real(2, 1), Real(1, 3, low=-0.5, high=2)),
        Sample(Real(), Real(2, low=-0.5, high=2)),
        Sample(Real(0, 3), Real(3, low=-0.5, high=2)),
        Sample(Ints(3, high=4), Ints(3, high=4)),
    )
    truths = (
        Truth(
            operands=([2.0, -0.5, 3.0], [2.0, -0.75, 1e-20]),
            value=[2.1972245773362196, 0.6931471805599453, 3e-20],
            gradients=([1.0986122886681098, -1.3862943611198906, 1e-20], [0.6666666666666666, -2.0, 3.0]),
            source="log 3, log 4 of a table; log(1 + y) = y − y²/2 + …; the rest by hand",
        ),
    )
    scalar = staticmethod(lambda x, y: _product(x, y, y.log1p()))
    partials = (lambda z, x, y: _no_log(x, y, -1.0).where(0.0, y).log1p(), lambda z, x, y: x / (1 + y))
