"""Recorded functions under JAX's transformations, compared with JAX itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.recording import namespace as xp

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402 - it needs JAX
from jax.test_util import check_grads  # noqa: E402

from gradserve_client.jax import layer  # noqa: E402

RNG = np.random.default_rng(9)
X, W = RNG.standard_normal((4, 3)), RNG.standard_normal((3, 2))
XS, WS = RNG.standard_normal((5, 4, 3)), RNG.standard_normal((5, 3, 2))


def hidden(x: Any, w: Any) -> Any:
    return xp.tanh(x @ w)


def loss(x: Any, w: Any) -> Any:
    return xp.sum(xp.square(xp.tanh(x @ w)))


def jax_hidden(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w)


def jax_loss(x: Any, w: Any) -> Any:
    return jnp.sum(jnp.square(jnp.tanh(x @ w)))


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def summed(f: Any) -> Any:
    return lambda *args: jnp.sum(f(*args) ** 2)


def mapped_then_differentiated(f: Any) -> Any:
    return jax.grad(lambda x, w: jnp.sum(jax.vmap(f, (0, None))(x, w) ** 2), (0, 1))


def scanned(f: Any) -> Any:
    def along(xs: Any, w: Any) -> Any:
        return jax.lax.scan(lambda total, x: (total + jnp.sum(f(x, w)), None), 0.0, xs)[0]

    return jax.jit(jax.grad(along, 1))


#: a transformation, and the arguments of its result
TRANSFORMED = {
    "alone": (lambda f: f, X, W),
    "jit": (jax.jit, X, W),
    "grad": (lambda f: jax.grad(summed(f), (0, 1)), X, W),
    "jit of value_and_grad": (lambda f: jax.jit(jax.value_and_grad(summed(f), 1)), X, W),
    "jvp": (lambda f: lambda x, w: jax.jvp(f, (x, w), (2 * x, w + 1)), X, W),
    "jvp by one": (lambda f: lambda x, w: jax.jvp(lambda w: f(x, w), (w,), (w + 1,)), X, W),
    "jvp of jit": (lambda f: lambda x, w: jax.jvp(jax.jit(f), (x, w), (2 * x, w + 1)), X, W),
    "vjp": (lambda f: lambda x, w: jax.vjp(f, x, w)[1](f(x, w)), X, W),
    "linearize": (lambda f: lambda x, w: jax.linearize(f, x, w)[1](x, w), X, W),
    "vmap": (jax.vmap, XS, WS),
    "vmap of one, along its last axis": (lambda f: jax.vmap(f, (None, 2), -1), X, np.moveaxis(WS, 0, 2)),
    "vmap of vmap": (lambda f: jax.vmap(jax.vmap(f, (None, 0)), (0, None)), XS, WS),
    "vmap of vmap of both": (lambda f: jax.vmap(jax.vmap(f)), np.stack([XS, -XS]), np.stack([WS, WS + 1])),
    "jit of vmap of grad": (lambda f: jax.jit(jax.vmap(jax.grad(summed(f)))), XS, WS),
    "grad of vmap": (mapped_then_differentiated, XS, W),
    "jacfwd": (lambda f: jax.jacfwd(f, (0, 1)), X, W),
    "jacrev": (lambda f: jax.jacrev(f, (0, 1)), X, W),
    "hessian": (lambda f: jax.hessian(f, (0, 1)), X, W),
    "jit of hessian": (lambda f: jax.jit(jax.hessian(f, 1)), X, W),
    "vmap of hessian": (lambda f: jax.vmap(jax.hessian(f, 1)), XS, WS),
    "jacrev of jacrev": (lambda f: jax.jacrev(jax.jacrev(f)), X, W),
    "jacfwd of jacfwd": (lambda f: jax.jacfwd(jax.jacfwd(f)), X, W),
    "jacrev of jacfwd": (lambda f: jax.jacrev(jax.jacfwd(f)), X, W),
    "third derivatives": (lambda f: jax.jacfwd(jax.hessian(f, 1), 1), X, W),
    "grad of checkpoint": (lambda f: jax.grad(jax.checkpoint(summed(f))), X, W),
    "grad of scan": (scanned, XS, W),
}


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize(("f", "own"), [(hidden, jax_hidden), (loss, jax_loss)])
def test_transformation_matches_jax(client: gs.Client, name: str, f: Any, own: Any) -> None:
    transform, *arguments = TRANSFORMED[name]
    inputs = [jnp.asarray(each) for each in arguments]
    results = jax.tree.leaves(transform(layer(gs.function(f, client=client)))(*inputs))
    expected = jax.tree.leaves(transform(own)(*inputs))
    for one, other in zip(results, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert np.allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", [hidden, loss])
def test_check_grads(client: gs.Client, f: Any) -> None:
    check_grads(layer(gs.function(f, client=client)), (jnp.asarray(X), jnp.asarray(W)), order=2)


def test_batched_call_is_one_request(client: gs.Client, sent: list[Any]) -> None:
    f = layer(gs.function(loss, client=client))
    jax.block_until_ready(jax.jit(jax.vmap(jax.grad(f)))(XS, WS))
    assert [each.call for each in sent] == ["batch"]
    sent.clear()
    jax.block_until_ready(jax.vmap(jax.vmap(f, (None, 0)), (0, None))(XS, WS))
    assert [each.call for each in sent] == ["batch"]


def test_scalar_value_and_gradients_are_one_request(client: gs.Client, sent: list[Any]) -> None:
    jax.block_until_ready(jax.jit(jax.value_and_grad(layer(gs.function(loss, client=client)), (0, 1)))(X, W))
    assert [each.call for each in sent] == ["forward"]


def test_jit_calls_send_requests_and_trace_once(client: gs.Client, sent: list[Any]) -> None:
    f = jax.jit(layer(gs.function(loss, client=client)))
    assert [np.round(f(X, scale * W), 12) for scale in (1.0, 2.0)] == [
        np.round(jax_loss(X, scale * W), 12) for scale in (1.0, 2.0)
    ]
    assert len(sent) == 2
    assert f._cache_size() == 1


def test_trees_integers_and_resident_tensors(client: gs.Client) -> None:
    def f(parts: Any, n: Any, *, kind: Any = "sum") -> Any:
        x = parts["x"] * n * parts["kept"]
        return {"value": getattr(xp, kind)(x * x), "at": xp.argmax(x), "all": [x, n]}

    remote = layer(gs.function(f, client=client))
    resident = client.put("kept", 2 * np.ones(3))
    x, n = jnp.array([1.0, 3.0, 2.0]), jnp.array([1, 2, 1])

    def value(x: Any) -> Any:
        return remote({"x": x, "kept": resident}, n)["value"]

    result = remote({"x": x, "kept": resident}, n)
    assert (result["value"], result["at"]) == (4 + 144 + 16, 1)
    assert result["all"][1].tolist() == [1, 2, 1]
    assert jax.jit(jax.grad(value))(x).tolist() == [8, 96, 16]
    assert np.allclose(jax.hessian(value)(x), np.diag([8, 32, 8]))
    _, moved = jax.jvp(lambda x: remote({"x": x, "kept": resident}, n), (x,), (x,))
    assert moved["value"] == 2 * 164
    assert moved["at"].dtype == jax.dtypes.float0
    assert (
        jax.grad(lambda n: remote({"x": x, "kept": resident}, n)["value"], allow_int=True)(n).dtype == jax.dtypes.float0
    )


def test_python_numbers_become_arrays(client: gs.Client) -> None:
    remote = layer(gs.function(lambda x, y: x * x * y, client=client))
    assert jax.grad(remote)(3.0, 2.0) == 12
    assert jax.grad(remote)(3.0, np.float32(2.0)).dtype == np.float64
    assert jax.grad(jax.grad(remote))(3.0, 2) == 4


def test_without_x64_recording_uses_float32(client: gs.Client) -> None:
    f = gs.function(loss, client=client)
    with jax.enable_x64(False):
        gradient = jax.jit(jax.grad(layer(f), 1))(X, W)
        assert gradient.dtype == np.float32
        expected = jax.grad(jax_loss, 1)(X, W)
        assert np.allclose(gradient, expected, rtol=1e-5)
        wide = layer(gs.function(lambda x: xp.sum(xp.astype(x, xp.float64)), client=client))
        with pytest.raises(gs.InputError, match="returns float64, which JAX supports only with jax_enable_x64"):
            wide(X)
    assert layer(f)(X, W).dtype == np.float64


def test_gradient_has_the_dtype_of_its_argument(client: gs.Client) -> None:
    wide = layer(gs.function(lambda x: xp.sum(xp.astype(x, xp.float64) ** 2), client=client))
    x = jnp.ones(3, jnp.float32)
    value, gradient = jax.value_and_grad(wide)(x)
    assert (value.dtype, gradient.dtype) == (np.float64, np.float32)
    assert jax.jvp(wide, (x,), (x,))[1].dtype == np.float64


def test_errors_are_raised(client: gs.Client) -> None:
    remote = layer(gs.function(loss, client=client))
    with pytest.raises(gs.InputError, match="the last axis of one must match"):
        jax.grad(remote)(X, W.T)
    guarded = layer(gs.function(lambda x: x if x > 0 else -x, client=client, values="guarded"))
    with pytest.raises(gs.RecordingError, match="no values yet"):
        guarded(1.0)
    gone = client.put("gone", np.ones(3))
    taking = layer(gs.function(lambda x, w: xp.sum(x * w), client=client))
    client.delete(gone)
    with pytest.raises(gs.NotFoundError):
        taking(jnp.ones(3), gone)
    with pytest.raises(jax.errors.JaxRuntimeError, match="NotFoundError"):
        jax.block_until_ready(jax.jit(lambda x: taking(x, gone))(jnp.ones(3)))
