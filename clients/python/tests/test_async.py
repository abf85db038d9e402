"""The client for asyncio: the same calls with the same results, and the same retries."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

import httpx
import numpy as np
import pytest

import gradserve_client as gs
from clients.python.tests.scripted import FORWARD, Clock, Script, answer, problem, square
from tests.conftest import RunningServer

CALLS = ["forward", "gradients", "vjp", "jvp", "jacobian", "hvp", "hessian", "batch", "check", "plan", "differentiate"]


def public(owner: type) -> dict[str, Any]:
    return {name: each for name, each in vars(owner).items() if not name.startswith("_")}


def test_sync_and_async_methods_have_the_same_signatures() -> None:
    sync, other = public(gs.Client), public(gs.AsyncClient)
    assert sync.keys() == other.keys()
    for name, method in sync.items():
        assert inspect.signature(method).parameters == inspect.signature(other[name]).parameters, name
        assert method.__doc__ == other[name].__doc__


def test_registered_graphs_have_all_calls() -> None:
    for owner in (gs.RegisteredGraph, gs.AsyncRegisteredGraph):
        assert [*public(owner)] == CALLS


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(main)


def test_session_with_a_real_server(server: RunningServer) -> None:
    graph = gs.Graph()
    x, w = graph.input("x"), graph.parameter("w")
    loss = (x * w).sum()
    large = np.arange(10_000.0)

    async def session() -> None:
        async with gs.AsyncClient(server.url) as client:
            handle = await client.put("weights", large)
            model = await client.register(graph)
            one, other = await asyncio.gather(
                client.gradients(graph, {x: large, w: large}),
                model.gradients({x: large, w: handle}, store={loss: "loss"}),
            )
            assert (one.gradients[w] == large).all()
            assert (other.gradients[w] == large).all()
            assert (await client.get(other.stored[loss])).array == one.value
            assert {"loss", "weights"} <= {listed.name async for listed in client.tensors(limit=1)}
            assert model.graph_id in [listed.graph_id async for listed in client.graphs(limit=1)]
            with pytest.raises(gs.GraphError, match="over_budget"):
                await model.gradients({x: large, w: large}, memory_budget=large.nbytes)
            curved = await model.hessian({x: [1.0, 2.0], w: [3.0, 4.0]}, wrt=[w, x], layout="matrix")
            assert curved.matrix is not None
            assert (curved.matrix.array == np.kron([[0, 1], [1, 0]], np.eye(2))).all()
            assert curved.matrix.offsets[x] == (2, 2)
            await client.delete(handle)
            with pytest.raises(gs.NotFoundError):
                await client.get(handle)

    run(session())


def test_retries_wait_without_blocking() -> None:
    clock = Clock()
    script = Script(httpx.ReadError("lost"), problem(503, "queue_full", 2), answer(200, FORWARD))

    async def session() -> Any:
        surroundings = clock.surroundings()
        opened = gs.AsyncClient("http://s", transport=script, surroundings=surroundings, sleep=clock.sleep_async)
        async with opened as client:
            return (await client.forward(square()[0], store={1: "w"})).value

    assert run(session()) == 9
    assert clock.waits == [0.375, 2]
    assert script.keys() == ["key-1"] * 3


def test_call_can_be_cancelled() -> None:
    class Never(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

    begun = asyncio.Event()

    async def session() -> None:
        async with gs.AsyncClient("http://s", transport=Never()) as client:
            call = asyncio.ensure_future(client.forward(square()[0]))
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    run(session())
