"""Sums over examples in pieces: the same bits as on one worker, even if workers fail."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from safetensors.numpy import load, save

from service.api.media import JSON, SAFETENSORS
from service.core.settings import Settings
from service.store.tables import TensorVersion
from service.workers import sums as sum_run
from service.workers.pool import run_task
from service.workers.process_pool import ProcessPool
from service.workers.sums import PieceTicket
from service.workers.task import Reply, Task
from tests.service.support import Json, feed, node
from tests.service.workers.pools import code, running, settled, together, until

RNG = np.random.default_rng(11)
N, D, BLOCK = 4000, 256, 128
X, W = RNG.standard_normal((N, D)), RNG.standard_normal((D, D)) / D
#: Σ tanh(x · W)², and its gradient with respect to W
NODES = [node("parameter"), node("input"), node("matmul", 1, 0), node("tanh", 2), node("square", 3), node("sum", 4)]
REQUEST = {"graph": {"nodes": NODES}, "mapped": [1], "reduce": "sum", "block": BLOCK}
T = np.tanh(X @ W)
SUM, GRADIENT = np.sum(T**2), X.T @ (2 * T * (1 - T**2))


def packed(x: Any = X, w: Any = W, **more: Any) -> bytes:
    return save({"feeds.0": w, "feeds.1": x}, metadata={"request": orjson.dumps(REQUEST | more).decode()})


@asynccontextmanager
async def pool_of(workers: int = 2, **stated: Any) -> AsyncIterator[ProcessPool]:
    settings = {"device": "cpu", "workers": workers, "log_level": "error", "compile": "off", "determinism": "bitwise"}
    pool = ProcessPool(Settings(**settings | stated))
    await pool.start()
    try:
        await until(lambda: len(pool._supervisor.general) == workers and all(w.ready for w in pool._supervisor.general))
        yield pool
    finally:
        await pool.close(5)


def job_of(pool: ProcessPool, sent: bytes, tenant: str = "", seconds: float = 60.0, media: str = SAFETENSORS) -> Task:
    memory = pool.allocate(len(sent), tenant)
    memory.reserve(len(sent))
    memory.view[:] = sent
    expires = time.monotonic() + seconds
    return Task("batch", memory.view, "id", seconds, expires, media, SAFETENSORS, memory=memory, tenant=tenant)


async def ask(
    pool: ProcessPool, sent: bytes, tenant: str = "", seconds: float = 60.0, media: str = SAFETENSORS
) -> Reply:
    """The reply, after its memory is released."""
    reply = await run_task(pool, job_of(pool, sent, tenant, seconds, media))
    released = replace(reply, parts=[reply.body])
    reply.release()
    return released


def stats(reply: Reply) -> Json:
    length = int.from_bytes(reply.body[:8], "little")
    header = orjson.loads(reply.body[8 : 8 + length])
    content: Json = orjson.loads(header["__metadata__"]["response"])["stats"]
    return content


def tensors(reply: Reply) -> dict[str, bytes]:
    assert reply.status == 200, reply.body[:500]
    return {name: array.tobytes() for name, array in load(reply.body).items()}


def pieces_that_run(pool: ProcessPool) -> list[PieceTicket]:
    return [t for worker in pool._supervisor.general if isinstance(t := worker.executing, PieceTicket)]


@pytest.fixture
def divide_into(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Divide sums into this many pieces for each worker, however short they are; no piece is ever late."""

    def divide(pieces: int) -> None:
        monkeypatch.setattr(sum_run, "_LEAST_SECONDS", 0.0)
        monkeypatch.setattr(sum_run, "_READING_FACTOR", 0)
        monkeypatch.setattr(sum_run, "_PIECES_PER_WORKER", pieces)
        monkeypatch.setattr(sum_run, "_LATE_FACTOR", 1e6)

    return divide


@pytest.mark.slow
@running
async def test_pieces_give_the_same_bits_as_one_worker(divide_into: Callable[[int], None]) -> None:
    async with pool_of(1) as alone:
        whole = await ask(alone, packed())
        assert (stats(whole)["pieces"], stats(whole)["repeated"]) == (1, 0)
    np.testing.assert_allclose(load(whole.body)["gradients.0"], GRADIENT, rtol=1e-11, atol=1e-11)
    async with pool_of(2) as pool:
        for each, pieces in ((1, 2), (2, 4), (5, 8), (16, 32)):
            divide_into(each)
            reply = await ask(pool, packed())
            assert tensors(reply) == tensors(whole)
            assert (stats(reply)["pieces"], stats(reply)["repeated"]) == (pieces, 0)
        await until(lambda: settled(pool))
        assert (pool.stats().pieces, pool.stats().repeated) == ({"here": 46, "elsewhere": 0}, 0)


@pytest.mark.slow
@running
async def test_mean_is_divided_once_in_json_and_safetensors(divide_into: Callable[[int], None]) -> None:
    divide_into(4)
    x, w = X[:600], W
    body = REQUEST | {"reduce": "mean", "block": 16, "feeds": [feed(0, [D, D], w.ravel().tolist())]}
    body["feeds"].append(feed(1, [600, D], x.ravel().tolist()))  # type: ignore[attr-defined]
    async with pool_of(2) as pool:
        reply = await ask(pool, orjson.dumps(body), media=JSON)
        assert stats(reply)["pieces"] > 1
        t = np.tanh(x @ w)
        np.testing.assert_allclose(
            load(reply.body)["gradients.0"], x.T @ (2 * t * (1 - t**2)) / 600, rtol=1e-11, atol=1e-11
        )
        assert tensors(reply) == tensors(await ask(pool, packed(x, w, reduce="mean", block=16)))


