"""Write engine/codegen/functions/generated/coefficients.py: minimax polynomials, and constants split into parts."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_float
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp

FILE = Path(__file__).parents[1] / "engine/codegen/functions/generated/coefficients.py"
HEAD = '''"""Coefficients of the polynomials that expansions write, lowest power first, and constants in parts.

Written by `python -m scripts.coefficients`.
"""

from __future__ import annotations

from typing import Final

#: c in TAIL
TAIL_CENTRE: Final = {centre}
'''
#: significant bits of a number
SIGNIFICANT_BITS = {"float32": 24, "float64": 53}
#: number of points at which the error is evaluated
POINTS = 400
#: c in the scaled tail of erfc
TAIL_CENTRE = 1.25
#: ends of the intervals of exp, slightly beyond ln 2 / 2, and of sin and cos, slightly beyond π / 4
HALF_LN2, QUARTER_PI = mp.mpf("0.3470"), mp.mpf("0.7863")
#: end of the interval of the arctangent, slightly beyond tan(π / 8)
EIGHTH_TURN = mp.mpf("0.4143")
#: smallest x at which Stirling's series of log Γ, and that of its second derivative, are used
STIRLING_START, TRIGAMMA_START = 4, 2
#: −log(1 − x²) from which on the inverse error function is a polynomial in its square root, and at the largest x < 1
ERFINV_TAIL, ERFINV_END = mp.mpf("4.25"), mp.mpf("16.7")

Real = Any  # mpmath has no type information
Function = Callable[[Real], Real]


class Fit(NamedTuple):
    """Function to approximate from `start` to `end`, and the weight of its error."""

    function: Function
    weight: Function
    start: Real
    end: Real


def least_error(fit: Fit, degree: int) -> list[Real]:
    """Return the minimax polynomial of the weighted error, by the exchange algorithm of E. Remez."""
    points = [
        (fit.start + fit.end) / 2 - (fit.end - fit.start) / 2 * mp.cos(mp.pi * i / (POINTS - 1)) for i in range(POINTS)
    ]
    values, weights = [fit.function(x) for x in points], [fit.weight(x) for x in points]
    extrema = [round(i * (POINTS - 1) / (degree + 1)) for i in range(degree + 2)]
    while True:
        rows = [[points[i] ** p for p in range(degree + 1)] + [(-1) ** n / weights[i]] for n, i in enumerate(extrema)]
        solution: list[Real]
        *solution, level = mp.lu_solve(mp.matrix(rows), mp.matrix([values[i] for i in extrema]))
        errors = [w * (v - mp.polyval(solution[::-1], x)) for x, v, w in zip(points, values, weights, strict=True)]
        if max(abs(e) for e in errors) < 1.01 * abs(level):
            return solution
        extrema = exchanged(errors, degree + 2)


def exchanged(errors: Sequence[Real], count: int) -> list[int]:
    """Return the positions of the `count` largest consecutive errors of alternating signs."""
    peaks: list[int] = []
    for i, error in enumerate(errors):
        if not peaks or mp.sign(error) != mp.sign(errors[peaks[-1]]):
            peaks.append(i)
        elif abs(error) > abs(errors[peaks[-1]]):
            peaks[-1] = i
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def remainder(function: Function, powers: Sequence[Real], order: int) -> Function:
    """Return `function` less the first terms of its power series, divided by x to the power `order`."""

    def divided(x: Real) -> Real:
        with mp.workdps(200):
            x = x or mp.mpf(10) ** -20
            return (function(x) - mp.polyval([mp.mpf(p) for p in powers[::-1]], x)) / x**order

    return divided


def of_square(function: Function) -> Function:
    """Return an even function of x as a function of z = x²."""
    return lambda z: function(mp.sqrt(z))


def scaled_tail(t: Real) -> Real:
    """Compute (x + c) exp(x²) erfc(x) − 1 for t = (x − c) / (x + c), where c is TAIL_CENTRE."""
    x = TAIL_CENTRE * (1 + t) / (1 - t)
    return (x + TAIL_CENTRE) * mp.exp(x * x) * mp.erfc(x) - 1


def root_of_erf(w: Real) -> Real:
    """Compute erf⁻¹(x) / x for w = −log(1 − x²)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x if x else mp.sqrt(mp.pi) / 2


