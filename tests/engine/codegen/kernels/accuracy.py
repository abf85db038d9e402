"""Errors of the functions of compiled kernels, in units in the last place of the exact value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from engine.codegen.functions.elementary import CIRCULAR_LIMIT, FORMATS
from engine.codegen.functions.expansions import expand_functions
from engine.codegen.kernels.compiled import bind_native, compile_kernel, native_kernel
from engine.codegen.kernels.program import FUNCTIONS, FusedKernel, KernelBuilder, Level, Scalar, Space
from engine.codegen.native.native_call import make_calls

Array = np.ndarray[Any, Any]

#: range in which a function varies: points are spread over it, and more densely near 0 and 1
RANGES = {
    "exp": (-746, 710), "expm1": (-40, 710), "log": (0, 9), "log1p": (-1, 9), "log2": (0, 9), "tanh": (-20, 20),
    "sin": (-400, 400), "cos": (-400, 400), "erf": (-6, 6), "erfc": (-6, 28),
    "lgamma": (0, 40), "trigamma": (0, 12), "erfinv": (-1, 1), "log_ndtr": (-20, 15),
}  # fmt: skip
#: functions that are defined only to the right of a number
LEAST = {"log": 0, "log1p": -1, "log2": 0, "lgamma": 0, "trigamma": 0}
#: largest permitted error, in units in the last place
PROMISED = {"float32": 2.5, "float64": 2.0}
DTYPES = tuple(PROMISED)
#: functions of one operand but sech2, which tests/numerics holds; and those implemented in float32 only
NAMES = tuple(name for name in FUNCTIONS if name not in ("mod", "sech2"))
SINGLE = ("lgamma", "trigamma", "erfinv", "log_ndtr")
CASES = tuple((name, dtype) for name in NAMES for dtype in DTYPES if dtype == "float32" or name not in SINGLE)


class LargestError(NamedTuple):
    """The largest error and its argument."""

    ulps: float
    x: float


def loop_of(formula: Callable[[Scalar], Scalar], dtype: str) -> FusedKernel:
    """Build a kernel of a formula of one operand."""
    builder = KernelBuilder(dtype)
    builder.store("element", formula(builder.load(Level.ELEMENT)))
    return builder.build()


def compiled(loop: FusedKernel, operands: Sequence[Array], lanes: int = 16) -> list[Array]:
    """Run a loop on dense vectors; return its element results and totals."""
    loop = expand_functions(loop)
    length = operands[0].size
    kinds = [result.kind for result in loop.results]
    results = [np.empty(length if kind == "element" else (), loop.dtype) for kind in kinds]
    strides = [(length,)] * len(operands) + [(length,) if kind == "element" else () for kind in kinds]
    space = Space((1,), length, length, 1, tuple(strides))
    kernel = native_kernel(loop, lanes, compile_kernel(loop, lanes))
    make_calls(bind_native(kernel, loop, space, operands, results))
    return results


def points(name: str, dtype: str, number: int) -> Array:
    """Return fixed arguments of a function: random bits, so all exponents; its range; and points near 0 and 1."""
    generator = np.random.default_rng(1)
    low, high = RANGES[name]
    width = FORMATS[dtype].width
    bits = generator.integers(0, 2**width, number, dtype=f"uint{width}").view(dtype)
    spread = generator.uniform(low, high, number)
    near_one = generator.uniform(max(low, -1.5), min(high, 1.5), number)
    quarters = np.round(generator.uniform(-1, 1, number) * CIRCULAR_LIMIT[dtype]) * (np.pi / 4)
    extra = quarters if name in ("sin", "cos") else generator.uniform(max(low, -0.01), 0.01, number)
    arguments = np.concatenate([bits, *(part.astype(dtype) for part in (spread, near_one, extra))])
    arguments = arguments[np.isfinite(arguments)]
    if name in ("sin", "cos"):
        arguments = arguments[abs(arguments) <= CIRCULAR_LIMIT[dtype]]
    if name == "erfinv":
        return arguments[abs(arguments) < 1]
    return arguments[arguments > LEAST[name]] if name in LEAST else arguments


def farthest(name: str, dtype: str, number: int) -> LargestError:
    """Find the largest error of a function at its `points`."""
    x = points(name, dtype, number)
    (y,) = compiled(loop_of(lambda x: getattr(x, name)(), dtype), [x])[:1]
    errors = _float32_errors(name, x, y) if dtype == "float32" else _float64_errors(name, x, y)
    worst = int(np.argmax(errors))
    return LargestError(float(errors[worst]), float(x[worst]))


def _float32_errors(name: str, x: Array, y: Array) -> Array:
    """Compare with float64, whose own error is negligible."""
    with np.errstate(all="ignore"):
        exact = in_float64(name, x.astype(np.float64))
        ulp = np.ldexp(1.0, np.maximum(np.frexp(exact)[1], -125) - 24)
        errors = np.abs(y - exact) / ulp
        return np.where(y == exact.astype(np.float32), np.minimum(np.nan_to_num(errors, posinf=0), 0.5), errors)


def in_float64(name: str, x: Array) -> Array:
    """Compute the function with NumPy or SciPy."""
    from scipy import special

    if name == "trigamma":
        return np.asarray(special.zeta(2.0, x))
    if name == "log_ndtr":  # SciPy is off by hundreds of units on the right
        return np.where(x < 1, special.log_ndtr(x), np.log1p(-0.5 * special.erfc(x * np.sqrt(0.5))))
    if name == "lgamma":
        return np.asarray(special.gammaln(x))
    return np.asarray(getattr(special if name.startswith("erf") else np, name)(x))


def _float64_errors(name: str, x: Array, y: Array) -> Array:
    import mpmath as mp

    with mp.workdps(40):
        return np.array([_error(exact(name, a), b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])


def _error(exact: Any, actual: float) -> float:
    import mpmath as mp

    if mp.isinf(actual) or not exact:
        return 0.0 if abs(exact) >= mp.mpf(2) ** 1024 * (1 - mp.mpf(2) ** -54) or exact == actual else float("inf")
    return float(abs(actual - exact) / mp.mpf(2) ** (max(mp.mag(exact), -1021) - 53))


@cache
def _exact_function(name: str) -> Callable[[Any], Any]:
    import mpmath as mp

    return (lambda x: mp.log(x) / mp.ln2) if name == "log2" else getattr(mp, name)  # type: ignore[no-any-return]


def exact(name: str, x: float) -> Any:
    """Compute the function with the working precision of mpmath."""
    import mpmath as mp

    # mpmath fails on large arguments of erfc, which is 0 or 2 there to any number of digits
    return _exact_function(name)(mp.mpf(max(-50.0, min(x, 50.0)) if name.startswith("erf") else x))