@pytest.mark.slow
@running
async def test_piece_of_a_dead_worker_is_run_again(divide_into: Callable[[int], None]) -> None:
    divide_into(16)
    async with pool_of(2) as pool:
        whole = tensors(await ask(pool, packed()))
        request_task = asyncio.create_task(ask(pool, packed()))
        await until(lambda: pieces_that_run(pool))
        killed = next(worker for worker in pool._supervisor.general if worker.executing)
        os.kill(killed.pid, signal.SIGKILL)
        reply = await request_task
        assert tensors(reply) == whole
        assert (stats(reply)["pieces"], stats(reply)["repeated"]) == (32, 1)
        await until(lambda: settled(pool))


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["one", "other"])
@running
async def test_sum_does_not_block_other_jobs(divide_into: Callable[[int], None], whose: str) -> None:
    """Long jobs, of another caller or the same one, run between its pieces, and finish before the sum does."""
    divide_into(16)
    async with pool_of(2) as pool:
        await ask(pool, packed())  # so that it is planned
        long = packed(np.concatenate([X] * 10), block=64)
        summing = asyncio.create_task(ask(pool, long, "one"))
        await until(lambda: len(pieces_that_run(pool)) == 2)
        others = await together(*(ask(pool, packed(block=N), whose) for _ in range(4)))
        assert [reply.status for reply in others] == [200] * 4
        assert not summing.done()
        assert stats(await summing)["pieces"] > 8


@pytest.mark.slow
@running
async def test_cancelled_sum_leaves_no_pieces(divide_into: Callable[[int], None]) -> None:
    divide_into(16)
    async with pool_of(2) as pool:
        request_task = asyncio.create_task(ask(pool, packed()))
        await until(lambda: pieces_that_run(pool))
        request_task.cancel()
        await until(lambda: settled(pool))
        assert not pool._sums.tickets
        assert stats(await ask(pool, packed()))["pieces"] == 32


@pytest.mark.slow
@running
async def test_deadline_applies_to_the_whole_sum(divide_into: Callable[[int], None]) -> None:
    divide_into(16)
    async with pool_of(2) as pool:
        await ask(pool, packed())
        reply = await ask(pool, packed(np.concatenate([X] * 60), block=64), seconds=0.3)
        assert code(reply) in ("deadline_exceeded", "queue_full")
        await until(lambda: settled(pool))
        assert not pool._sums.tickets


@pytest.mark.slow
@running
async def test_refused_piece_refuses_the_whole_sum(divide_into: Callable[[int], None]) -> None:
    """Only the last block has an index out of range."""
    divide_into(4)
    nodes = [node("parameter"), node("input"), node("matmul", 1, 0), node("input"), node("gather", 2, 3, axis=0)]
    body = {"graph": {"nodes": [*nodes, node("sum", 4)]}, "mapped": [1, 3], "reduce": "sum", "block": BLOCK}
    picked = np.zeros((N, 1), np.int64)
    async with pool_of(2) as pool:

        def body_bytes() -> bytes:
            arrays = {"feeds.0": W, "feeds.1": X, "feeds.3": picked}
            return save(arrays, metadata={"request": orjson.dumps(body).decode()})

        accepted = await ask(pool, body_bytes())
        assert stats(accepted)["pieces"] > 1
        picked[-1] = D
        refused = await ask(pool, body_bytes())
        assert code(refused) == "index_out_of_range"
        await until(lambda: settled(pool))


class Residents:
    """Resident tensors of a pool."""

    def __init__(self, pool: ProcessPool) -> None:
        self.pool = pool
        self.versions = 0

    def put(self, name: str, array: Any) -> None:
        memory = self.pool.allocate_tensor(array.nbytes)
        memory.view[:] = array.tobytes()
        self.versions += 1
        version = TensorVersion(array.dtype.name, array.shape, f"{self.versions:016x}", memory)
        self.pool.place("", name, version)


@pytest.mark.slow
@running
async def test_all_pieces_read_the_same_tensor_versions(divide_into: Callable[[int], None]) -> None:
    """The parameter is replaced while they run; the examples are rows of a resident tensor."""
    divide_into(16)
    fields = REQUEST | {
        "feeds": [{"node": 0, "tensor_id": "w"}, {"node": 1, "tensor_id": "x", "rows": [100, N]}],
        "store": [{"node": 0, "gradient": True, "tensor_id": "g"}],
    }
    header = orjson.dumps({"__metadata__": {"request": orjson.dumps(fields).decode()}})
    body = len(header).to_bytes(8, "little") + header
    async with pool_of(2) as pool:
        residents = Residents(pool)
        residents.put("w", W)
        residents.put("x", X)
        before = await ask(pool, body)
        assert stats(before)["pieces"] > 8
        t = np.tanh(X[100:] @ W)
        np.testing.assert_allclose(
            load(before.body)["gradients.0"], X[100:].T @ (2 * t * (1 - t**2)), rtol=1e-11, atol=1e-11
        )
        assert [one.name for one in before.stored] == ["g"]
        request_task = asyncio.create_task(ask(pool, body))
        await until(lambda: pieces_that_run(pool))
        residents.put("w", np.zeros_like(W))
        during = await request_task
        assert tensors(during) == tensors(before)
        assert not np.any(load((await ask(pool, body)).body)["gradients.0"])
        await until(lambda: settled(pool))
        assert set(pool.residents) == {("", "w"), ("", "x")}
        assert not pool._reader_counts._counts
