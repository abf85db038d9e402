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
from service.errors import Refusal
from service.pool.lending import Lending
from service.pool.pool import awaited
from service.settings import Settings
from service.state.tensors import TensorVersion
from service.transport.job import Reply
from tests.service.pool.pools import code, job, running, settled, until
from tests.service.support import node, request

pytestmark = pytest.mark.slow

#: longer than the beginnings that jobs are told apart by
PADDING = [node("input") for _ in range(30)]


class Kept:
    """What another server has, and how it was asked."""

    def __init__(self, pool: ClusterPool, lending: Lending, **values: float) -> None:
        self._pool, self._lending = pool, lending
        self._versions: dict[str, TensorVersion] = {}
        self.looks: list[Sequence[str]] = []
        self.questions = 0
        self.answers = asyncio.Event()
        self.answers.set()
        for name, value in values.items():
            self.put(name, value)
        find_tensors = pool._find_tensors

        def counted(ticket: Any) -> None:
            self.questions += 1
            find_tensors(ticket)

        pool._find_tensors = counted  # type: ignore[method-assign]
        pool.find = self.find

    def put(self, name: str, value: float) -> None:
        """Another version."""
        memory = self._pool.allocate_tensor(8)
        np.frombuffer(memory.view)[0] = value
        self._versions[name] = TensorVersion("float64", (), f"{name}-{value}", memory)

    async def find(self, namespace: str, names: Sequence[str], expires: float) -> Mapping[str, TensorVersion]:
        """As a store that servers share."""
        self.looks.append(names)
        await self.answers.wait()
        if "broken" in names:
            raise Refusal("not_ready", "it does not answer")
        found = {name: self._versions[name] for name in names if name in self._versions}
        for version in found.values():
            self._lending.lend(version)
        return found


@asynccontextmanager
async def pooled(**values: float) -> AsyncIterator[tuple[ClusterPool, Kept]]:
    lending = Lending()
    pool = ClusterPool(Settings(device="cpu", workers=1, log_level="error", compile="off"), lending)
    await pool.start()
    kept = Kept(pool, lending, **values)
    try:
        yield pool, kept
        await until(lambda: settled(pool))
        assert not lending._lent
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
    return await awaited(pool, job(total(*names), seconds))


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
