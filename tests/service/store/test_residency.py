"""Tensors for which there is no room in memory: they are read from the journal when they are used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest

from service.core.errors import Refusal
from service.core.keys.caller import ANONYMOUS
from service.core.settings import Settings
from service.observe.store import StoreService
from service.store.changes import Condition
from service.store.object_journal import ObjectJournal
from service.store.residency import Residency
from service.store.tables import TensorVersion
from service.store.writes import Stored
from service.workers.memory import HeapAllocation
from service.workers.residents import ReaderCounts
from service.workers.task import Reply, Task
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import EAGER, put, tensor

SETTINGS = Settings(state="memory", max_tensor_bytes=4000)
#: numbers in a tensor; three tensors fit
NUMBERS = 16
NBYTES = 8 * NUMBERS
ROOM = 3 * NBYTES


class Pool:
    """Memory whose last reader gives it back, as in a pool of a cluster."""

    def __init__(self) -> None:
        self.counts = ReaderCounts()
        self.current: dict[tuple[str, str], TensorVersion] = {}
        self.allocated: list[HeapAllocation] = []

    def allocate_tensor(self, nbytes: int) -> HeapAllocation:
        self.allocated.append(HeapAllocation(nbytes))
        return self.allocated[-1]

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        before = self.current.pop((namespace, name), None)
        if resident is not None:
            self.current[namespace, name] = resident
        if before is not None:
            self.counts.retire(before)

    @property
    def nbytes(self) -> int:
        return sum(len(memory.view) for memory in self.allocated)


class Trial:
    """Stores of shards that share their memory."""

    def __init__(self, places: int = 1, count: int = 10) -> None:
        self.pool = Pool()
        self.residency = Residency(ROOM, ThreadPoolExecutor(4))
        self.places = [MemoryObjects() for _ in range(places)]
        for number, objects in enumerate(self.places):
            journal = ObjectJournal(objects, "the place")
            journal.load()
            for value in range(count):
                journal.commit(put(tensor(f"w{number}.{value}", value, NUMBERS)))
            journal.close()

    def open(self, number: int = 0, **settings: Any) -> StoreService:
        journal = ObjectJournal(self.places[number], "the place", EAGER, lease=60.0)
        stated = SETTINGS.model_copy(update=settings)
        store = StoreService(stated, self.pool, journal, residency=self.residency)  # type: ignore[arg-type]
        store.restore(store.load())
        return store

    async def lend(self, store: StoreService, *names: str, seconds: float = 60.0) -> dict[str, TensorVersion]:
        versions = await store.versions("", names, time.monotonic() + seconds)
        for version in versions.values():
            self.pool.counts.add_reader(version)
        return dict(versions)

    async def read(self, store: StoreService, *names: str, seconds: float = 60.0) -> list[float]:
        """Read tensors that are filled with one value each."""
        versions = await self.lend(store, *names, seconds=seconds)
        elements = [np.frombuffer(versions[name].memory.view, "<f8") for name in names if name in versions]
        assert all(x.shape == (NUMBERS,) and (x == x[0]).all() for x in elements)
        values = [float(x[0]) for x in elements]
        del elements
        self.pool.counts.drop_readers(*versions.values())
        return values


@pytest.fixture
def run() -> Iterator[Callable[[Awaitable[Any]], Any]]:
    """Runs a coroutine."""
    with asyncio.Runner() as runner:
        yield runner.run  # type: ignore[misc]


async def write(store: StoreService, name: str, value: float, *, durable: bool = True) -> int:
    """Store a tensor; return the status."""
    stored = Stored(name, f"{int(value):016x}", "float64", (NUMBERS,), durable=durable)
    reply = Reply(
        200, "text/plain", [b""], stored=[stored], stored_data=[memoryview(np.full(NUMBERS, float(value))).cast("B")]
    )
    task = Task("forward", b"", "request", 60.0, time.monotonic() + 60.0)
    return (await store.settle_and_wait(task, ANONYMOUS, reply, Condition())).status


def test_elements_that_do_not_fit_are_read_when_they_are_used(run: Any) -> None:
    async def trial() -> None:
        trial = Trial()
        store = trial.open()
        assert trial.pool.nbytes == ROOM
        assert store.holdings().tensors == 10
        for value in [*range(10), 3, 3, 9, 0]:
            assert await trial.read(store, f"w0.{value}") == [value]
            assert trial.pool.nbytes <= ROOM
        await store.close(1.0)

    run(trial())


def test_call_may_read_more_than_fits(run: Any) -> None:
    async def trial() -> None:
        trial = Trial()
        store = trial.open()
        assert await trial.read(store, *(f"w0.{value}" for value in range(10))) == [*range(10)]
        assert await trial.read(store, "w0.0", "missing") == [0]
        assert trial.pool.nbytes <= ROOM
        await store.close(1.0)

    run(trial())


def test_elements_stay_while_a_call_reads_them(run: Any) -> None:
    async def trial() -> None:
        trial = Trial()
        store = trial.open()
        lent = await trial.lend(store, "w0.9")
        for value in range(9):
            await trial.read(store, f"w0.{value}")
        assert np.frombuffer(lent["w0.9"].memory.view, "<f8").tolist() == [9.0] * NUMBERS
        assert trial.pool.nbytes == ROOM + NBYTES
        trial.pool.counts.drop_readers(*lent.values())
        assert trial.pool.nbytes == ROOM
        await store.close(1.0)

    run(trial())


def test_shards_share_the_memory(run: Any) -> None:
    async def trial() -> None:
        trial = Trial(places=3)
        stores = [trial.open(number) for number in range(3)]
        for value in range(10):
            for number, store in enumerate(stores):
                assert await trial.read(store, f"w{number}.{value}") == [value]
                assert trial.pool.nbytes <= ROOM
        for store in stores:
            await store.close(1.0)

    run(trial())


def test_new_names_are_refused_over_the_limit_but_old_ones_written(run: Any) -> None:
    async def trial() -> None:
        trial = Trial()
        store = trial.open()
        assert await write(store, "new", 1) == 507
        for value in range(10):
            assert await write(store, f"w0.{value}", 100 + value) == 200
            assert trial.pool.nbytes <= ROOM
        assert [await trial.read(store, f"w0.{value}") for value in range(10)] == [[100 + value] for value in range(10)]
        await store.close(1.0)

    run(trial())


def test_writes_that_are_not_durable_stay_in_memory(run: Any) -> None:
    async def trial() -> None:
        trial = Trial()
        store = trial.open(write_behind_ms=60_000)
        for value in range(6):
            assert await write(store, f"w0.{value}", 100 + value, durable=False) == 200
        for value in range(6, 10):
            assert await trial.read(store, f"w0.{value}") == [value]
        assert trial.pool.nbytes >= 6 * NBYTES
        assert [await trial.read(store, f"w0.{value}") for value in range(6)] == [[100 + value] for value in range(6)]
        await store.close(1.0)
        again = trial.open()
        assert [await trial.read(again, f"w0.{value}") for value in range(6)] == [[100 + value] for value in range(6)]
        await again.close(1.0)

    run(trial())


def test_version_that_is_replaced_while_it_is_read_is_not_answered(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def trial() -> None:
        trial = Trial()
        store, loop = trial.open(), asyncio.get_running_loop()
        read = ObjectJournal.read

        def read_late(journal: ObjectJournal, *name: str) -> bytes | None:
            monkeypatch.setattr(ObjectJournal, "read", read)
            assert asyncio.run_coroutine_threadsafe(write(store, "w0.0", 50), loop).result() == 200
            return read(journal, *name)

        monkeypatch.setattr(ObjectJournal, "read", read_late)
        assert await trial.read(store, "w0.0") == [50]
        await store.close(1.0)

    run(trial())


def test_store_that_does_not_answer_is_named_at_the_deadline(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def trial() -> None:
        trial = Trial()
        store, answers = trial.open(), Event()
        get = MemoryObjects.get
        monkeypatch.setattr(MemoryObjects, "get", lambda *key: answers.wait() and get(*key))
        assert await trial.read(store, "w0.9") == [9], "it is in memory"
        with pytest.raises(Refusal, match="storage of the server's state does not respond"):
            await trial.read(store, "w0.0", seconds=0.05)
        answers.set()
        assert await trial.read(store, "w0.0") == [0]
        await store.close(1.0)

    run(trial())


def test_shard_that_is_lost_during_a_read_is_not_answered_as_empty(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def trial() -> None:
        trial = Trial()
        store, loop, read = trial.open(), asyncio.get_running_loop(), ObjectJournal.read

        def lose() -> None:
            store.commits.fence.leave()
            for key, _ in [*store.tensors]:
                store.tensors.load(key, None)

        def read_late(journal: ObjectJournal, *name: str) -> bytes | None:
            loop.call_soon_threadsafe(lose)
            return read(journal, *name)

        monkeypatch.setattr(ObjectJournal, "read", read_late)
        with pytest.raises(Refusal, match="has just handed over this part of the state"):
            await trial.read(store, "w0.0", "w0.9")
        assert trial.residency.nbytes == 0

    run(trial())
