"""The pool with real workers: callers share buffers without seeing each other's data."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import orjson
import pytest
from safetensors.numpy import load, save

from service.api.media import SAFETENSORS
from service.core.settings import Settings
from service.workers.pool import run_task
from service.workers.process_pool import ProcessPool
from service.workers.task import Reply, Task
from tests.service.support import node
from tests.service.workers.pools import running, settled, together, until

N = 20_000


def body(values: np.ndarray) -> bytes:
    """sum(w · (x + w)) for the caller's w and a constant x of the graph, both in the body's own memory."""
    graph = {"nodes": [node("parameter"), node("constant"), node("add", 0, 1), node("mul", 0, 2), node("sum", 3)]}
    tensors = {"feeds.0": values, "constants.1": np.full(N, 3.0)}
    return save(tensors, metadata={"request": orjson.dumps({"graph": graph}).decode()})


async def ask(pool: ProcessPool, sent: bytes) -> Reply:
    """The reply to a body that was received into memory of its own."""
    memory = pool.allocate(len(sent))
    memory.view[:] = sent
    job = Task("gradients", memory.view, "id", 60.0, time.monotonic() + 60, SAFETENSORS, SAFETENSORS, memory=memory)
    return await run_task(pool, job)


@pytest.mark.slow
@running
async def test_body_is_read_in_place_and_released() -> None:
    pool = ProcessPool(Settings(device="cpu", workers=1, log_level="error"))
    await pool.start()
    try:
        allocations = set()
        for scale in range(8):
            values = np.full(N, float(scale))
            reply = await ask(pool, body(values))
            assert reply.status == 200, reply.body
            answer = load(reply.body)
            np.testing.assert_array_equal(answer["gradients.0"], 2 * values + 3)
            reply.release()
            await until(lambda: settled(pool))
            allocations |= {buffer.number for idle in pool._body_memory.buffers._idle.values() for buffer in idle}
        assert len(allocations) <= 2, "buffers are not used again: something holds on to bodies"
    finally:
        await pool.close(5)


@pytest.mark.slow
@running
async def test_concurrent_callers_get_their_own_answers() -> None:
    pool = ProcessPool(Settings(device="cpu", workers=2, log_level="error"))
    await pool.start()

    async def ask_repeatedly(scale: int) -> None:
        values = np.full(N, float(scale))
        for _ in range(5):
            reply = await ask(pool, body(values))
            np.testing.assert_array_equal(load(reply.body)["gradients.0"], 2 * values + 3)
            reply.release()
            await asyncio.sleep(0)

    try:
        await together(*map(ask_repeatedly, range(12)))
        await until(lambda: settled(pool))
    finally:
        await pool.close(5)
