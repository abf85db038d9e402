"""Versions of tensors for a job: found before it is sent if similar jobs needed them, else when its worker asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import orjson
import pytest

from service.cluster.pool import ClusterPool
from service.core.errors import Refusal
from service.core.settings import Settings
from service.store.tables import TensorVersion
from service.workers.pool import run_task
from service.workers.residents import ReaderCounts
from service.workers.task import Reply
from tests.service.support import node, request
from tests.service.workers.pools import code, job, running, settled, until

pytestmark = pytest.mark.slow

#: longer than the prefixes by which jobs are distinguished
PADDING = [node("input") for _ in range(30)]


class FakeOwner:
    """Fake owner with tensors, which records how it is asked."""

    def __init__(self, pool: ClusterPool, reader_counts: ReaderCounts, **values: float) -> None:
        self._pool, self._reader_counts = pool, reader_counts
        self._versions: dict[str, TensorVersion] = {}
        self._cached: dict[str, TensorVersion] = {}
        self.looks: list[Sequence[str]] = []
        self.questions = 0
        self.answers = asyncio.Event()
        self.answers.set()
        self.is_elsewhere = self.breaks = False
        for name, value in values.items():
            self.put(name, value)
        find_tensors = pool._find_tensors

        def counted(ticket: Any) -> None:
            self.questions += 1
            find_tensors(ticket)

        pool._find_tensors = counted  # type: ignore[method-assign]
        pool.find, pool.recall, pool.promised = self.find, self.recall, lambda *_: {}

    def put(self, name: str, value: float) -> None:
        """Store a new version."""
        memory = self._pool.allocate_tensor(8)
        np.frombuffer(memory.view)[0] = value
        self._versions[name] = TensorVersion("float64", (), f"{name}-{value}", memory)

    async def find(self, namespace: str, names: Sequence[str], expires: float) -> Mapping[str, TensorVersion]:
        """Find current versions, as a shared store does."""
        self.looks.append(names)
        await self.answers.wait()
        if self.breaks or "broken" in names:
            raise Refusal("not_ready", "it does not answer")
        versions = {name: self._versions[name] for name in names if name in self._versions}
        for version in versions.values():
            self._reader_counts.add_reader(version)
        return versions

    def recall(self, namespace: str, names: Sequence[str]) -> Mapping[str, TensorVersion]:
        """Recall cached versions, as a shared store does whose tensors belong to another server."""
        versions = {name: self._cached[name] for name in names if name in self._cached} if self.is_elsewhere else {}
        for version in versions.values():
            self._reader_counts.add_reader(version)
        return versions

    def remember(self) -> None:
        """Cache the current versions."""
        self._cached = dict(self._versions)


@asynccontextmanager
async def pooled(**values: float) -> AsyncIterator[tuple[ClusterPool, FakeOwner]]:
    reader_counts = ReaderCounts()
    pool = ClusterPool(Settings(device="cpu", workers=1, log_level="error", compile="off"), reader_counts)
    await pool.start()
    owner = FakeOwner(pool, reader_counts, **values)
    try:
        yield pool, owner
        await until(lambda: settled(pool))
        assert not reader_counts._counts
    finally:
        owner.answers.set()
        await pool.close(5)


def total(*names: str) -> bytes:
    """Build the request for a sum of tensors; numbers stand for themselves."""
    feeds = [
        {"node": 30 + i, "tensor": {"dtype": "float64", "shape": [], "data": [float(name)]}}
        if name.isdecimal()
        else {"node": 30 + i, "tensor_id": name}
        for i, name in enumerate(names)
    ]
    last = node("add", 30, 31) if len(names) == 2 else node("identity", 30)
    nodes = [*PADDING, *(node("input") for _ in names), last]
    return orjson.dumps(request(*nodes, feeds=feeds, outputs=[len(nodes) - 1]))


async def ask(pool: ClusterPool, *names: str, seconds: float = 60.0) -> Reply:
    return await run_task(pool, job(total(*names), seconds))


def value(reply: Reply) -> float:
    assert reply.status == 200, reply.body
    number: float = orjson.loads(reply.body)["values"][0]["tensor"]["data"][0]
    return number


@running
async def test_second_similar_job_does_not_ask() -> None:
    async with pooled(w=1.0) as (pool, owner):
        assert value(await ask(pool, "w")) == 1
        owner.put("w", 2.0)
        assert value(await ask(pool, "w")) == 2
        assert value(await ask(pool, "w")) == 2
        assert (owner.questions, owner.looks) == (1, [("w",)] * 3)


@running
async def test_job_that_reads_other_tensors_asks_for_them() -> None:
    async with pooled(w=1.0, v=10.0) as (pool, owner):
        assert value(await ask(pool, "w", "w")) == 2
        assert value(await ask(pool, "v", "w")) == 11
        assert value(await ask(pool, "w", "v")) == 11
        assert value(await ask(pool, "5", "6")) == 11
        assert owner.questions == 2
        assert sorted(owner.looks[-1]) == ["v", "w"]


@running
async def test_missing_tensor_is_looked_up_each_time() -> None:
    async with pooled(w=1.0) as (pool, owner):
        assert [code(await ask(pool, "gone")) for _ in range(2)] == ["not_found"] * 2
        assert value(await ask(pool, "w")) == 1
        assert code(await ask(pool, "gone")) == "not_found"
        owner.put("gone", 3.0)
        assert value(await ask(pool, "gone")) == 3


@running
async def test_job_without_tensors_does_not_wait_for_the_owner() -> None:
    async with pooled(w=1.0) as (pool, owner):
        assert value(await ask(pool, "w")) == 1
        owner.answers.clear()
        assert value(await ask(pool, "5")) == 5
        assert len(owner.looks) == 2


@running
async def test_job_cancelled_during_a_lookup_is_dropped() -> None:
    async with pooled(w=1.0) as (pool, owner):
        assert value(await ask(pool, "w")) == 1
        owner.answers.clear()
        leaving, replies = job(total("w")), []
        pool.submit(leaving, replies.append)
        await asyncio.sleep(0)
        pool.cancel(leaving)
        await until(lambda: settled(pool))
        assert not replies


@running
async def test_refused_lookup_fails_only_jobs_that_read_it() -> None:
    async with pooled(w=1.0) as (pool, owner):
        assert [code(await ask(pool, "broken")) for _ in range(2)] == ["not_ready"] * 2
        assert value(await ask(pool, "5")) == 5
        assert owner.questions == 2


class TestSpeculation:
    """Speculative execution with cached versions that similar jobs have found unchanged."""

    @asynccontextmanager
    async def steady(self, **values: float) -> AsyncIterator[tuple[ClusterPool, FakeOwner]]:
        """A pool in which several jobs have found `w` unchanged."""
        async with pooled(w=1.0, **values) as (pool, owner):
            owner.is_elsewhere = True
            owner.remember()
            for _ in range(3):
                assert value(await ask(pool, "w")) == 1
            assert not pool._speculative
            yield pool, owner

    @running
    async def test_job_runs_while_the_owner_is_asked(self) -> None:
        async with self.steady() as (pool, owner):
            owner.answers.clear()
            replies: list[Reply] = []
            pool.submit(job(total("w")), replies.append)
            await until(lambda: not pool.busy)
            assert not replies, "nothing is answered before the owner has said that it is right"
            owner.answers.set()
            await until(lambda: replies)
            assert value(replies[0]) == 1
            assert (len(owner.looks), owner.questions) == (4, 1)

    @running
    async def test_changed_tensor_is_read_again(self) -> None:
        async with self.steady() as (pool, owner):
            owner.put("w", 2.0)
            assert value(await ask(pool, "w")) == 2
            assert len(owner.looks) == 4, "what was found is what it is done with again"
            owner.put("w", 3.0)
            owner.remember()
            looks = len(owner.looks)
            assert [value(await ask(pool, "w")) for _ in range(3)] == [3, 3, 3]
            assert len(owner.looks) == looks + 3

    @running
    async def test_deleted_tensor_is_not_found(self) -> None:
        async with self.steady() as (pool, owner):
            del owner._versions["w"]
            assert code(await ask(pool, "w")) == "not_found"

    @running
    async def test_refusal_of_the_owner_is_returned(self) -> None:
        async with self.steady() as (pool, owner):
            owner.breaks = True
            assert code(await ask(pool, "w")) == "not_ready"
            assert value(await ask(pool, "5")) == 5, "it does not read what is refused"

    @running
    async def test_cancelled_speculative_job_is_dropped(self) -> None:
        async with self.steady() as (pool, owner):
            for waits in (False, True):
                owner.answers.clear()
                leaving, replies = job(total("w")), list[Reply]()
                pool.submit(leaving, replies.append)
                if waits:
                    await until(lambda: not pool.busy)
                pool.cancel(leaving)
                owner.answers.set()
                await until(lambda: settled(pool))
                assert not replies
                assert not pool._speculative

    @running
    async def test_jobs_that_read_other_tensors_are_unaffected(self) -> None:
        async with self.steady(v=10.0) as (pool, _):
            assert value(await ask(pool, "v")) == 10
            assert value(await ask(pool, "5")) == 5
            assert not pool._speculative

    @running
    async def test_draining_pool_refuses_speculative_jobs(self) -> None:
        async with self.steady() as (pool, _):
            pool.drain()
            assert code(await ask(pool, "w")) == "shutting_down"
            assert not pool._speculative
