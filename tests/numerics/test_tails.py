"""Derivatives of elementwise functions over their whole domain, against mpmath: in tails, next to 0 and at random.

Errors are in units in the last place of the exact value. Only values in the normal range count.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from engine import LATEST, Compiler, Gradients, Limits, Program, Statement, TensorType, open_executor, registry

mp: Any = pytest.importorskip("mpmath").mp.clone()
mp.dps = 60

needs_llvm = pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")
#: largest permitted errors of first and second derivatives
BOUNDS = (8.0, 32.0)
POINTS = 400


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _bell(x: Any) -> Any:
    return _sigmoid(x) * _sigmoid(-x)


def _bell_slope(x: Any) -> Any:
    return _bell(x) * (_sigmoid(-x) - _sigmoid(x))


#: first and second derivative, and the largest argument in float32 and float64, None where the domain ends at 1
EXACT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], tuple[float, float] | None]] = {
    "tanh": (lambda x: mp.sech(x) ** 2, lambda x: -2 * mp.tanh(x) * mp.sech(x) ** 2, (44.0, 354.0)),
    "sigmoid": (_bell, _bell_slope, (87.0, 708.0)),
    "log_sigmoid": (lambda x: _sigmoid(-x), lambda x: -_bell(x), (87.0, 708.0)),
    "softplus": (_sigmoid, _bell, (87.0, 708.0)),
    "asin": (lambda x: 1 / mp.sqrt(1 - x * x), lambda x: x / mp.sqrt(1 - x * x) ** 3, None),
    "acos": (lambda x: -1 / mp.sqrt(1 - x * x), lambda x: -x / mp.sqrt(1 - x * x) ** 3, None),
    "atanh": (lambda x: 1 / (1 - x * x), lambda x: 2 * x / (1 - x * x) ** 2, None),
}


def arguments(name: str, dtype: str) -> Any:
    """Return points on a logarithmic grid and at random, of both signs, which the dtype can hold."""
    ends = EXACT[name][2]
    most = 1.0 if ends is None else ends[dtype == "float64"]
    generator = np.random.default_rng(3)
    # Below 1e-12, the second derivative of a bounded function is its argument.
    x = np.concatenate([np.logspace(-12, np.log10(most) - 1e-3, POINTS // 4), generator.uniform(0, most, POINTS // 4)])
    x = np.concatenate([x, -x]).astype(dtype)
    return x[np.abs(x) < most]


def derivatives(name: str, x: Any, compile: str) -> list[Any]:
    """Return the first and second derivative at all points."""
    nodes = [("parameter", ()), (name, (0,)), ("sum", (1,)), ("grad", (2, 0)), ("sum", (3,))]
    ops = registry().ops
    statements = [Statement(ops[op], operands, {}) for op, operands in nodes]
    program = Program(registry(), statements, Limits(), opset=LATEST)
    results = []
    for of in (2, 4):
        call = Gradients.of_program(program, of)
        plan = Compiler(Limits()).compile(program, {0: TensorType.of(x)}, call).plan
        executor = open_executor("cpu", 1, "fast", compile=compile)
        feeds = {0: executor.to_device(x)}
        for _ in range(3):
            executor.execute(plan, feeds)
        executor.settle()
        results.append(executor.to_host(executor.execute(plan, feeds))[-1])
    return results


def errors(actual: Any, exact: list[Any]) -> list[float]:
    """Return the errors in units in the last place, of exact values in the normal range."""
    form = np.finfo(actual.dtype)
    found = []
    for a, b in zip(actual, exact, strict=True):
        if abs(b) >= float(form.tiny):
            unit = mp.mpf(2) ** (int(mp.floor(mp.log(abs(b), 2))) - form.nmant)
            found.append(float(abs(mp.mpf(float(a)) - b) / unit))
    return found


@pytest.mark.parametrize("compile", ["off", pytest.param("on", marks=needs_llvm)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EXACT)
def test_derivatives_keep_their_digits(name: str, dtype: str, compile: str) -> None:
    x = arguments(name, dtype)
    for actual, function, bound in zip(derivatives(name, x, compile), EXACT[name][:2], BOUNDS, strict=True):
        found = errors(actual, [function(mp.mpf(float(point))) for point in x])
        assert len(found) > POINTS // 2
        assert max(found) <= bound
