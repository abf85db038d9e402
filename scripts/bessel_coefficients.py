"""Write engine/codegen/functions/generated/bessel_coefficients.py: polynomials for modified Bessel functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import mpmath as mp

from scripts.coefficients import Function, Real, rounded, written

FILE = Path(__file__).parents[1] / "engine/codegen/functions/generated/bessel_coefficients.py"
HEAD = '''"""Coefficients of the polynomials that modified Bessel functions are written with, lowest power first.

Written by `python -m scripts.bessel_coefficients`.
"""

from __future__ import annotations

from typing import Final

#: where those of x² end, and those of t = 16 / x − 1 begin, in which they are better conditioned than in 1 / x
BESSEL_SPLIT: Final = {split}
'''
SPLIT = 8


class Interpolated(NamedTuple):
    """A function on [`start`, `end`], in words and on mpmath's numbers, and the polynomial's degree for each dtype."""

    words: str
    function: Function
    start: Real
    end: Real
    degrees: dict[str, int]


def in_powers(fit: Interpolated, degree: int) -> list[Real]:
    """Return the polynomial that interpolates the function at the zeros of a Chebyshev polynomial."""
    middle, half, count = (fit.start + fit.end) / 2, (fit.end - fit.start) / 2, degree + 1
    points = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    rows = mp.matrix([[x**power for power in range(count)] for x in points])
    return list(mp.lu_solve(rows, mp.matrix([fit.function(x) for x in points])))


def scaled_inner(order: int) -> Function:
    """Return Iₙ(x) / xⁿ as a function of z = x²."""
    return lambda z: mp.besseli(order, mp.sqrt(z)) / mp.sqrt(z) ** order if z else mp.mpf(1) / 2**order


def inverse(t: Real) -> Real:
    """Return x for t = 16 / x − 1."""
    return 2 * SPLIT / (t + 1)


def scaled_outer(order: int) -> Function:
    """Return √x exp(−x) Iₙ(x) as a function of t."""

    def scaled(t: Real) -> Real:
        x = inverse(t)
        return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)

    return scaled


def difference(t: Real) -> Real:
    """Compute x √x exp(−x) (I₀(x) − I₁(x)) for t."""
    with mp.workdps(100):
        return inverse(t) * (scaled_outer(0)(t) - scaled_outer(1)(t))


def tables() -> Iterator[tuple[str, Interpolated]]:
    """Yield every polynomial with its name."""
    inner, outer = {"float32": 11, "float64": 16}, {"float32": 9, "float64": 24}
    square, one = mp.mpf(SPLIT) ** 2, mp.mpf(1)
    yield "I0_NEAR", Interpolated("I₀(x) of x², |x| < 8", scaled_inner(0), mp.mpf(0), square, inner)
    yield "I1_NEAR", Interpolated("I₁(x) / x of x², |x| < 8", scaled_inner(1), mp.mpf(0), square, inner)
    yield "I0_FAR", Interpolated("√x exp(−x) I₀(x) of t, x > 8", scaled_outer(0), -one, one, outer)
    yield "I1_FAR", Interpolated("√x exp(−x) I₁(x) of t, x > 8", scaled_outer(1), -one, one, outer)
    words = "x √x exp(−x) (I₀(x) - I₁(x)) of t, x > 8"
    yield "DIFFERENCE_FAR", Interpolated(words, difference, -one, one, {"float64": 28})


def module() -> str:
    """Compute all coefficients, and return the text of the generated module."""
    mp.mp.dps = 60
    text = HEAD.format(split=float(SPLIT))
    for name, fit in tables():
        coefficients = {}
        for dtype, degree in fit.degrees.items():
            exact = in_powers(fit, degree)
            coefficients[dtype] = [rounded(dtype, c) for c in exact]
            points = [fit.start + (fit.end - fit.start) * (i + mp.mpf(1) / 3) / 300 for i in range(300)]
            error = max(abs(mp.polyval(exact[::-1], x) / fit.function(x) - 1) for x in points)
            print(f"{dtype} {name}: off by {mp.nstr(error, 2)}", flush=True)
        text += written(name, fit.words, coefficients)
    return text


if __name__ == "__main__":
    FILE.write_text(module(), encoding="utf-8")
