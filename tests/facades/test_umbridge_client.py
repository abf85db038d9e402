"""UM-Bridge's own Python client, unmodified: all four calls, each against JAX; and a sampler through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.facades.fitting import BOUND, FIT, W, X, Y

umbridge = pytest.importorskip("umbridge", reason="make test-facades installs it")
jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy

POINT = [X.reshape(-1).tolist(), W.tolist(), Y.tolist()]
SENS, ALONG = [1.0, -2.0, 0.5], [0.3, 0.7]


def loss(x: Any, w: Any, y: Any) -> Any:
    return jnp.mean((x @ w - y) ** 2)


def residual(x: Any, w: Any, y: Any) -> Any:
    return jnp.tanh(x @ w - y)


@pytest.fixture(scope="module")
def model(url: str) -> Any:
    return umbridge.HTTPModel(url, FIT)


def flat(array: Any) -> Sequence[float]:
    values: Sequence[float] = np.asarray(array).reshape(-1)
    return values


def test_model_metadata(url: str, model: Any) -> None:
    assert umbridge.supported_models(url) == [BOUND, FIT]
    assert (model.get_input_sizes(), model.get_output_sizes()) == ([6, 2, 3], [1, 3])
    assert model.supports_evaluate()
    assert model.supports_gradient()
    assert model.supports_apply_jacobian()
    assert model.supports_apply_hessian()


def test_values(model: Any) -> None:
    outputs = model(POINT)
    np.testing.assert_allclose(outputs[0], [loss(X, W, Y)], 1e-14)
    np.testing.assert_allclose(outputs[1], residual(X, W, Y), 1e-14)


@pytest.mark.parametrize("by", [0, 1, 2])
def test_first_derivatives(model: Any, by: int) -> None:
    _, pull = jax.vjp(residual, X, W, Y)
    np.testing.assert_allclose(model.gradient(1, by, POINT, SENS), flat(pull(jnp.array(SENS))[by]), 1e-12)
    tangents = [jnp.zeros_like(value) for value in (X, W, Y)]
    tangents[by] = jnp.linspace(-1, 2, tangents[by].size).reshape(tangents[by].shape)
    _, moved = jax.jvp(residual, (X, W, Y), tuple(tangents))
    np.testing.assert_allclose(model.apply_jacobian(1, by, POINT, flat(tangents[by]).tolist()), moved, 1e-12)


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("second", [0, 1, 2])
def test_hessians_within_and_across_inputs(model: Any, first: int, second: int) -> None:
    def weighted(*inputs: Any) -> Any:
        return jnp.sum(residual(*inputs) * jnp.array(SENS))

    block = jax.jacfwd(jax.grad(weighted, argnums=first), argnums=second)(X, W, Y)
    size = (X, W, Y)[second].size
    along = np.linspace(0.2, 1, size)
    expected = np.asarray(block).reshape(-1, size) @ along
    result = model.apply_hessian(1, first, second, POINT, SENS, along.tolist())
    np.testing.assert_allclose(result, expected, 1e-12, 1e-14)


def test_refusal_is_an_exception_with_our_message(model: Any) -> None:
    with pytest.raises(Exception, match=r"InvalidInput: .*for “x”, must have 6 numbers, but has 1"):
        model([[1.0], *POINT[1:]])


def tensor(array: Any) -> dict[str, Any]:
    return {"dtype": "float64", "shape": list(array.shape), "data": array.reshape(-1).tolist()}


def test_sampler_recovers_the_posterior_mean(url: str) -> None:
    """Gaussian prior and likelihood, for which the posterior is known: mean Λ⁻¹ Aᵀ y / σ², Λ = AᵀA / σ² + I."""
    emcee = pytest.importorskip("emcee")
    design, data, noise = np.array([[1.0, 0.5], [0.2, -1.0], [0.7, 0.7]]), np.array([0.8, -0.4, 0.9]), 0.4
    nodes: list[dict[str, Any]] = [
        {"op": "parameter"},
        {"op": "constant", "attrs": {"value": tensor(design)}},
        {"op": "constant", "attrs": {"value": tensor(data)}},
        {"op": "matmul", "operands": [1, 0]},
        {"op": "sub", "operands": [3, 2]},
        {"op": "square", "operands": [4]},
        {"op": "sum", "operands": [5]},
        {"op": "square", "operands": [0]},
        {"op": "sum", "operands": [7]},
        {"op": "mul_scalar", "operands": [6], "attrs": {"scalar": -0.5 / noise**2}},
        {"op": "mul_scalar", "operands": [8], "attrs": {"scalar": -0.5}},
        {"op": "add", "operands": [9, 10]},
    ]  # fmt: skip
    with httpx.Client(base_url=url, timeout=60) as client:
        graph_id = client.post("/v1/graphs", json={"graph": {"nodes": nodes}}).json()["graph_id"]
        leaf = {"name": "theta", "node": 0, "dtype": "float64", "shape": [2]}
        body = {"graph_id": graph_id, "inputs": [leaf], "outputs": [{"name": "logp", "node": 11}]}
        assert client.put("/v1/models/posterior", json=body).is_success
    model = umbridge.HTTPModel(url, "posterior")
    start = np.random.default_rng(0).normal(size=(16, 2))
    sampler = emcee.EnsembleSampler(16, 2, lambda theta: model([theta.tolist()])[0][0])
    sampler.random_state = np.random.RandomState(1).get_state()
    sampler.run_mcmc(start, 250)
    chain = sampler.get_chain(discard=50, flat=True)
    precision = design.T @ design / noise**2 + np.eye(2)
    mean = np.linalg.solve(precision, design.T @ data / noise**2)
    deviation = np.sqrt(np.diag(np.linalg.inv(precision)))
    error = deviation * np.sqrt(sampler.get_autocorr_time(tol=0, discard=50) / len(chain))
    assert np.all(np.abs(chain.mean(axis=0) - mean) < 4 * error)
