"""Resident tensors across workers: no reader sees a version older than the acknowledged one, or a torn one."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from service.api.media import JSON
from service.core.errors import Refusal
from service.store.tables import TensorVersion
from service.workers import frames
from service.workers import memory as tensor_memory
from service.workers import residents as replica
from service.workers.frames import BodyPlace, Inbox, TensorFrame
from service.workers.memory import COPIED
from service.workers.pool import Pool, run_task
from service.workers.process_pool import ProcessPool
from service.workers.shared_memory import ControlPage, DescriptorChannel, Vitals
from service.workers.task import Reply, Task
from service.workers.worker_main import Opened, WorkerLoop
from tests.service.thread_pool import ThreadPool
from tests.service.workers.pools import ask, code, job, processes, running, settled, together, until, whole
from tests.service.workers.trial_child import execute

SIZES = [1, 1000, COPIED, COPIED + 1, 300_000, (1 << 20) + 1]


def place(pool: Pool, name: str, version: int, nbytes: int, namespace: str = "") -> None:
    """Place a version of this size; each of its bytes encodes the version number."""
    memory = pool.allocate_tensor(nbytes)
    np.frombuffer(memory.view, np.uint8)[:] = version % 251
    pool.place(namespace, name, TensorVersion("uint8", (nbytes,), f"{version:016x}", memory))


async def read(pool: ProcessPool, *names: str, namespace: str = "", **instructions: Any) -> list[Any]:
    """Version, size, first and last byte of each tensor as a worker reads it; retried if too many workers died."""
    reply = await ask(pool, {**instructions, "read": names}, namespace=namespace)
    while reply.status == 503 and code(reply) == "worker_died":
        reply = await ask(pool, {**instructions, "read": names}, namespace=namespace)
    assert reply.status == 200, reply.body
    content = orjson.loads(reply.body)
    return [one and (int(one[0], 16), *one[1:]) for one in content]


def expected_read(version: int, nbytes: int) -> tuple[int, int, int, int]:
    """The expected result of `read` for a version that `place` has placed."""
    return version, nbytes, version % 251, version % 251


async def read_by_all(pool: ProcessPool, *names: str) -> list[Any]:
    """Results of reading from every working worker; the jobs sleep, so that each worker gets some."""
    count = len(pool._supervisor.working)
    return await together(*(read(pool, *names, sleep=0.05) for _ in range(2 * count)))


@pytest.mark.slow
@running
async def test_every_worker_reads_the_last_placed_version() -> None:
    async with processes(2) as pool:
        for version, nbytes in enumerate([*SIZES, *reversed(SIZES)]):
            place(pool, "w", version, nbytes)
            assert await read_by_all(pool, "w") == [[expected_read(version, nbytes)]] * 6
        pool.place("", "w", None)
        assert await read_by_all(pool, "w") == [[None]] * 6
        place(pool, "w", 99, 10)
        assert await read_by_all(pool, "w") == [[expected_read(99, 10)]] * 6
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_namespaces_are_isolated() -> None:
    async with processes(1) as pool:
        place(pool, "w", 1, 10, "one")
        place(pool, "w", 2, 100_000, "two")
        for _ in range(2):
            assert await read(pool, "w", namespace="one") == [expected_read(1, 10)]
            assert await read(pool, "w", namespace="two") == [expected_read(2, 100_000)]
            assert await read(pool, "w") == [None]
        pool.place("one", "w", None)
        assert await read(pool, "w", namespace="one") == [None]
        assert await read(pool, "w", namespace="two") == [expected_read(2, 100_000)]


@pytest.mark.slow
@running
async def test_running_job_keeps_its_version() -> None:
    async with processes(1) as pool:
        for nbytes in (1000, 2 << 20):
            place(pool, "w", 1, nbytes)
            await read(pool, "w")
            held = asyncio.create_task(ask(pool, {"hold": 0.3}))
            await until(lambda: any(worker.executing for worker in pool._supervisor))
            for version in range(2, 40):
                place(pool, "w", version, nbytes)
            assert await read_by_all(pool, "w") == [[expected_read(39, nbytes)]] * 4
            etag, same = orjson.loads((await held).body)
            assert same
            assert int(etag, 16) in (1, 39), "39: it began anew elsewhere"


@pytest.mark.slow
@running
async def test_view_of_a_replaced_version_stays_valid() -> None:
    """A writer to disk may be slower than the next version."""
    async with processes(1) as pool:
        for nbytes in SIZES:
            place(pool, "w", 7, nbytes)
            view = pool.residents["", "w"].memory.view
            for version in range(8, 20):
                place(pool, "w", version, nbytes)
            assert bytes(view) == b"\7" * nbytes
            view.release()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [0, 5])
def test_reads_are_never_older_than_acknowledged_versions(kills: int) -> None:
    """Write and read at random while workers are killed; two of the tensors are always placed together."""
    asyncio.run(_write_and_read(kills))


READS = 8 * 40


class Traffic:
    """Writers and readers of four tensors, and the acknowledged versions."""

    def __init__(self, pool: ProcessPool, rng: random.Random) -> None:
        self.pool = pool
        self.rng = rng
        self.current = dict.fromkeys("abcd", 0)
        self.read = 0
        self.versions = iter(range(1, 10**6))
        for name in self.current:
            place(pool, name, 0, 100)

    async def write(self) -> None:
        """Place one tensor, or the two that belong together."""
        while self.read < READS:
            names = self.rng.choice(["a", "b", "cd"])
            version, nbytes = next(self.versions), self.rng.choice([8, 1000, COPIED + 1, 1 << 20])
            for name in names:
                place(self.pool, name, version, nbytes)
                self.current[name] = version
            await asyncio.sleep(self.rng.choice([0, 0, 0.001]))

    async def reads(self) -> None:
        """Read some tensors, and check their versions."""
        for _ in range(READS // 8):
            names = self.rng.choice(["a", "b", "cd", "dc", "abcd"])
            acknowledged = [self.current[name] for name in names]
            instructions = {"sleep": self.rng.choice([0.001, 0.003, 0.15])} if self.rng.random() < 0.1 else {}
            versions = dict(zip(names, await read(self.pool, *names, **instructions), strict=True))
            for version, least in zip(versions.values(), acknowledged, strict=True):
                assert version[0] >= least
                assert version == expected_read(version[0], version[1])
            assert versions.get("c") == versions.get("d"), "they are placed together"
            self.read += 1

    async def kill(self, times: int) -> None:
        """Kill working workers."""
        for _ in range(times):
            await asyncio.sleep(0.1)
            if workers := self.pool._supervisor.working:
                os.kill(self.rng.choice(workers).pid, signal.SIGKILL)


async def _write_and_read(kills: int) -> None:
    async with processes(2) as pool:
        traffic = Traffic(pool, random.Random(kills))
        await asyncio.gather(traffic.write(), traffic.kill(kills), *(traffic.reads() for _ in range(8)))
        assert traffic.read == READS
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_new_worker_reads_existing_tensors() -> None:
    async with processes(1) as pool:
        place(pool, "w", 5, 100_000)
        assert await read(pool, "w") == [expected_read(5, 100_000)]
        for _ in range(3):
            await ask(pool, {"die": 1})
            assert await read(pool, "w") == [expected_read(5, 100_000)]


@pytest.mark.slow
@pytest.mark.parametrize("nbytes", [1000, COPIED + 1])
def test_many_tensors_are_read_at_once(nbytes: int) -> None:
    """Read more tensors than a socket holds descriptors."""

    async def scenario() -> None:
        async with processes(1) as pool:
            names = [f"n{i}" for i in range(600)]
            for i, name in enumerate(names):
                place(pool, name, i, nbytes)
            expected = [expected_read(i, nbytes) for i in range(600)]
            assert await together(*(read(pool, *names) for _ in range(3))) == [expected] * 3
            for i, name in enumerate(names):
                place(pool, name, i + 1, nbytes)
            assert await read(pool, *names) == [expected_read(i + 1, nbytes) for i in range(600)]

    asyncio.run(scenario())


@pytest.mark.slow
@running
async def test_tensors_cached_by_a_worker_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "MOST_KNOWN", 8)
    monkeypatch.setattr(replica, "TENSOR_BYTES", 100_000)
    async with processes(1) as pool:
        for i in range(40):
            place(pool, f"n{i}", i, 20_000 if i % 2 else 100_000)
        for _ in range(3):
            for i in range(40):
                assert await read(pool, f"n{i}") == [expected_read(i, 20_000 if i % 2 else 100_000)]
        for worker in pool._supervisor.working:
            cached = worker._replica._known
            assert len(cached) <= 8
            assert sum(one.held for one in cached.values()) <= 100_000
        for count in (4, 12, 40):  # beyond the limit, and no tensor of the job is evicted for another one of it
            for start in range(0, 40 - count + 1, 4):
                several = range(start, start + count)
                values = await read(pool, *(f"n{i}" for i in several))
                assert values == [expected_read(i, 20_000 if i % 2 else 100_000) for i in several]


@pytest.mark.slow
@running
async def test_system_without_memory_refuses_large_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    async with processes(1) as pool:
        place(pool, "w", 1, 100_000)
        monkeypatch.setattr(tensor_memory, "sealed_memory", fails)
        with pytest.raises(Refusal, match="for a resident tensor of 100000 bytes: Too many open files") as refused:
            pool.allocate_tensor(100_000)
        assert refused.value.code == "store_full"
        assert await read(pool, "w") == [expected_read(1, 100_000)]


@pytest.mark.slow
@running
async def test_finishing_worker_gets_no_updates(caplog: pytest.LogCaptureFixture) -> None:
    """It would not receive the message."""
    async with processes(1) as pool:
        place(pool, "w", 1, 2 << 20)
        await read(pool, "w")
        (worker,) = (each for each in pool._supervisor if each._replica._known)
        reply = await ask(pool, {"answer": 100_000})
        worker.finish("test")
        place(pool, "w", 2, 2 << 20)
        reply.release()
        await until(lambda: worker.ended)
        await whole(pool)
        assert await read_by_all(pool, "w") == [[expected_read(2, 2 << 20)]] * 4
    assert not [record for record in caplog.records if record.name == "asyncio"]


def mapped(pid: int | str) -> int:
    """Number of bytes of versions that a process has mapped."""
    total = 0
    for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
        if "gradserve-tensor" in line:
            start, end = line.split()[0].split("-")
            total += int(end, 16) - int(start, 16)
    return total


@pytest.mark.slow
@running
async def test_memory_stays_flat_when_a_tensor_is_rewritten() -> None:
    """Rewrite it while one worker runs a long job with an old version, and others are idle."""
    gc.collect()
    before = mapped("self")  # what other tests have left
    async with processes(2) as pool:
        nbytes = 2 << 20
        place(pool, "w", 1, nbytes)
        await read_by_all(pool, "w")
        pids = [worker.pid for worker in pool._supervisor]
        held = asyncio.create_task(ask(pool, {"hold": 0.5}))
        await until(lambda: any(worker.executing for worker in pool._supervisor))
        for version in range(2, 300):
            place(pool, "w", version, nbytes)
            if version % 10 == 0:
                assert await read(pool, "w") == [expected_read(version, nbytes)]
        await held
        await until(lambda: mapped("self") <= before + nbytes)
        await until(lambda: all(mapped(pid) <= nbytes for pid in pids))
        place(pool, "w", 300, 10)
        await until(lambda: mapped("self") <= before and not any(map(mapped, pids)))


@pytest.mark.slow
@running
async def test_stored_tensors_come_with_the_answer() -> None:
    async with processes(1) as pool:
        for sizes in ([3], [0, 5], [COPIED, 2], [10, 1 << 20, 0]):
            sizes_by_name = {f"n{i}": nbytes for i, nbytes in enumerate(sizes)}
            reply = await ask(pool, {"store": sizes_by_name})
            assert reply.body == b"stored"
            assert [(s.name, s.shape, s.if_match, s.durable) for s in reply.stored] == [
                (f"n{i}", (nbytes,), "*", i == 0) for i, nbytes in enumerate(sizes)
            ]
            assert [bytes(data) for data in reply.stored_data] == [bytes([n % 251]) * n for n in sizes]
            reply.release()
        await until(lambda: settled(pool))


def test_job_reads_the_version_sent_before_it() -> None:
    """Send all frames at once."""
    sent = []
    for version in range(3):
        data = bytes([version]) * 10
        sent.append(frames.tensor_frame(TensorFrame("", "w", f"{version:016x}", "uint8", (10,), 0, data)))
        task = job({"read": ["w"]})
        body_place = BodyPlace(0, len(task.body))
        sent += [frames.task_frame(version * 4 + k, task, body_place, 1.0, None) for k in range(4)]
    (front, back), (ours, theirs), page = socket.socketpair(), socket.socketpair(), ControlPage.create()
    with front, back, ours, theirs:
        front.sendall(b"".join(sent))
        front.shutdown(socket.SHUT_WR)
        WorkerLoop(back, DescriptorChannel(theirs), page, Opened(execute, "cpu", lambda: Vitals(0, 0))).serve()
        back.close()
        inbox, replies = Inbox(), {}
        while data := front.recv(1 << 20):
            for kind, frame, offset in inbox.feed(data):
                assert kind == frames.REPLY
                replies[frames.slot_of(frame, offset)] = orjson.loads(frames.read_reply(frame, offset, 0.0)[0].body)
    page.close()
    assert replies == {slot: [[f"{slot // 4:016x}", 10, slot // 4, slot // 4]] for slot in range(12)}


@contextmanager
def threads() -> Iterator[ThreadPool]:
    """A pool whose jobs answer the versions that they read."""

    def work(task: Task) -> Reply:
        names = orjson.loads(bytes(task.body))["read"]
        time.sleep(0)
        versions = [task.resident(name) for name in names]
        return Reply(200, JSON, [orjson.dumps([None if v is None else [v.etag, int(v.array[0])] for v in versions])])

    pool = ThreadPool(work, "cpu", 2, 100)
    yield pool
    pool._threads.shutdown()


@running
async def test_threads_read_the_versions_at_submission() -> None:
    with threads() as pool:
        for version in range(200):
            for name in ("a", "b"):
                place(pool, name, version, 100)
            reads = [asyncio.ensure_future(run_task(pool, job({"read": ["a", "b", "c"]}))) for _ in range(3)]
            await asyncio.sleep(0)
            for name in ("a", "b"):
                place(pool, name, version + 1, 100_000)
            pool.place("", "a", None)
            for reply in await together(*reads):
                expected = [f"{version:016x}", version % 251]
                assert orjson.loads(reply.body) == [expected, expected, None]
            other_namespace = await run_task(pool, job({"read": ["b"]}, namespace="other"))
            assert orjson.loads(other_namespace.body) == [None]
