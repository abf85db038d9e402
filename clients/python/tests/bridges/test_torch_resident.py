"""PyTorch modules whose parameters stay on the server, compared with local modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.recording import namespace as xp

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gradserve_client.torch import ResidentModule  # noqa: E402 - it needs PyTorch

RNG = np.random.default_rng(8)
X, Y = torch.tensor(RNG.standard_normal((16, 3))), torch.tensor(RNG.standard_normal((16, 1)))
W, B = RNG.standard_normal((3, 2)), RNG.standard_normal(2)


def hidden(x: Any, w: Any, b: Any) -> Any:
    return xp.tanh(x @ w + b)


def descent(parameter: Any, gradient: Any, rate: Any) -> Any:
    return parameter - rate * gradient


def adam(parameter: Any, gradient: Any, m: Any, v: Any, step: Any) -> Any:
    m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
    step_size, scale = 0.05 / (1 - 0.9**step), 1 - 0.999**step
    return parameter - step_size * m / (xp.sqrt(v / scale) + 1e-8), m, v


class Local(torch.nn.Module):  # type: ignore[misc]
    """The same layer with local parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = torch.nn.Parameter(torch.tensor(W)), torch.nn.Parameter(torch.tensor(B))

    def forward(self, x: Any) -> Any:
        return torch.tanh(x @ self.w + self.b)


@pytest.fixture
def make_module(client: gs.Client) -> Callable[..., Any]:
    """Factory of modules with tensors of their own."""
    names = iter("abcdefgh")

    def make(update: Any = descent, **options: Any) -> Any:
        name = next(names)
        residents = {"w": client.put(f"{name}.w", W), "b": client.put(f"{name}.b", B)}
        return ResidentModule(gs.function(hidden, client=client), residents, update=update, **options)

    return make


def last_layer() -> Any:
    torch.manual_seed(0)
    return torch.nn.Linear(2, 1, dtype=torch.float64)


def test_trains_to_the_weights_of_a_local_module(make_module: Callable[..., Any]) -> None:
    remote, last = make_module(adam, states=("m", "v")), last_layer()
    optimizer = torch.optim.Adam(last.parameters(), lr=0.05)
    local, local_last = Local(), last_layer()
    whole = torch.optim.Adam([*local.parameters(), *local_last.parameters()], lr=0.05)
    for step in range(1, 21):
        for each, module, end in ((optimizer, remote, last), (whole, local, local_last)):
            each.zero_grad()
            torch.nn.functional.mse_loss(end(module(X)), Y).backward()
            each.step()
        remote.step(float(step))
    fetched = remote.fetched()
    assert not torch.allclose(local.w, torch.tensor(W), atol=0.1)
    assert (fetched["w"] - local.w).abs().max() < 1e-12
    assert (fetched["b"] - local.b).abs().max() < 1e-12
    assert all((a - b).abs().max() < 1e-12 for a, b in zip(last.parameters(), local_last.parameters(), strict=True))


def test_gradients_accumulate_until_a_step(make_module: Callable[..., Any]) -> None:
    remote, local = make_module(), Local()
    x = X.clone().requires_grad_()
    own_x = X.clone().requires_grad_()
    for module, inputs in ((remote, x), (local, own_x)):
        (module(inputs) * module(2 * inputs)).sum().backward()
        module(inputs).sum().backward()
    assert torch.allclose(x.grad, own_x.grad, rtol=1e-12, atol=1e-12)
    remote.step(0.5)
    fetched = remote.fetched()
    assert torch.allclose(fetched["w"], local.w - 0.5 * local.w.grad, rtol=1e-12, atol=1e-12)
    assert torch.allclose(fetched["b"], local.b - 0.5 * local.b.grad, rtol=1e-12, atol=1e-12)


def test_parameters_and_gradients_stay_on_the_server(client: gs.Client, sent: list[Any]) -> None:
    large = {"w": client.put("large.w", np.ones((300, 300)))}
    remote = ResidentModule(
        gs.function(lambda x, w: xp.sum(xp.tanh(x @ w)) * 1e-3, client=client), large, update=descent
    )
    received: list[int] = []
    client._transport._http.event_hooks["response"] = [
        lambda response: received.append(int(response.headers["content-length"]))
    ]
    sent.clear()
    remote(np.ones(300) * 1e-3).backward()
    remote.step(0.1)
    assert [each.call for each in sent] == ["forward"] * 3
    assert max(each.size for each in sent) < 10_000
    assert max(received) < 10_000
    assert (remote.fetched()["w"] != 1).all()


def test_step_clears_the_gradients(make_module: Callable[..., Any]) -> None:
    remote = make_module()
    with pytest.raises(gs.InputError, match="no gradients"):
        remote.step(0.1)
    remote(X).sum().backward()
    remote.step(0.0)
    with pytest.raises(gs.InputError, match="no gradients"):
        remote.step(0.1)
    remote(X).sum().backward()
    remote.zero_grad()
    with pytest.raises(gs.InputError, match="no gradients"):
        remote.step(0.1)


def test_backward_after_a_step_is_refused(make_module: Callable[..., Any]) -> None:
    remote = make_module()
    early, late = remote(X).sum(), remote(X).sum()
    early.backward()
    remote.step(0.1)
    with pytest.raises(gs.InputError, match="a step was taken"):
        late.backward()


def test_update_may_return_one_array_twice(client: gs.Client, make_module: Callable[..., Any]) -> None:
    remote = make_module(
        lambda parameter, gradient, last, before: (parameter, gradient, gradient), states=("last", "before")
    )
    remote(X).sum().backward()
    remote.step()
    name = remote.residents["w"].name
    fetched = [client.get(f"{name}.{state}").array for state in ("grad", "last", "before")]
    assert fetched[0].any()
    assert np.array_equal(fetched[0], fetched[1])
    assert np.array_equal(fetched[0], fetched[2])
    assert torch.equal(remote.fetched()["w"], torch.tensor(W))


def test_update_must_preserve_shape_and_dtype(make_module: Callable[..., Any]) -> None:
    remote = make_module(lambda parameter, gradient: xp.sum(parameter - gradient))
    remote(X).sum().backward()
    with pytest.raises(gs.InputError, match=r"the update returns .* must return values for [a-h]\.w, [a-h]\.b"):
        remote.step()
    assert torch.equal(remote.fetched()["w"], torch.tensor(W))


def test_second_derivatives_are_refused(make_module: Callable[..., Any]) -> None:
    x = X.clone().requires_grad_()
    with pytest.raises(gs.InputError, match="cannot be differentiated again"):
        torch.autograd.grad(make_module()(x).sum(), x, create_graph=True)


def test_type_of_an_untyped_handle_is_requested(client: gs.Client) -> None:
    client.put("bare.w", W)
    bare = gs.Resident("bare.w", "")
    f = gs.function(lambda x, w: xp.sum(x @ w), client=client)
    remote = ResidentModule(f, {"w": bare}, update=descent)
    remote(X).backward()
    remote.step(1.0)
    assert torch.allclose(remote.fetched()["w"], torch.tensor(W) - X.sum(0)[:, None])
