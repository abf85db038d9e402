"""Versions are found for each job alone: before it is sent, where jobs like it have asked, or once its worker asks."""

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

#: longer than the beginnings that jobs are told apart by
PADDING = [node("input") for _ in range(30)]


class Kept:
    """What another server has, and how it was asked."""

    def __init__(self, pool: ClusterPool, reader_counts: ReaderCounts, **values: float) -> None:
        self._pool, self._reader_counts = pool, reader_counts
        self._versions: dict[str, TensorVersion] = {}
        self._known: dict[str, TensorVersion] = {}
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
        pool.find, pool.recall = self.find, self.recall

    def put(self, name: str, value: float) -> None:
        """Another version."""
        memory = self._pool.allocate_tensor(8)
        np.frombuffer(memory.view)[0] = value
        self._versions[name] = TensorVersion("float64", (), f"{name}-{value}", memory)

    async def find(self, namespace: str, names: Sequence[str], expires: float) -> Mapping[str, TensorVersion]:
        """As a store that servers share."""
        self.looks.append(names)
        await self.answers.wait()
        if self.breaks or "broken" in names:
            raise Refusal("not_ready", "it does not answer")
        found = {name: self._versions[name] for name in names if name in self._versions}
        for version in found.values():
            self._reader_counts.add_reader(version)
        return found

    def recall(self, namespace: str, names: Sequence[str]) -> Mapping[str, TensorVersion]:
        """As a store that servers share, of which another server has what is kept; all that is here is as it was."""
        known = {name: self._known[name] for name in names if name in self._known} if self.is_elsewhere else {}
        for version in known.values():
            self._reader_counts.add_reader(version)
        return known

    def remember(self) -> None:
        """What is known here is what is kept now, and stays."""
        self._known = dict(self._versions)


@asynccontextmanager
async def pooled(**values: float) -> AsyncIterator[tuple[ClusterPool, Kept]]:
    reader_counts = ReaderCounts()
    pool = ClusterPool(Settings(device="cpu", workers=1, log_level="error", compile="off"), reader_counts)
    await pool.start()
    kept = Kept(pool, reader_counts, **values)
    try:
        yield pool, kept
        await until(lambda: settled(pool))
        assert not reader_counts._counts
    finally:
        kept.answers.set()
        await pool.close(5)


def total(*names: str) -> bytes:
    """The sum of these; numbers stand for themselves."""
    feeds = [
        {"node": 30 + i, "tensor": {"dtype": "float64", "shape": [], "data": [float(name)]}}
        if name.isdecimal()
        else {"node": 30 + i, "tensor_id": name}
        for i, name in enumerate(names)
    ]
    last = node("add", 30, 31) if len(names) == 2 else node("identity", 30)
    nodes = [*PADDING, *(node("input") for _ in names), last]
    return orjson.dumps(request(*nodes, feeds=feeds, outputs=[len(nodes) - 1]))


async def asked(pool: ClusterPool, *names: str, seconds: float = 60.0) -> Reply:
    return await run_task(pool, job(total(*names), seconds))


def value(reply: Reply) -> float:
    assert reply.status == 200, reply.body
    found: float = orjson.loads(reply.body)["values"][0]["tensor"]["data"][0]
    return found


@running
async def test_the_second_of_its_kind_does_not_ask() -> None:
    async with pooled(w=1.0) as (pool, kept):
        assert value(await asked(pool, "w")) == 1
        kept.put("w", 2.0)
        assert value(await asked(pool, "w")) == 2
        assert value(await asked(pool, "w")) == 2
        assert (kept.questions, kept.looks) == (1, [("w",)] * 3)


@running
async def test_one_that_reads_something_else_asks_for_that() -> None:
    async with pooled(w=1.0, v=10.0) as (pool, kept):
        assert value(await asked(pool, "w", "w")) == 2
        assert value(await asked(pool, "v", "w")) == 11
        assert value(await asked(pool, "w", "v")) == 11
        assert value(await asked(pool, "5", "6")) == 11
        assert kept.questions == 2
        assert sorted(kept.looks[-1]) == ["v", "w"]


