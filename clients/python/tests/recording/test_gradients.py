"""Gradients of the namespace's functions, compared with differences of NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from clients.python.tests.recording import namespace_cases as cases
from clients.python.tests.recording.namespace_cases import Case
from gradserve_client.recording import linalg, namespace

#: cholesky symmetrises its operand, unlike NumPy's
NOT_COMPARED = {"cholesky"}


def parts(result: Any) -> list[Any]:
    return [*result] if isinstance(result, list | tuple) else [result]


def total(xp: Any, case: Case, la: Any, arrays: Any) -> Any:
    """A number with a different derivative for each element of the results."""
    results = [part for part in parts(case.call(la, *arrays)) if part.dtype == np.float64]
    return sum(xp.sum(xp.sin(part + 1) * xp.reshape(xp.arange(1.0, part.size + 1), part.shape)) for part in results)


def is_compared(case: Case, la: Any) -> bool:
    """Whether a case has float inputs and outputs at which NumPy's function has derivatives."""
    first = case.arrays[0] if case.arrays else None
    if not isinstance(first, np.ndarray) or first.dtype != np.float64 or case.name in NOT_COMPARED:
        return False
    with np.errstate(all="ignore"):
        return np.isfinite(first).all() and any(part.dtype == np.float64 for part in parts(case.call(la, *case.arrays)))


def gradient_cases(candidates: list[Case], la: Any) -> list[Any]:
    """The first case of each function."""
    chosen = {case.name: case for case in reversed(candidates) if is_compared(case, la)}
    return [pytest.param(case, id=name) for name, case in chosen.items()]


def check_gradient(client: gs.Client, case: Case, la: Any, numpy_la: Any) -> None:
    def numpy_total(x: Any) -> float:
        with np.errstate(all="ignore"):
            return float(total(np, case, numpy_la, [x, *case.arrays[1:]]))

    x = case.arrays[0]
    moves = 1e-6 * np.eye(x.size).reshape(x.size, *x.shape)
    differences = np.reshape([(numpy_total(x + move) - numpy_total(x - move)) / 2e-6 for move in moves], x.shape)
    recorded = gs.function(lambda x, rest: total(namespace, case, la, [x, *rest]), client=client)
    gradient = recorded.grad(x, [*case.arrays[1:]])
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("case", gradient_cases(cases.MAIN, np))
def test_gradients_of_the_main_namespace(client: gs.Client, case: Case) -> None:
    check_gradient(client, case, namespace, np)


@pytest.mark.parametrize("case", gradient_cases(cases.LINALG, np.linalg))
def test_gradients_of_linalg(client: gs.Client, case: Case) -> None:
    check_gradient(client, case, linalg, np.linalg)
