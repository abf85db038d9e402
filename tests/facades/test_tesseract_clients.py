"""Tesseract's own clients, unmodified: the core, and JAX through it, each against JAX itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.service.facades.fitting import FIT, INPUTS, W, X, Y

# The clients leave connections for the garbage collector to close.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

core = pytest.importorskip("tesseract_core", reason="make test-facades installs it")
jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy


def loss(x: Any, w: Any, y: Any) -> Any:
    return jnp.mean((x @ w - y) ** 2)


def residual(x: Any, w: Any, y: Any) -> Any:
    return jnp.tanh(x @ w - y)


@pytest.fixture(scope="module")
def model(url: str) -> Any:
    return core.Tesseract.from_url(f"{url}/tesseract/{FIT}")


@pytest.fixture(scope="module")
def served(model: Any) -> Any:
    """The two functions, called from JAX through the server."""
    from tesseract_jax import apply_tesseract

    def call(x: Any, w: Any, y: Any) -> Any:
        return apply_tesseract(model, {"x": x, "w": w, "y": y}, vmap_method="sequential")

    return lambda *inputs: call(*inputs)["loss"], lambda *inputs: call(*inputs)["residual"]


class TestCore:
    """NumPy arrays in and out."""

    def test_values(self, model: Any) -> None:
        assert model.health() == {"status": "ok"}
        result = model.apply(INPUTS)
        np.testing.assert_allclose(result["residual"], residual(X, W, Y), 1e-14)
        np.testing.assert_allclose(result["loss"], loss(X, W, Y), 1e-14)

    def test_derivatives(self, model: Any) -> None:
        jacobian = model.jacobian(INPUTS, ["w", "x"], ["residual"])
        for i, name in ((1, "w"), (0, "x")):
            np.testing.assert_allclose(jacobian["residual"][name], jax.jacobian(residual, i)(X, W, Y), 1e-12)
        cotangent = np.array([1.0, -1.0, 2.0])
        pulled = model.vector_jacobian_product(INPUTS, ["w"], ["residual"], {"residual": cotangent})
        np.testing.assert_allclose(pulled["w"], jax.vjp(residual, X, W, Y)[1](cotangent)[1], 1e-12)

    def test_types(self, model: Any) -> None:
        types = {name: {"shape": list(value.shape), "dtype": "float64"} for name, value in INPUTS.items()}
        assert model.abstract_eval(types)["residual"] == {"shape": [3], "dtype": "float64"}

    def test_both_output_formats(self, url: str) -> None:
        model = core.Tesseract.from_url(f"{url}/tesseract/{FIT}")
        for form in ("json", "json+base64"):
            result = model.with_encoding(output_format=form).apply(INPUTS)
            np.testing.assert_allclose(result["residual"], residual(X, W, Y), 1e-14)

    def test_refusal_is_a_validation_error_with_our_message(self, model: Any) -> None:
        from pydantic import ValidationError

        for inputs, message in (
            (INPUTS | {"x": np.ones((3, 3))}, "“x” must be an array of shape"),
            ({"x": X}, "“w” is missing"),
        ):
            with pytest.raises(ValidationError, match=message):
                model.apply(inputs)


class TestJax:
    """JAX transformations of a function that runs on the server."""

    def test_grad_and_jit(self, served: Any) -> None:
        remote, _ = served
        np.testing.assert_allclose(jax.grad(remote, 1)(X, W, Y), jax.grad(loss, 1)(X, W, Y), 1e-12)
        value, (grad_x, grad_w) = jax.jit(jax.value_and_grad(remote, (0, 1)))(X, W, Y)
        np.testing.assert_allclose(value, loss(X, W, Y), 1e-14)
        np.testing.assert_allclose(grad_x, jax.grad(loss, 0)(X, W, Y), 1e-12)
        np.testing.assert_allclose(grad_w, jax.grad(loss, 1)(X, W, Y), 1e-12)

    def test_jvp(self, served: Any) -> None:
        _, remote = served
        tangent = jax.jvp(lambda w: remote(X, w, Y), (W,), (W,))[1]
        np.testing.assert_allclose(tangent, jax.jvp(lambda w: residual(X, w, Y), (W,), (W,))[1], 1e-12)

    def test_vmap(self, served: Any) -> None:
        remote, _ = served
        many = jnp.stack([W, 2 * W, -W])
        np.testing.assert_allclose(
            jax.vmap(lambda w: remote(X, w, Y))(many), jax.vmap(lambda w: loss(X, w, Y))(many), 1e-14
        )
        np.testing.assert_allclose(
            jax.vmap(jax.grad(lambda w: remote(X, w, Y)))(many),
            jax.vmap(jax.grad(lambda w: loss(X, w, Y)))(many),
            1e-12,
        )

    def test_jacobian(self, served: Any) -> None:
        _, remote = served
        expected = jax.jacobian(lambda w: residual(X, w, Y))(W)
        np.testing.assert_allclose(jax.jacrev(lambda w: remote(X, w, Y))(W), expected, 1e-12)
        np.testing.assert_allclose(jax.jacfwd(lambda w: remote(X, w, Y))(W), expected, 1e-12)
