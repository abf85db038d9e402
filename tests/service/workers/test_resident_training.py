"""Training with `store` on real workers: parameters stay on the server, and none is ever stale."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

import numpy as np
import orjson
import pytest
from safetensors.numpy import load, save

from service.api.media import SAFETENSORS
from service.core.settings import Settings
from service.store.tables import TensorVersion
from service.workers.pool import run_task
from service.workers.process_pool import ProcessPool
from service.workers.task import GET_TENSOR, PUT_TENSOR, Reply, Task
from tests.service.support import feed, node, request
from tests.service.workers.pools import running, settled, until

RATE = 0.1


class ServerState:
    """The part of a front that keeps stored tensors."""

    def __init__(self, pool: ProcessPool) -> None:
        self.pool = pool

    async def ask(self, call: str, body: bytes, **more: Any) -> Reply:
        """The reply to a job, once its values are stored. A job whose worker was killed is sent again."""
        while True:
            job = Task(call, body, "id", 60.0, time.monotonic() + 60, **more)
            reply = await run_task(self.pool, job)
            if reply.status != 503:
                break
        assert reply.status == 200, reply.body
        for stored, data in zip(reply.stored, reply.stored_data, strict=True):
            memory = self.pool.allocate_tensor(len(data))
            memory.view[:] = data
            self.pool.place(job.namespace, stored.name, TensorVersion(stored.dtype, stored.shape, stored.etag, memory))
        return reply

    async def put(self, name: str, array: np.ndarray) -> None:
        """Store a tensor."""
        reply = await self.ask(PUT_TENSOR, save({"any": array}), body_type=SAFETENSORS, subject=name)
        reply.release()

    async def get(self, name: str) -> np.ndarray:
        """Read a tensor."""
        reply = await self.ask(GET_TENSOR, orjson.dumps({"tensor_id": name}), answer_type=SAFETENSORS)
        array = load(reply.body)[name]
        reply.release()
        return array


def step(x: np.ndarray) -> bytes:
    """One step for w and b on mean((x · w + b)²), and a count of steps; none of them is returned."""
    nodes = [
        node("parameter"), node("parameter"), node("input"), node("matmul", 2, 0), node("add", 3, 1), node("square", 4),
        node("mean", 5), node("grad", 6, 0), node("grad", 6, 1), node("mul_scalar", 7, scalar=RATE), node("sub", 0, 9),
        node("mul_scalar", 8, scalar=RATE), node("sub", 1, 11), node("input"), node("add_scalar", 13, scalar=1),
    ]  # fmt: skip
    residents = [{"node": 0, "tensor_id": "w"}, {"node": 1, "tensor_id": "b"}, {"node": 13, "tensor_id": "steps"}]
    stores = [{"node": 10, "tensor_id": "w"}, {"node": 12, "tensor_id": "b"}, {"node": 14, "tensor_id": "steps"}]
    feeds = [*residents, feed(2, list(x.shape), x.ravel().tolist())]
    return orjson.dumps(request(*nodes, feeds=feeds, outputs=[6], store=stores))


def step_with_numpy(w: np.ndarray, b: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same step in NumPy."""
    r = x @ w + b
    return w - RATE * 2 * x.T @ r / r.size, b - RATE * 2 * r.sum(0) / r.size


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(8, 3), (400, 60)], ids=["in frames", "in buffers"])
@pytest.mark.parametrize("kills", [0, 4])
def test_updates_match_a_client_side_computation(n: int, m: int, kills: int) -> None:
    asyncio.run(_train(n, m, kills))


async def _train(n: int, m: int, kills: int, steps: int = 60) -> None:
    rng = np.random.default_rng(n)
    pool = ProcessPool(Settings(device="cpu", workers=2, log_level="error", compile="off"))
    await pool.start()
    front, done = ServerState(pool), asyncio.Event()
    w, b = rng.normal(size=(n, m)) / n, np.zeros(m)
    try:
        for name, array in {"w": w, "b": b, "steps": np.zeros(())}.items():
            await front.put(name, array)

        async def look() -> None:
            """Check that the count that other callers see never decreases."""
            before = 0.0
            while not done.is_set():
                seen = float(await front.get("steps"))
                assert seen >= before
                before = seen

        async def kill() -> None:
            for _ in range(kills):
                await asyncio.sleep(0.2)
                await until(lambda: pool._supervisor.working)
                os.kill(pool._supervisor.working[-1].pid, signal.SIGKILL)

        others = [asyncio.create_task(look()), asyncio.create_task(look())]
        killer, taken = asyncio.create_task(kill()), 0
        while taken < steps or not killer.done():
            taken += 1
            x = rng.normal(size=(4, n))
            reply = await front.ask("forward", step(x))
            assert [one["tensor_id"] for one in orjson.loads(reply.body)["stored"]] == ["w", "b", "steps"]
            reply.release()
            w, b = step_with_numpy(w, b, x)
        done.set()
        await asyncio.gather(*others)
        assert float(await front.get("steps")) == taken
        np.testing.assert_allclose(await front.get("w"), w, 1e-10, 1e-12)
        np.testing.assert_allclose(await front.get("b"), b, 1e-10, 1e-12)
        await until(lambda: settled(pool))
    finally:
        await pool.close(5)


@pytest.mark.slow
@running
async def test_tensor_round_trip() -> None:
    """Test both encodings, several sizes, and another namespace."""
    pool = ProcessPool(Settings(device="cpu", workers=1, log_level="error"))
    await pool.start()
    front = ServerState(pool)
    try:
        for size in (0, 1, 1000, 100_000):
            array = np.arange(size, dtype=np.float32)
            await front.put("a", array)
            np.testing.assert_array_equal(await front.get("a"), array)
            query = orjson.dumps({"tensor_id": "a", "encoding": "json"})
            reply = await front.ask(GET_TENSOR, query)
            assert orjson.loads(reply.body)["tensor"]["data"] == array.tolist()
            assert dict(reply.headers) == {"ETag": f'"{pool.residents["", "a"].etag}"'}
            reply.release()
        missing = await run_task(
            pool, Task(GET_TENSOR, b'{"tensor_id":"a"}', "id", 9, time.monotonic() + 9, namespace="n")
        )
        assert missing.status == 404
        await until(lambda: settled(pool))
    finally:
        await pool.close(5)
