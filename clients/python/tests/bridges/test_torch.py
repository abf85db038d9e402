"""Recorded functions as PyTorch layers, compared with PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.recording import namespace as xp
from tests.conftest import RunningServer

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gradserve_client.torch import layer  # noqa: E402 - it needs PyTorch

RNG = np.random.default_rng(7)
X, W = RNG.standard_normal((4, 3)), RNG.standard_normal((3, 2))


def hidden(x: Any, w: Any) -> Any:
    return xp.tanh(x @ w)


def loss(x: Any, w: Any) -> Any:
    return xp.sum(xp.square(xp.tanh(x @ w)))


def torch_hidden(x: Any, w: Any) -> Any:
    return torch.tanh(x @ w)


def torch_loss(x: Any, w: Any) -> Any:
    return torch.sum(torch_hidden(x, w) ** 2)


def requiring_grad(*arrays: Any) -> tuple[Any, ...]:
    return tuple(torch.tensor(array, requires_grad=True) for array in arrays)


@pytest.mark.parametrize(("f", "own"), [(hidden, torch_hidden), (loss, torch_loss)])
def test_first_and_second_order_gradients(client: gs.Client, f: Any, own: Any) -> None:
    remote = layer(gs.function(f, client=client))

    def penalty(g: Any) -> Any:
        x, w = requiring_grad(X, W)
        (slope,) = torch.autograd.grad((g(x, w) ** 2).sum(), x, create_graph=True)
        return slope, *torch.autograd.grad((slope**2).sum(), (x, w))

    for actual, expected in zip(penalty(remote), penalty(own), strict=True):
        assert torch.allclose(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", [hidden, loss])
def test_gradcheck(client: gs.Client, f: Any) -> None:
    remote = layer(gs.function(f, client=client))
    assert torch.autograd.gradcheck(remote, requiring_grad(X, W), nondet_tol=1e-12)
    assert torch.autograd.gradgradcheck(remote, requiring_grad(X, W), nondet_tol=1e-12)


@pytest.fixture(scope="module")
def bitwise(start_server: Callable[..., RunningServer]) -> Iterator[gs.Client]:
    with gs.Client(start_server("--determinism", "bitwise").url) as client:
        yield client


@pytest.mark.parametrize("f", [hidden, loss])
def test_gradcheck_is_bitwise_reproducible(bitwise: gs.Client, f: Any) -> None:
    remote = layer(gs.function(f, client=bitwise))
    assert torch.autograd.gradcheck(remote, requiring_grad(X, W))
    assert torch.autograd.gradgradcheck(remote, requiring_grad(X, W))


def test_scalar_value_and_gradients_are_one_request(client: gs.Client, sent: list[Any]) -> None:
    (w,) = requiring_grad(W)
    value = layer(gs.function(loss, client=client))(torch.tensor(X), w)
    assert len(sent) == 1
    (3 * value).backward()
    assert len(sent) == 1
    assert torch.allclose(w.grad, 3 * torch.autograd.grad(torch_loss(torch.tensor(X), w), w)[0])


def test_array_gradients_are_requested_in_the_backward_pass(client: gs.Client, sent: list[Any]) -> None:
    (w,) = requiring_grad(W)
    layer(gs.function(hidden, client=client))(torch.tensor(X), w).sum().backward()
    assert len(sent) == 2


def test_no_gradients_without_requires_grad(client: gs.Client, sent: list[Any]) -> None:
    remote = layer(gs.function(loss, client=client))
    (w,) = requiring_grad(W)
    with torch.no_grad():
        assert not remote(torch.tensor(X), w).requires_grad
    alone, with_gradient = remote(torch.tensor(X), torch.tensor(W)), remote(torch.tensor(X), w)
    assert not alone.requires_grad
    assert with_gradient.requires_grad
    assert len(sent) == 3


def trained(hidden: Callable[[Any, Any], Any]) -> list[Any]:
    """Train a model around a given layer with twenty steps of Adam, and return its weights."""
    generator = np.random.default_rng(3)
    x, y = (torch.tensor(generator.standard_normal(shape)) for shape in ((16, 3), (16, 1)))
    torch.manual_seed(0)
    last = torch.nn.Linear(2, 1, dtype=torch.float64)
    (w,) = requiring_grad(W)
    optimizer = torch.optim.Adam([w, *last.parameters()], lr=0.05)
    for _ in range(20):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(last(hidden(x, w)), y).backward()
        optimizer.step()
    return [w, *last.parameters()]


def test_remote_layer_trains_to_the_weights_of_a_local_layer(client: gs.Client) -> None:
    remote, local = trained(layer(gs.function(hidden, client=client))), trained(torch_hidden)
    assert not torch.allclose(local[0], torch.tensor(W), atol=0.1)
    for actual, expected in zip(remote, local, strict=True):
        assert (actual - expected).abs().max() < 1e-12


def test_trees_integers_and_resident_tensors(client: gs.Client) -> None:
    def f(parts: Any, scale: Any, *, power: Any = 1, kind: Any = "sum") -> Any:
        x = parts["x"] * scale * parts["kept"]
        return {"value": getattr(xp, kind)(x**power), "at": xp.argmax(x), "all": [x, power]}

    remote = layer(gs.function(f, client=client))
    resident = client.put("kept", 2 * np.ones(3))
    x = torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64, requires_grad=True)
    result = remote({"x": x, "kept": resident}, np.array([1.0, 2.0, 1.0]), power=torch.tensor(2))
    assert result["value"] == 4 + 144 + 16
    assert result["at"] == 1
    assert not result["at"].requires_grad
    assert result["all"][1] == 2
    (result["value"] + result["all"][0].sum()).backward()
    assert x.grad.tolist() == [8 + 2, 96 + 4, 16 + 2]


def test_dtype_is_that_of_the_tensors(client: gs.Client) -> None:
    remote = layer(gs.function(hidden, client=client))
    x, w = (torch.tensor(array, dtype=torch.float32, requires_grad=True) for array in (X, W))
    value = remote(x, w)
    value.sum().backward()
    assert value.dtype == w.grad.dtype == torch.float32
    mixed = remote(x, torch.tensor(W))
    assert mixed.dtype == torch.float64
    mixed.sum().backward()
    assert x.grad.dtype == torch.float32
    with pytest.raises(gs.InputError, match="bfloat16"):
        remote(x.bfloat16(), w)


def test_slices_and_transposes_are_accepted(client: gs.Client) -> None:
    remote = layer(gs.function(hidden, client=client))
    x = torch.tensor(RNG.standard_normal((3, 8)), requires_grad=True)
    actual = remote(x.T[::2], torch.tensor(W))
    expected = torch_hidden(x.T[::2], torch.tensor(W))
    (gradient,), (own) = torch.autograd.grad(actual.sum(), x), torch.autograd.grad(expected.sum(), x)
    assert torch.allclose(gradient, own[0])


def test_functions_with_guarded_values(client: gs.Client) -> None:
    remote = layer(gs.function(lambda r: r * r / 2 if abs(r) < 1 else abs(r) - 0.5, client=client, values="guarded"))
    for point, slope in ((0.5, 0.5), (3.0, 1.0), (-0.25, -0.25), (-4.0, -1.0)):
        (r,) = requiring_grad(point)
        remote(r).backward()
        assert r.grad == slope


def test_layer_has_the_name_of_the_function() -> None:
    assert layer(gs.function(hidden)).__name__ == "hidden"
