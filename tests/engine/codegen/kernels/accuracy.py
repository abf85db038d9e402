"""How far the functions of compiled kernels are from exact values, in units in the last place of the exact value."""

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

#: where a function varies: points are spread over this, and closer to 0 and to 1
RANGES = {
    "exp": (-746, 710), "expm1": (-40, 710), "log": (0, 9), "log1p": (-1, 9), "log2": (0, 9), "tanh": (-20, 20),
    "sin": (-400, 400), "cos": (-400, 400), "erf": (-6, 6), "erfc": (-6, 28),
    "lgamma": (0, 40), "trigamma": (0, 12), "erfinv": (-1, 1), "log_ndtr": (-20, 15),
}  # fmt: skip
#: functions that have a value to the right of a number only
LEAST = {"log": 0, "log1p": -1, "log2": 0, "lgamma": 0, "trigamma": 0}
#: units in the last place, which no error may exceed
PROMISED = {"float32": 2.5, "float64": 2.0}
DTYPES = tuple(PROMISED)
#: functions of one operand, and those of them that are written in float32 alone
NAMES = tuple(name for name in FUNCTIONS if name != "mod")
SINGLE = ("lgamma", "trigamma", "erfinv", "log_ndtr")
CASES = tuple((name, dtype) for name in NAMES for dtype in DTYPES if dtype == "float32" or name not in SINGLE)


class Farthest(NamedTuple):
    """The largest error found, and where."""

    ulps: float
    x: float


def loop_of(formula: Callable[[Scalar], Scalar], dtype: str) -> FusedKernel:
    """One operand, and the formula of it."""
    builder = KernelBuilder(dtype)
    builder.store("element", formula(builder.load(Level.ELEMENT)))
    return builder.build()


def compiled(loop: FusedKernel, operands: Sequence[Array], lanes: int = 16) -> list[Array]:
    """The results of a loop of dense vectors: those of elements, and totals."""
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
    """Where a function is looked at: random bits, so all exponents; its range; and near 0 and 1. Always the same."""
    generator = np.random.default_rng(1)
    low, high = RANGES[name]
    width = FORMATS[dtype].width
    bits = generator.integers(0, 2**width, number, dtype=f"uint{width}").view(dtype)
    spread = generator.uniform(low, high, number)
    near_one = generator.uniform(max(low, -1.5), min(high, 1.5), number)
    quarters = np.round(generator.uniform(-1, 1, number) * CIRCULAR_LIMIT[dtype]) * (np.pi / 4)
    extra = quarters if name in ("sin", "cos") else generator.uniform(max(low, -0.01), 0.01, number)
    found = np.concatenate([bits, *(part.astype(dtype) for part in (spread, near_one, extra))])
    found = found[np.isfinite(found)]
    if name in ("sin", "cos"):
        found = found[abs(found) <= CIRCULAR_LIMIT[dtype]]
    if name == "erfinv":
        return found[abs(found) < 1]
    return found[found > LEAST[name]] if name in LEAST else found


def farthest(name: str, dtype: str, number: int) -> Farthest:
    """The largest error of a function at its `points`."""
    x = points(name, dtype, number)
    (y,) = compiled(loop_of(lambda x: getattr(x, name)(), dtype), [x])[:1]
    errors = _of_float32(name, x, y) if dtype == "float32" else _of_float64(name, x, y)
    worst = int(np.argmax(errors))
    return Farthest(float(errors[worst]), float(x[worst]))


def _of_float32(name: str, x: Array, y: Array) -> Array:
    """By float64, whose own error does not show."""
    with np.errstate(all="ignore"):
        exact = in_float64(name, x.astype(np.float64))
        place = np.ldexp(1.0, np.maximum(np.frexp(exact)[1], -125) - 24)
        apart = np.abs(y - exact) / place
        return np.where(y == exact.astype(np.float32), np.minimum(np.nan_to_num(apart, posinf=0), 0.5), apart)


def in_float64(name: str, x: Array) -> Array:
    """The function by NumPy or SciPy."""
    from scipy import special

    if name == "trigamma":
        return np.asarray(special.zeta(2.0, x))
    if name == "log_ndtr":  # on the right SciPy's is off by hundreds of units
        return np.where(x < 1, special.log_ndtr(x), np.log1p(-0.5 * special.erfc(x * np.sqrt(0.5))))
    if name == "lgamma":
        return np.asarray(special.gammaln(x))
    return np.asarray(getattr(special if name.startswith("erf") else np, name)(x))


def _of_float64(name: str, x: Array, y: Array) -> Array:
    import mpmath as mp

    with mp.workdps(40):
        return np.array([_apart(exact(name, a), b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])


def _apart(exact: Any, found: float) -> float:
    import mpmath as mp

    if mp.isinf(found) or not exact:
        return 0.0 if abs(exact) >= mp.mpf(2) ** 1024 * (1 - mp.mpf(2) ** -54) or exact == found else float("inf")
    return float(abs(found - exact) / mp.mpf(2) ** (max(mp.mag(exact), -1021) - 53))


@cache
def _exact_function(name: str) -> Callable[[Any], Any]:
    import mpmath as mp

    return (lambda x: mp.log(x) / mp.ln2) if name == "log2" else getattr(mp, name)  # type: ignore[no-any-return]


def exact(name: str, x: float) -> Any:
    """The function in as many digits as mpmath works in."""
    import mpmath as mp

    # mpmath fails on great arguments of erfc, which is then 0 or 2 to any number of places
    return _exact_function(name)(mp.mpf(max(-50.0, min(x, 50.0)) if name.startswith("erf") else x))
