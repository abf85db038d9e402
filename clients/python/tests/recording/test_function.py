"""Recorded functions: arguments of every kind, all calls, and when they are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.recording import default_client
from gradserve_client.recording import namespace as xp
from tests.conftest import RunningServer

RNG = np.random.default_rng(22)
W, X, Y = RNG.standard_normal(3), RNG.standard_normal((5, 3)), RNG.standard_normal(5)


def loss(w: Any, x: Any, y: Any) -> Any:
    return xp.mean(xp.square(xp.tanh(x @ w) - y))


def numpy_loss(w: Any, x: Any = X, y: Any = Y) -> Any:
    return np.mean(np.square(np.tanh(x @ w) - y))


def differences(f: Any, w: Any, step: float = 1e-6) -> Any:
    moves = step * np.eye(w.size).reshape(w.size, *w.shape)
    return np.array([(f(w + move) - f(w - move)) / 2 / step for move in moves])


@pytest.fixture(scope="module")
def recorded(client: gs.Client) -> gs.Function:
    return gs.function(loss, client=client)


def test_values_and_derivatives(recorded: gs.Function) -> None:
    gradient = differences(numpy_loss, W)
    hessian = differences(lambda w: differences(numpy_loss, w, 1e-4), W, 1e-4)
    assert np.isclose(recorded(W, X, Y), numpy_loss(W))
    assert np.isclose(recorded.value(W, x=X, y=Y), numpy_loss(W))
    assert np.allclose(recorded.grad(W, X, Y), gradient, atol=1e-8)
    value, actual = recorded.value_and_grad(W, X, Y)
    assert np.isclose(value, numpy_loss(W))
    assert np.allclose(actual, gradient, atol=1e-8)
    assert np.allclose(recorded.vjp(W, X, Y, cotangents=2.0)[1], 2 * gradient, atol=1e-8)
    assert np.allclose(recorded.jvp(W, X, Y, tangents=W)[1], gradient @ W, atol=1e-8)
    assert np.allclose(recorded.hessian(W, X, Y), hessian, atol=1e-6)
    assert np.allclose(recorded.hvp(W, X, Y, vectors=W), hessian @ W, atol=1e-6)
    assert np.allclose(recorded.jacobian(W, X, Y), gradient, atol=1e-8)
    assert recorded.check(W, X, Y, directions=2).passed
    assert recorded.check(W, X, Y, wrt=("w", "x"), tolerance=1e-3).passed


def test_derivatives_with_respect_to_chosen_arguments(recorded: gs.Function) -> None:
    grad_w, grad_y = recorded.grad(W, X, Y, wrt=("w", 2))
    assert np.allclose(grad_w, recorded.grad(W, X, Y))
    assert np.allclose(grad_y, recorded.grad(W, X, y=Y, wrt="y"))
    (ww, wy), (yw, yy) = recorded.hessian(W, X, Y, wrt=(0, 2))
    assert [block.shape for block in (ww, wy, yw, yy)] == [(3, 3), (3, 5), (5, 3), (5, 5)]
    assert np.allclose(wy, yw.T)
    assert np.allclose(recorded.jvp(W, X, Y, wrt=(0, 2), tangents=(W, Y))[1], grad_w @ W + grad_y @ Y)
    products = recorded.hvp(W, X, Y, wrt=(0, 2), vectors=(W, Y))
    assert np.allclose(products[0], ww @ W + wy @ Y)


def test_batch(recorded: gs.Function) -> None:
    many = RNG.standard_normal((4, 3))
    values = recorded.batch(many, X, Y, mapped="w")
    assert np.allclose(values, [numpy_loss(w) for w in many])
    values, gradients = recorded.batch(many, X, Y, mapped=0, wrt="w")
    assert np.allclose(gradients, [recorded.grad(w, X, Y) for w in many])
    alone = gs.function(lambda x: xp.sum(x * x), client=recorded.client)
    assert np.allclose(alone.batch(many), (many**2).sum(1))
    with pytest.raises(gs.InputError, match="no axis of examples"):
        alone.batch(1.0)


def test_batch_jacobians(client: gs.Client) -> None:
    """The Jacobians of a function with several results; a function with two arrays is refused."""
    recorded = gs.function(lambda w, a: xp.sin(a @ w), client=client)
    many, a = RNG.standard_normal((4, 3)), RNG.standard_normal((2, 3))
    values, jacobians = recorded.batch(many, a, mapped="w", wrt="w")
    assert np.allclose(values, np.sin(many @ a.T))
    assert jacobians.shape == (4, 2, 3)
    assert np.allclose(jacobians, [recorded.jacobian(w, a) for w in many])
    assert np.allclose(jacobians, np.cos(many @ a.T)[..., None] * a)
    total, summed = recorded.batch(many, a, mapped="w", wrt="a", reduce="sum", block=2)
    assert np.allclose(total, values.sum(0))
    assert np.allclose(summed, sum(recorded.jacobian(w, a, wrt="a") for w in many))
    assert recorded.plan(many, a, call="batch", mapped="w").admitted
    with pytest.raises(gs.InputError, match=r"one array of floats, but this one returns float64\[3\], float64\[3\]"):
        gs.function(lambda w: (w, w * 2), client=client).batch(many, wrt=0)


def test_batch_reductions(client: gs.Client) -> None:
    """Sums over the rows of x and y, and over examples of a guarded function."""
    loss = gs.function(lambda w, x, y: xp.sum((xp.tanh(x @ w) - y) ** 2), client=client)
    whole, gradient = loss.value_and_grad(W, X, Y)
    for block in (None, 1, 2):
        value, actual = loss.batch(W, X, Y, mapped=("x", "y"), wrt="w", reduce="sum", block=block)
        assert np.allclose(value, whole, 1e-12)
        assert np.allclose(actual, gradient, 1e-12)
    assert np.allclose(loss.batch(W, X, Y, mapped=("x", "y"), reduce="mean"), whole / len(X), 1e-12)
    assert loss.plan(W, X, Y, call="batch", mapped=("x", "y"), reduce="sum", block=2).fields["blocks"] > 1
    signed = gs.function(lambda w: w * 2 if xp.sum(w) > 0 else w * 3, client=client, values="guarded")
    positive = np.abs(np.array([W, W + 1, W + 2]))
    assert np.allclose(signed.batch(positive, reduce="sum"), 2 * positive.sum(0))
    with pytest.raises(gs.RecordingError, match="examples of a batch differ"):
        signed.batch(np.concatenate([positive, -positive]), reduce="sum")


def test_plans_and_graphs(recorded: gs.Function) -> None:
    for call in ("forward", "gradients", "vjp", "jvp", "jacobian", "hessian", "hvp"):
        assert recorded.plan(W, X, Y, call=call).admitted
    assert recorded.plan(np.array([W, W]), X, Y, call="batch", mapped="w").admitted
    graph = recorded.graph(W, X, Y)
    assert [node.op for node in graph] == ["input", "input", "input", "matmul", "tanh", "sub", "square", "mean"]
    assert [node.name for node in graph][:3] == ["w", "x", "y"]


class Parameters(NamedTuple):
    weight: Any
    bias: Any


def test_lists_tuples_and_dicts(client: gs.Client) -> None:
    def f(layers: Any, scale: Any, flag: Any = None) -> Any:
        first, second = layers
        total = xp.sum(first.weight * first.bias) * scale + xp.sum(second["w"][0] ** 2)
        return {"total": total if flag else -total, "parts": [first.bias, (scale, None, 1.5)]}

    recorded = gs.function(f, client=client)
    layers = [Parameters(W, np.float64(2.0)), {"w": [Y]}]
    value = recorded(layers, 3.0, flag=True)
    assert np.isclose(value["total"], 6 * W.sum() + (Y**2).sum())
    assert value["parts"][0] == 2
    assert value["parts"][1] == (3, None, 1.5)
    total = gs.function(lambda *args, **kwargs: f(*args, **kwargs)["total"], client=client)
    assert np.isclose(total(layers, 3.0), -value["total"])
    gradient = total.grad(layers, 3.0, flag=True)
    assert isinstance(gradient[0], Parameters)
    assert np.allclose(gradient[0].weight, 6)
    assert np.allclose(gradient[1]["w"][0], 2 * Y)
    assert np.isclose(total.grad(layers, 3.0, wrt=1, flag=True), 2 * W.sum())
    pulled = recorded.vjp(layers, 3.0, flag=True, wrt=1, cotangents={"total": 1.0, "parts": [0.0, (5.0, None, 0.0)]})[1]
    assert np.isclose(pulled, 2 * W.sum() + 5)
    rows = recorded.jacobian(layers, 3.0, flag=True, wrt=(0, 1))
    assert np.allclose(rows["total"][0][1]["w"][0], 2 * Y)
    assert rows["parts"][1][0][1] == 1


def test_function_is_recorded_once_per_argument_types(client: gs.Client) -> None:
    times: list[Any] = []

    def f(x: Any, axis: Any = None) -> Any:
        times.append((x.dtype.name, x.shape, axis))
        return xp.sum(x * x, axis=axis)

    recorded = gs.function(f, client=client, static="axis")
    for array in (W, 2 * W, W.astype(np.float32), X, X + 1, [1.0], 1.0, 2.0, 3):
        if not isinstance(array, list):
            recorded(array)
    recorded(X, axis=0)
    recorded(X + 1, axis=0)
    recorded(X, axis=1)
    assert times == [
        ("float64", (3,), None),
        ("float32", (3,), None),
        ("float64", (5, 3), None),
        ("float64", (), None),
        ("int64", (), None),
        ("float64", (5, 3), 0),
        ("float64", (5, 3), 1),
    ]


def test_later_calls_send_only_arrays(client: gs.Client) -> None:
    recorded = gs.function(loss, client=client)
    recorded(W, X, Y)
    sent: list[str] = []
    client._transport._http.event_hooks = {"request": [lambda request: sent.append(request.url.path)]}
    recorded(W + 1, X, Y)
    recorded.grad(W, X, Y)
    client._transport._http.event_hooks = {"request": []}
    assert [path.split("/")[2] for path in sent] == ["graphs", "graphs"]
    assert [path.split("/")[-1] for path in sent] == ["forward", "gradients"]


def test_resident_tensors_as_arguments(recorded: gs.Function, client: gs.Client) -> None:
    handle = client.put("recorded.w", W)
    assert np.isclose(recorded(handle, X, Y), numpy_loss(W))
    assert np.allclose(recorded.grad(handle, X, Y), recorded.grad(W, X, Y))
    untyped = gs.Resident(handle.name, handle.etag)
    assert np.isclose(recorded(untyped, X, Y), numpy_loss(W))
    guarded = gs.function(lambda w: w if xp.sum(w) > 0 else -w, client=client, values="guarded")
    assert np.allclose(guarded(handle), W * np.sign(W.sum()))
    many = client.put("recorded.many", np.array([W, W]))
    assert np.allclose(guarded.batch(many), np.array([W, W]) * np.sign(W.sum()))


def test_nested_recorded_functions(client: gs.Client, recorded: gs.Function) -> None:
    outer = gs.function(lambda w: recorded(2 * w, X, Y) * 3, client=client)
    assert np.isclose(outer(W), 3 * numpy_loss(2 * W))


def test_decorator(client: gs.Client) -> None:
    @gs.function(client=client)
    def twice(x: Any) -> Any:
        """Two of it."""
        return 2 * x

    assert twice(W).tolist() == (2 * W).tolist()
    assert (twice.__name__, twice.__doc__) == ("twice", "Two of it.")
    assert "twice" in repr(twice)


@pytest.fixture
def default_server(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(default_client.URL_VARIABLE, server.url)
    default_client.default_client.cache_clear()
    yield
    default_client.default_client().close()
    default_client.default_client.cache_clear()


@pytest.mark.usefixtures("default_server")
def test_default_client_uses_the_environment_variable() -> None:
    assert gs.function(lambda x: x + 1)(1.0) == 2


def test_repeated_and_constant_outputs(client: gs.Client) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return y, y, x, np.arange(2.0)

    recorded = gs.function(f, client=client)
    assert [part.tolist() for part in recorded(W)] == [(2 * W).tolist()] * 2 + [W.tolist(), [0, 1]]
    pulled = recorded.vjp(W, cotangents=(np.ones(3), np.ones(3), np.ones(3), np.ones(2)))[1]
    assert pulled.tolist() == [5, 5, 5]


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda f: f.grad(W, X, Y, wrt="z"), "no argument 'z'; the arguments are w, x, y"),
        (lambda f: f.grad(W, X, np.ones(5, int), wrt="y"), "y is int64"),
        (lambda f: f(W, X, {1, 2}), "set .*not an array, number, list"),
        (lambda f: f(W, X, Y.astype(np.uint16)), "uint16"),
        (lambda f: f.hvp(W, X, Y, wrt=(0, 1), vectors=(W,)), "a tuple of 2 is missing"),
        (lambda f: f.hvp(W, X, Y, wrt=(0, 1), vectors={0: W, 2: X}), "vectors have no entry for 1"),
    ],
)
def test_invalid_arguments_are_refused(recorded: gs.Function, ask: Any, told: str) -> None:
    with pytest.raises((gs.InputError, TypeError), match=told):
        ask(recorded)


def test_invalid_results_are_refused(client: gs.Client) -> None:
    vector = gs.function(lambda x: x * 2, client=client)
    with pytest.raises(gs.InputError, match=r"grad needs a function that returns one float.*float64\[3\]"):
        vector.grad(W)
    whole = gs.function(lambda x: (x, xp.argmax(x)), client=client)
    asks: list[Any] = [whole.jacobian, lambda x: whole.jvp(x, tangents=x), lambda x: whole.vjp(x, cotangents=(x, 0))]
    for ask in asks:
        with pytest.raises(gs.InputError, match="returns int64"):
            ask(W)
    with pytest.raises(gs.InputError, match="returns no array"):
        gs.function(lambda x: None, client=client)(W)


def test_server_refusal_names_the_users_line(client: gs.Client) -> None:
    recorded = gs.function(xp.take, client=client)
    with pytest.raises(gs.GraphError, match=r"test_function.py:\d+"):
        recorded(W, np.array([7]))
