"""Recorded functions with an asynchronous client: the calls of the others, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.recording import namespace as xp
from tests.conftest import RunningServer

W, X, Y = np.array([0.5, -1.0, 2.0]), np.arange(15.0).reshape(5, 3) / 10, np.arange(5.0)


def loss(w: Any, x: Any, y: Any) -> Any:
    return xp.mean(xp.square(xp.tanh(x @ w) - y))


#: calls, and what they take beside the arguments
CALLS: dict[str, dict[str, Any]] = {
    "value": {},
    "grad": {"wrt": ("w", "y")},
    "value_and_grad": {},
    "vjp": {"cotangents": 2.0},
    "jvp": {"tangents": W},
    "hvp": {"vectors": W},
    "hessian": {},
    "jacobian": {},
}


def awaited(server: RunningServer, use: Callable[[gs.AsyncClient], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with gs.AsyncClient(server.url) as client:
            return await use(client)

    return asyncio.run(run())


@pytest.mark.parametrize("call", CALLS)
def test_calls_give_what_those_of_the_other_client_give(server: RunningServer, client: gs.Client, call: str) -> None:
    found = awaited(server, lambda c: getattr(gs.function(loss, client=c), call)(W, X, y=Y, **CALLS[call]))
    expected = getattr(gs.function(loss, client=client), call)(W, X, y=Y, **CALLS[call])
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True):
        assert np.allclose(one, other, rtol=1e-14, atol=1e-14)


def test_batches_checks_plans_and_graphs(server: RunningServer) -> None:
    async def use(client: gs.AsyncClient) -> None:
        recorded = gs.function(client=client, static="axis")(lambda x, axis=None: xp.sum(x * x, axis=axis))
        values, gradients = await recorded.batch(X, wrt=0)
        assert np.allclose(values, (X**2).sum(1))
        assert np.allclose(gradients, 2 * X)
        assert np.allclose(await recorded(X, axis=0), (X**2).sum(0))
        assert (await recorded.check(X)).passed
        assert (await recorded.plan(X)).admitted
        assert [node.op for node in await recorded.graph(X)] == ["input", "mul", "sum"]

    awaited(server, use)


def test_many_at_once(server: RunningServer) -> None:
    async def use(client: gs.AsyncClient) -> list[Any]:
        recorded = gs.function(loss, client=client)
        return await asyncio.gather(*(recorded(scale * W, X, Y) for scale in range(8)))

    expected = [np.mean((np.tanh(X @ (scale * W)) - Y) ** 2) for scale in range(8)]
    assert np.allclose(awaited(server, use), expected)


def test_what_the_server_keeps_is_asked_for_its_type(server: RunningServer) -> None:
    async def use(client: gs.AsyncClient) -> Any:
        await client.put("kept", W)
        recorded = gs.function(lambda w: xp.sum(w**3), client=client)
        return await recorded.grad(gs.Resident("kept", ""))

    assert np.allclose(awaited(server, use), 3 * W**2)


def test_within_another_function_it_is_a_part_of_that(server: RunningServer, client: gs.Client) -> None:
    async def use(other: gs.AsyncClient) -> Any:
        inner = gs.function(loss, client=other)
        outer = gs.function(lambda w, x, y: 2 * inner(w, x, y), client=other)
        return await outer(W, X, Y)

    assert np.isclose(awaited(server, use), 2 * gs.function(loss, client=client)(W, X, Y))


def test_it_may_not_look_at_values(server: RunningServer) -> None:
    async def use(client: gs.AsyncClient) -> Any:
        with pytest.raises(gs.InputError, match="cannot be awaited"):
            gs.function(abs, client=client, values="guarded")
        return await gs.function(lambda x: x if x > 0 else -x, client=client)(1.0)

    with pytest.raises(gs.RecordingError, match="has no value yet"):
        awaited(server, use)
