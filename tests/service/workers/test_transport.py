"""Bodies and answers between processes: complete, cleared between callers, and released."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from service.core.errors import Refusal
from service.workers import shared_memory as shared_buffers
from service.workers.frames import INLINE
from service.workers.memory import BodyAllocation
from service.workers.pool import run_task
from service.workers.process_pool import ProcessPool
from service.workers.shared_memory import LARGEST, SharedBuffers
from service.workers.task import Reply
from tests.service.workers.pools import ask, job, processes, running, settled, together, until

SIZES = [1000, INLINE, INLINE + 1, 200_000, 1 << 20, LARGEST, LARGEST + 1]


def padded(instructions: dict[str, object], nbytes: int) -> bytes:
    return orjson.dumps(instructions).ljust(nbytes)


@pytest.mark.slow
@running
async def test_bodies_and_answers_of_all_sizes() -> None:
    async with processes(1) as pool:
        for nbytes in SIZES:
            body = padded({"seen": 1}, nbytes)
            reply = await ask(pool, body)
            assert reply.body == body
            reply.release()
            reply = await ask(pool, {"answer": nbytes})
            assert reply.body == b"a" * (nbytes - 1) + b"z"
            reply.release()
            reply.release()
        array = np.frombuffer(padded({"seen": 1}, 300_000), np.uint8)
        reply = await ask_with(pool, array)
        assert reply.body == array.tobytes()
        reply.release()
        await until(lambda: settled(pool))


async def ask_with(pool: ProcessPool, body: Any, memory: BodyAllocation | None = None) -> Reply:
    task = job(b"", memory=memory)
    task.body = body
    return await run_task(pool, task)


@pytest.mark.slow
@running
async def test_job_fields_reach_the_worker() -> None:
    async with processes(1) as pool:
        reply = await ask(pool, {"job": 1}, graph="ä", graph_bytes=b"{}", body_type="application/vnd.safetensors")
        assert orjson.loads(reply.body) == ["forward", "ä", "test", "application/vnd.safetensors", "application/json"]
        assert reply.headers == (("X-Test", "é"),)
        reply = await ask(pool, {})
        assert (reply.status, reply.body, reply.cached, reply.timings[1:]) == (
            200,
            b"done",
            True,
            (0.1, 0.2, 0.3, 0.15, 0.4),
        )
        assert reply.timings.waited > 0


@pytest.mark.slow
@running
async def test_memory_of_a_body_is_released() -> None:
    async with processes(1) as pool:
        body = padded({"seen": 1}, 100_000)
        memory = pool.allocate(1 << 20)
        assert pool.stats().reserved == 0
        memory.reserve(len(body))
        assert pool.stats().reserved == 1 << 20
        memory.view[: len(body)] = body
        reply = await ask_with(pool, memory.view[: len(body)], memory)
        assert reply.body == body
        reply.release()
        await until(lambda: settled(pool))
        memory.release()
        memory.release()
        assert settled(pool)


@pytest.mark.slow
@running
async def test_buffer_is_cleared_for_the_next_caller() -> None:
    async with processes(1) as pool:
        secret = padded({}, 120_000)
        await ask(pool, secret)
        reply = await ask(pool, padded({"spare": 20_000}, 100_000))
        assert reply.body == bytes(20_000)


@pytest.mark.slow
@running
async def test_referenced_buffer_is_not_reused() -> None:
    async with processes(1) as pool:
        first, second, third = pool.allocate(100_000), pool.allocate(100_000), pool.allocate(100_000)
        numbers = {memory.buffer.number for memory in (first, second, third)}
        for memory, instructions in ((first, {"leak": 1}), (second, {}), (third, {})):
            memory.reserve(100_000)
            memory.view[:] = padded(instructions, 100_000)
            await ask_with(pool, memory.view, memory)
        again = [pool.allocate(100_000) for _ in range(3)]
        assert len({memory.buffer.number for memory in again} & numbers) == 2
        for memory in again:
            memory.release()


@pytest.mark.slow
@running
async def test_large_buffer_is_not_pooled() -> None:
    async with processes(1) as pool:
        number = pool.allocate(LARGEST + 1).buffer.number
        pool.allocate(LARGEST).release()
        assert number not in {buffer.number for idle in pool._body_memory.buffers._idle.values() for buffer in idle}


@pytest.mark.slow
@running
async def test_held_bytes_are_bounded() -> None:
    async with processes(1, held_bytes=1 << 20) as pool:
        large, other = pool.allocate(2 << 20), pool.allocate(1)
        large.reserve(2 << 20)  # anything is accepted from a single caller
        with pytest.raises(Refusal, match="no room for 1 more") as refused:
            other.reserve(1)
        assert (refused.value.code, refused.value.retry_after) == ("queue_full", 1)
        large.release()
        assert other.reserve(1) == 1
        other.release()


@pytest.mark.slow
@running
async def test_answers_count_until_they_are_released() -> None:
    async with processes(1, held_bytes=1 << 20) as pool:
        reply = await ask(pool, {"answer": 1 << 20})
        memory = pool.allocate(1)
        with pytest.raises(Refusal):
            memory.reserve(1)
        reply.release()
        memory.reserve(1)
        memory.release()


@pytest.mark.slow
@running
async def test_graph_is_sent_to_a_worker_that_lacks_it() -> None:
    async with processes(1) as pool:
        for _ in range(3):
            reply = await ask(pool, {}, graph="g", graph_bytes=b"{}" * 100_000)
            assert reply.body == b"done"


@pytest.mark.slow
@running
async def test_worker_that_asks_twice_for_a_graph_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """No request does this: the server has the text of a graph before it creates a job that names it."""
    async with processes(1) as pool:
        reply = await ask(pool, {}, graph="h")
        assert (reply.status, b"internal_error" in reply.body) == (500, True)
    assert "a worker asked again for data that it already has" in caplog.text


@pytest.mark.slow
@running
async def test_jobs_leak_no_descriptors_or_mappings() -> None:
    async with processes(1) as pool:

        async def send_all_sizes() -> None:
            bodies = [padded({"seen": 1}, nbytes) for nbytes in (100, 100_000, 1 << 20, LARGEST + 1)]
            for reply in await together(*(ask(pool, body) for body in bodies)):
                reply.release()
            await until(lambda: settled(pool))

        pids = [worker.pid for worker in pool._supervisor]
        for _ in range(3):
            await send_all_sizes()
        before = open_resources("self"), [open_resources(pid) for pid in pids]
        for _ in range(30):
            await send_all_sizes()
        gc.collect()
        await until(lambda: open_resources("self") <= before[0])
        assert [open_resources(pid) for pid in pids] <= before[1]


def open_resources(pid: int | str) -> int:
    """Number of descriptors and of mappings of shared memory."""
    process = Path("/proc") / str(pid)
    maps = (process / "maps").read_text(encoding="utf-8")
    return len(list((process / "fd").iterdir())) + maps.count("gradserve-buffer")


def test_unused_buffers_are_trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[int] = []
    buffers = SharedBuffers(1 << 30, lambda buffer: dropped.append(buffer.number))
    acquired = [buffers.acquire(1 << 20) for _ in range(3)]
    for buffer in acquired:
        buffers.put(buffer)
    buffers.trim()
    assert buffers.waiting
    assert not dropped
    monkeypatch.setattr(shared_buffers, "UNUSED", 0.0)
    buffers.trim()
    assert not buffers.waiting
    assert sorted(dropped) == [buffer.number for buffer in acquired]
