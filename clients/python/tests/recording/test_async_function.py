"""Recorded functions with an asynchronous client: the calls of the synchronous client, awaited."""

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


#: calls, and their options
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


def run_async(server: RunningServer, use: Callable[[gs.AsyncClient], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with gs.AsyncClient(server.url) as client:
            return await use(client)

    return asyncio.run(run())


@pytest.mark.parametrize("call", CALLS)
def test_async_calls_match_the_synchronous_client(server: RunningServer, client: gs.Client, call: str) -> None:
    actual = run_async(server, lambda c: getattr(gs.function(loss, client=c), call)(W, X, y=Y, **CALLS[call]))
    expected = getattr(gs.function(loss, client=client), call)(W, X, y=Y, **CALLS[call])
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (actual, expected)), strict=True):
        assert np.allclose(one, other, rtol=1e-14, atol=1e-14)


def test_batch_check_plan_and_graph(server: RunningServer) -> None:
    async def use(client: gs.AsyncClient) -> None:
        recorded = gs.function(client=client, static="axis")(lambda x, axis=None: xp.sum(x * x, axis=axis))
        values, gradients = await recorded.batch(X, wrt=0)
        assert np.allclose(values, (X**2).sum(1))
        assert np.allclose(gradients, 2 * X)
        assert np.allclose(await recorded(X, axis=0), (X**2).sum(0))
        assert (await recorded.check(X)).passed
        assert (await recorded.plan(X)).admitted
        assert [node.op for node in await recorded.graph(X)] == ["input", "mul", "sum"]

    run_async(server, use)


def test_concurrent_calls(server: RunningServer) -> None:
    async def use(client: gs.AsyncClient) -> list[Any]:
        recorded = gs.function(loss, client=client)
        return await asyncio.gather(*(recorded(scale * W, X, Y) for scale in range(8)))

    expected = [np.mean((np.tanh(X @ (scale * W)) - Y) ** 2) for scale in range(8)]
    assert np.allclose(run_async(server, use), expected)


def test_type_of_a_resident_tensor_is_requested(server: RunningServer) -> None:
    async def use(client: gs.AsyncClient) -> Any:
        await client.put("kept", W)
        recorded = gs.function(lambda w: xp.sum(w**3), client=client)
        return await recorded.grad(gs.Resident("kept", ""))

    assert np.allclose(run_async(server, use), 3 * W**2)


def test_nested_function_is_recorded_inline(server: RunningServer, client: gs.Client) -> None:
    async def use(other: gs.AsyncClient) -> Any:
        inner = gs.function(loss, client=other)
        outer = gs.function(lambda w, x, y: 2 * inner(w, x, y), client=other)
        return await outer(W, X, Y)

    assert np.isclose(run_async(server, use), 2 * gs.function(loss, client=client)(W, X, Y))


def test_guarded_values_are_refused(server: RunningServer) -> None:
    async def use(client: gs.AsyncClient) -> Any:
        with pytest.raises(gs.InputError, match="cannot be awaited"):
            gs.function(abs, client=client, values="guarded")
        return await gs.function(lambda x: x if x > 0 else -x, client=client)(1.0)

    with pytest.raises(gs.RecordingError, match="has no value yet"):
        run_async(server, use)