@running
async def test_what_is_not_there_is_not_found_each_time() -> None:
    async with pooled(w=1.0) as (pool, kept):
        assert [code(await asked(pool, "gone")) for _ in range(2)] == ["not_found"] * 2
        assert value(await asked(pool, "w")) == 1
        assert code(await asked(pool, "gone")) == "not_found"
        kept.put("gone", 3.0)
        assert value(await asked(pool, "gone")) == 3


@running
async def test_one_that_reads_nothing_does_not_wait_for_a_server_that_is_silent() -> None:
    async with pooled(w=1.0) as (pool, kept):
        assert value(await asked(pool, "w")) == 1
        kept.answers.clear()
        assert value(await asked(pool, "5")) == 5
        assert len(kept.looks) == 2


@running
async def test_who_leaves_while_it_is_looked_for_is_forgotten() -> None:
    async with pooled(w=1.0) as (pool, kept):
        assert value(await asked(pool, "w")) == 1
        kept.answers.clear()
        leaving, replies = job(total("w")), []
        pool.submit(leaving, replies.append)
        await asyncio.sleep(0)
        pool.cancel(leaving)
        await until(lambda: settled(pool))
        assert not replies


@running
async def test_what_refuses_is_told_where_it_is_read() -> None:
    async with pooled(w=1.0) as (pool, kept):
        assert [code(await asked(pool, "broken")) for _ in range(2)] == ["not_ready"] * 2
        assert value(await asked(pool, "5")) == 5
        assert kept.questions == 2


class TestSpeculation:
    """What another server has, and jobs of a kind have found unchanged."""

    @asynccontextmanager
    async def steady(self, **values: float) -> AsyncIterator[tuple[ClusterPool, Kept]]:
        """A pool in which two jobs that read `w` have found the same."""
        async with pooled(w=1.0, **values) as (pool, kept):
            kept.is_elsewhere = True
            kept.remember()
            for _ in range(3):
                assert value(await asked(pool, "w")) == 1
            assert not pool._speculative
            yield pool, kept

    @running
    async def test_it_is_done_while_the_owner_is_asked(self) -> None:
        async with self.steady() as (pool, kept):
            kept.answers.clear()
            replies: list[Reply] = []
            pool.submit(job(total("w")), replies.append)
            await until(lambda: not pool.busy)
            assert not replies, "nothing is answered before the owner has said that it is right"
            kept.answers.set()
            await until(lambda: replies)
            assert value(replies[0]) == 1
            assert (len(kept.looks), kept.questions) == (4, 1)

    @running
    async def test_what_has_changed_is_read_anew(self) -> None:
        async with self.steady() as (pool, kept):
            kept.put("w", 2.0)
            assert value(await asked(pool, "w")) == 2
            assert len(kept.looks) == 4, "what was found is what it is done with again"
            kept.put("w", 3.0)
            kept.remember()
            looks = len(kept.looks)
            assert [value(await asked(pool, "w")) for _ in range(3)] == [3, 3, 3]
            assert len(kept.looks) == looks + 3

    @running
    async def test_what_is_gone_is_not_found(self) -> None:
        async with self.steady() as (pool, kept):
            del kept._versions["w"]
            assert code(await asked(pool, "w")) == "not_found"

    @running
    async def test_what_the_owner_refuses_is_refused(self) -> None:
        async with self.steady() as (pool, kept):
            kept.breaks = True
            assert code(await asked(pool, "w")) == "not_ready"
            assert value(await asked(pool, "5")) == 5, "it does not read what is refused"

    @running
    async def test_who_leaves_meanwhile_is_forgotten(self) -> None:
        async with self.steady() as (pool, kept):
            for waits in (False, True):
                kept.answers.clear()
                leaving, replies = job(total("w")), list[Reply]()
                pool.submit(leaving, replies.append)
                if waits:
                    await until(lambda: not pool.busy)
                pool.cancel(leaving)
                kept.answers.set()
                await until(lambda: settled(pool))
                assert not replies
                assert not pool._speculative

    @running
    async def test_one_that_reads_something_else_does(self) -> None:
        async with self.steady(v=10.0) as (pool, _):
            assert value(await asked(pool, "v")) == 10
            assert value(await asked(pool, "5")) == 5
            assert not pool._speculative

    @running
    async def test_where_nobody_else_may_come_in_it_is_turned_away(self) -> None:
        async with self.steady() as (pool, _):
            pool.drain()
            assert code(await asked(pool, "w")) == "shutting_down"
            assert not pool._speculative
