"""Recorded functions that SciPy minimises, fits and integrates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.recording import namespace as xp
from gradserve_client.scipy import Objective, Residuals, System

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")
integrate = pytest.importorskip("scipy.integrate", reason="SciPy is not installed")

START = np.array([1.3, 0.7, 0.8, 1.9, 1.2])


def rosen(x: Any, steepness: Any = 100.0) -> Any:
    return xp.sum(steepness * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.fixture
def objective(client: gs.Client) -> Objective:
    return Objective(gs.function(rosen, client=client))


def test_minimize_with_exact_hessians(objective: Objective) -> None:
    result = optimize.minimize(
        objective.fun, START, jac=objective.jac, hess=objective.hess, method="trust-exact", options={"gtol": 1e-10}
    )
    reference = optimize.minimize(
        optimize.rosen,
        START,
        jac=optimize.rosen_der,
        hess=optimize.rosen_hess,
        method="trust-exact",
        options={"gtol": 1e-10},
    )
    assert result.success
    assert np.allclose(result.x, 1, rtol=1e-9)
    assert (result.nit, result.nfev, result.nhev) == (reference.nit, reference.nfev, reference.nhev)


@pytest.mark.parametrize(
    ("method", "tolerance"), [("Newton-CG", "xtol"), ("trust-ncg", "gtol"), ("trust-krylov", "gtol")]
)
def test_minimize_with_hessian_vector_products(objective: Objective, method: str, tolerance: str) -> None:
    arguments = {"jac": objective.jac, "hessp": objective.hessp, "method": method, "options": {tolerance: 1e-9}}
    assert np.allclose(optimize.minimize(objective.fun, START, **arguments).x, 1, atol=1e-6)


def test_value_and_gradient_are_one_request(objective: Objective, sent: list[Any]) -> None:
    result = optimize.minimize(objective.fun, START, jac=objective.jac, method="BFGS")
    assert np.allclose(result.x, 1, atol=1e-4)
    assert [each.call for each in sent] == ["gradients"] * result.nfev


def test_cached_gradient_matches_point_and_arguments(objective: Objective) -> None:
    objective.fun(START, 1.0)
    x = START.copy()
    assert np.allclose(objective.jac(START, 1.0), optimize.approx_fprime(START, objective.fun, 1e-7, 1.0), atol=1e-4)
    objective.fun(x, 1.0)
    x += 1
    assert np.allclose(objective.jac(x, 100.0), optimize.rosen_der(x))
    objective.fun(START, 1.0)
    assert np.allclose(objective.jac(START, 100.0), optimize.rosen_der(START))
    assert np.allclose(objective.jac(START), optimize.rosen_der(START))
    assert np.allclose(objective.hess(START), optimize.rosen_hess(START))
    assert np.allclose(objective.hessp(START, x), optimize.rosen_hess_prod(START, x))


def test_least_squares(client: gs.Client, sent: list[Any]) -> None:
    t = np.linspace(0, 3, 20)
    residuals = Residuals(gs.function(lambda p, t, y: p[0] * xp.exp(-p[1] * t) - y, client=client))
    result = optimize.least_squares(residuals.fun, [1.0, 1.0], jac=residuals.jac, args=(t, 2 * np.exp(-1.5 * t)))
    assert np.allclose(result.x, [2, 1.5])
    assert [each.call for each in sent].count("jacobian") == result.njev


def test_solve_ivp(client: gs.Client) -> None:
    system = System(gs.function(lambda t, y, mu: xp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]), client=client))

    def fun(_: float, y: Any, mu: float) -> Any:
        return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]

    def jac(_: float, y: Any, mu: float) -> Any:
        return [[0, 1], [-2 * mu * y[0] * y[1] - 1, mu * (1 - y[0] ** 2)]]

    result, reference = (
        integrate.solve_ivp(f, (0, 20), [2.0, 0.0], method="BDF", jac=jacobian, args=(100.0,))
        for f, jacobian in ((system.fun, system.jac), (fun, jac))
    )
    assert result.success
    assert np.allclose(result.y[:, -1], reference.y[:, -1], rtol=1e-9)
    assert (result.nfev, result.njev) == (reference.nfev, reference.njev)