def stirling(w: Real) -> Real:
    """Compute x times the part of log Γ(x) that tends to 0, for w = 1 / x²."""
    if not w:
        return mp.mpf(1) / 12
    x = 1 / mp.sqrt(w)
    return x * (mp.loggamma(x) - ((x - mp.mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2))


def trigamma_series(w: Real) -> Real:
    """Compute (ψ′(x) − 1 / x − 1 / 2x²) x³ for w = 1 / x²."""
    if not w:
        return mp.mpf(1) / 6
    x = 1 / mp.sqrt(w)
    return (mp.psi(1, x) - 1 / x - 1 / (2 * x * x)) * x**3


def single_fits() -> Iterator[tuple[str, str, Fit]]:
    """Yield the polynomials that only float32 uses."""
    half = mp.mpf(1) / 2
    at_one = remainder(lambda z: mp.loggamma(1 + z), (0,), 1)
    at_two = remainder(lambda z: mp.loggamma(2 + z), (0,), 1)
    yield "LGAMMA_AT_ONE", "log Γ(1 + z) / z, |z| < 1/2", Fit(at_one, lambda z: 1 / abs(at_one(z)), -half, half)
    yield (
        "LGAMMA_AT_TWO",
        "log Γ(2 + z) / z, -3/5 < z < 1/2",
        Fit(at_two, lambda z: 1 / abs(at_two(z)), -half * 6 / 5, half),
    )
    middle, width = mp.mpf(13) / 4, mp.mpf(3) / 4
    yield (
        "LGAMMA_MIDDLE",
        "log Γ(13/4 + z), |z| < 3/4",
        Fit(lambda z: mp.loggamma(middle + z), lambda z: 1 / mp.loggamma(middle + z), -width, width),
    )
    yield (
        "STIRLING",
        "(log Γ(x) - (x - 1/2) log x + x - log(2π) / 2) x of 1 / x², x > 4",
        Fit(stirling, lambda w: 1, 0, mp.mpf(1) / STIRLING_START**2),
    )
    yield (
        "TRIGAMMA",
        "(ψ′(x) - 1 / x - 1 / 2x²) x³ of 1 / x², x > 2",
        Fit(trigamma_series, lambda w: 1, 0, mp.mpf(1) / TRIGAMMA_START**2),
    )
    above_zero = remainder(root_of_erf, (mp.sqrt(mp.pi) / 2,), 1)
    yield (
        "ERFINV",
        "(erf⁻¹(x) / x - √π/2) / w of w = -log(1 - x²) < 17/4",
        Fit(above_zero, lambda w: w / root_of_erf(w) + mp.mpf(2) ** -20, 0, ERFINV_TAIL),
    )
    yield (
        "ERFINV_TAIL",
        "erf⁻¹(x) / x of √w - 3, w > 17/4",
        Fit(
            lambda v: root_of_erf((v + 3) ** 2),
            lambda v: 1 / root_of_erf((v + 3) ** 2),
            mp.sqrt(ERFINV_TAIL) - 3,
            mp.sqrt(ERFINV_END) - 3,
        ),
    )


#: ends of the intervals of log(erfc(1 + u)), and of the scaled tail
ENDS = {"float32": (mp.mpf("2.95"), mp.mpf("10.2")), "float64": (mp.mpf(5), mp.mpf("27.3"))}
DEGREES = {
    "float32": {
        "EXP": 4,
        "LOG": 8,
        "SIN": 2,
        "COS": 2,
        "ATAN": 4,
        "ERF": 7,
        "LOG_ERFC": 6,
        "TAIL": 11,
        "LGAMMA_AT_ONE": 13,
        "LGAMMA_AT_TWO": 10,
        "LGAMMA_MIDDLE": 9,
        "STIRLING": 2,
        "TRIGAMMA": 7,
        "ERFINV": 8,
        "ERFINV_TAIL": 10,
    },
    "float64": {"EXP": 10, "LOG": 6, "SIN": 5, "COS": 5, "ATAN": 10, "ERF": 14, "LOG_ERFC": 17, "TAIL": 30},
}


def fits(dtype: str) -> Iterator[tuple[str, str, Fit]]:
    """Yield every polynomial of a dtype: its name, its function in words, and the fit."""
    sin = remainder(mp.sin, (0, 1), 3)
    cos = remainder(mp.cos, (1, 0, mp.mpf(-0.5)), 4)
    erf = remainder(mp.erf, (0, 1), 1)
    root = mp.sqrt(2)
    far, tail = ENDS[dtype]
    yield (
        "EXP",
        "(exp(r) - 1 - r) / r², |r| < ln 2 / 2",
        Fit(remainder(mp.exp, (1, 1), 2), lambda r: abs(r) + mp.mpf(2) ** -20, -HALF_LN2, HALF_LN2),
    )
    if dtype == "float32":
        words = "(log(1 + f) - f + f² / 2) / f³, 1 + f from √½ to √2"
        yield (
            "LOG",
            words,
            Fit(remainder(mp.log1p, (0, 1, mp.mpf(-0.5)), 3), lambda f: f * f + 1e-9, 1 / root - 1, root - 1),
        )
    else:
        words = "(2 artanh(h) - 2 h) / h³ of h², h = f / (2 + f), 1 + f from √½ to √2"
        end = ((root - 1) / (root + 1)) ** 2
        yield "LOG", words, Fit(of_square(remainder(lambda h: 2 * mp.atanh(h), (0, 2), 3)), lambda w: w + 1e-9, 0, end)
    yield "SIN", "(sin(r) - r) / r³ of r², |r| < π / 4", Fit(of_square(sin), lambda z: z + 1e-9, 0, QUARTER_PI**2)
    yield (
        "COS",
        "(cos(r) - 1 + r² / 2) / r⁴ of r², |r| < π / 4",
        Fit(of_square(cos), lambda z: z * z + 1e-9, 0, QUARTER_PI**2),
    )
    arc = of_square(remainder(mp.atan, (0, 1), 3))
    yield "ATAN", "(atan(u) - u) / u³ of u², |u| < tan(π / 8)", Fit(arc, lambda z: z + 1e-9, 0, EIGHTH_TURN**2)
    yield "ERF", "erf(x) / x - 1 of x², |x| < 1", Fit(of_square(erf), lambda z: 1, 0, 1)
    yield (
        "LOG_ERFC",
        "log(erfc(1 + u)), by what it changes erf",
        Fit(lambda u: mp.log(mp.erfc(1 + u)), lambda u: mp.erfc(1 + u), 0, far),
    )
    yield (
        "TAIL",
        "(x + c) exp(x²) erfc(x) - 1 of (x - c) / (x + c), x ≥ 0, with c = TAIL_CENTRE",
        Fit(scaled_tail, lambda t: 1 / (1 + scaled_tail(t)), mp.mpf(-1), (tail - TAIL_CENTRE) / (tail + TAIL_CENTRE)),
    )


def rounded(dtype: str, number: Real) -> float:
    """Return the nearest number of a dtype."""
    return c_float(float(number)).value if dtype == "float32" else float(number)


def parts(dtype: str, number: Real, count: int) -> list[float]:
    """Split a positive number into positive numbers of a dtype, whose partial sums approach it.

    If a part were negative, a sum of products with 0 would lose the sign of a zero.
    """
    summands: list[float] = []
    for _ in range(count - 1):
        residual = number - mp.fsum(summands)
        nearest = rounded(dtype, residual)
        summands.append(
            nearest if nearest < residual else rounded(dtype, residual * (1 - mp.mpf(2) ** -SIGNIFICANT_BITS[dtype]))
        )
    return [*summands, rounded(dtype, number - mp.fsum(summands))]


def text(dtype: str, number: float) -> str:
    """Return a number in the fewest digits that identify it."""
    if dtype == "float64":
        return repr(number)
    return next(t for d in range(1, 18) if struct.pack("f", float(t := f"{number:.{d}g}")) == struct.pack("f", number))


def module() -> str:
    """Compute all coefficients, and return the text of the generated module."""
    mp.mp.dps = 50
    tables: dict[str, tuple[str, dict[str, list[float]]]] = {
        "LN2": ("ln 2, in parts", {}),
        "HALF_PI": ("π / 2, in parts", {}),
        "HALF_ROOT_PI": ("√π / 2, in parts", {}),
    }
    for dtype, degrees in DEGREES.items():
        tables["LN2"][1][dtype] = parts(dtype, mp.log(2), 2)
        tables["HALF_PI"][1][dtype] = parts(dtype, mp.pi / 2, 3)
        tables["HALF_ROOT_PI"][1][dtype] = parts(dtype, mp.sqrt(mp.pi) / 2, 2)
        for name, words, fit in [*fits(dtype), *(single_fits() if dtype == "float32" else ())]:
            coefficients = [rounded(dtype, c) for c in least_error(fit, degrees[name])]
            _, table = tables.setdefault(name, (words, {}))
            table[dtype] = coefficients
            error = max(
                abs(fit.weight(x) * (fit.function(x) - mp.polyval(coefficients[::-1], x)))
                for x in mp.linspace(fit.start, fit.end, 300)
            )
            print(f"{dtype} {name}: off by {mp.nstr(error, 2)}", flush=True)
    tables_text = "".join(written(name, *table) for name, table in tables.items())
    return HEAD.format(centre=TAIL_CENTRE) + tables_text


def written(name: str, words: str, table: dict[str, list[float]]) -> str:
    """Return a table as code."""
    lines = [f"#: {words}\n{name}: Final = {{\n"]
    for dtype, numbers in table.items():
        lines.append(f'    "{dtype}": (\n' + "".join(f"        {text(dtype, n)},\n" for n in numbers) + "    ),\n")
    return "".join([*lines, "}\n"])


if __name__ == "__main__":
    FILE.write_text(module(), encoding="utf-8")
