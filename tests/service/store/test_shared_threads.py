"""Threads that stores share: order within each, independence between them, and no deadlocks."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from threading import Barrier, Event, Thread

import pytest

from service.store.changes import Change
from service.store.commits import Commits, Proposal
from service.store.fence import Fence
from service.store.object_journal import ObjectJournal, Tidiness
from service.store.shared_threads import SerialExecutor, SharedThreads
from service.store.tables import GraphStore, Quota, Registered
from service.store.writes import GraphWrite
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import put, tensor

#: seconds after which a wait has failed
PATIENCE = 60.0
#: always more dead objects than a writer may leave behind
CROWDED = Tidiness(dead_objects=1, dead_bytes=1, worn_bytes=1, small_objects=1, small_bytes=2048)


@pytest.fixture
def pool() -> Executor:
    return ThreadPoolExecutor(4)


def test_tasks_run_one_at_a_time_in_order(pool: Executor) -> None:
    executor = SerialExecutor(pool)
    running: list[int] = []
    seen: list[tuple[int, int]] = []

    def task(number: int) -> int:
        running.append(number)
        seen.append((number, len(running)))
        running.remove(number)
        return number

    futures = [executor.submit(task, number) for number in range(500)]
    assert [future.result(PATIENCE) for future in futures] == [*range(500)]
    assert seen == [(number, 1) for number in range(500)]


def test_executors_of_one_pool_run_at_the_same_time(pool: Executor) -> None:
    meeting = Barrier(4)
    futures = [SerialExecutor(pool).submit(meeting.wait, PATIENCE) for _ in range(4)]
    assert sorted(future.result(PATIENCE) for future in futures) == [0, 1, 2, 3]


def test_errors_reach_the_caller_and_later_tasks_run(pool: Executor) -> None:
    executor = SerialExecutor(pool)
    failed = executor.submit(lambda: 1 // 0)
    later = executor.submit(lambda: 7)
    with pytest.raises(ZeroDivisionError):
        failed.result(PATIENCE)
    assert later.result(PATIENCE) == 7


def test_cancelled_task_does_not_run(pool: Executor) -> None:
    executor, resume = SerialExecutor(pool), Event()
    first = executor.submit(resume.wait, PATIENCE)
    cancelled, last = executor.submit(pytest.fail), executor.submit(lambda: 7)
    assert cancelled.cancel()
    resume.set()
    assert (first.result(PATIENCE), last.result(PATIENCE)) == (True, 7)


def test_shutdown_waits_for_own_tasks_alone() -> None:
    with ThreadPoolExecutor(1) as pool:
        first, second, resume = SerialExecutor(pool), SerialExecutor(pool), Event()
        blocked = first.submit(resume.wait, PATIENCE)
        queued = second.submit(lambda: 7)  # there is one thread
        SerialExecutor(pool).shutdown()
        second.shutdown(wait=False)
        with pytest.raises(RuntimeError, match="shut down"):
            second.submit(lambda: 8)
        ending = Thread(target=first.shutdown)
        ending.start()
        assert ending.is_alive()
        resume.set()
        ending.join(PATIENCE)
        assert not ending.is_alive()
        assert blocked.done()
        assert queued.result(PATIENCE) == 7
        third = SerialExecutor(pool)
        assert third.submit(lambda: 9).result(PATIENCE) == 9, "the pool goes on"


def test_shutdown_may_cancel_waiting_tasks(pool: Executor) -> None:
    executor, begun, resume = SerialExecutor(pool), Event(), Event()
    running, waiting = executor.submit(lambda: (begun.set(), resume.wait(PATIENCE))[1]), executor.submit(pytest.fail)
    assert begun.wait(PATIENCE)
    executor.shutdown(wait=False, cancel_futures=True)
    resume.set()
    assert running.result(PATIENCE)
    assert waiting.cancelled()


def test_one_kind_of_work_has_one_pool() -> None:
    """An executor of several threads has its own: an opening reads in parallel."""
    threads = SharedThreads(2)
    meeting = Barrier(3)
    waiting = [threads.threads(1, "commit").submit(meeting.wait) for _ in range(2)]
    assert threads.threads(1, "look").submit(lambda: 7).result(PATIENCE) == 7, "another pool"
    third = threads.threads(1, "commit").submit(meeting.wait)
    assert not third.running(), "two threads are taken"
    with threads.threads(4, "commit") as own:
        own.submit(meeting.wait).result(PATIENCE)
    assert sorted(future.result(PATIENCE) for future in waiting) != []
    meeting.abort()
    with pytest.raises(threading.BrokenBarrierError):
        third.result(PATIENCE)


@pytest.mark.parametrize("count", [1, 2])
def test_crowded_stores_share_threads_without_deadlock(count: int) -> None:
    """Commits wait for deletions under way, moves for commits, and the end of a store for its tidying."""
    threads, places = SharedThreads(count), [MemoryObjects() for _ in range(8)]

    async def store(objects: MemoryObjects) -> None:
        journal = ObjectJournal(objects, "the place", CROWDED, 1.0, threads)
        await asyncio.get_running_loop().run_in_executor(None, journal.load)
        fence = Fence(journal, threads.threads(1, "gradserve-look"))
        commits = Commits(journal, 1.0, executor=threads.threads(1, "gradserve-commit"), fence=fence)
        table = GraphStore(Quota(1000, 1 << 30))
        for number in range(60):
            await commit(commits, replacement(table, number))
        assert await commits.close(PATIENCE)

    async def all_stores() -> None:
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*map(store, places))

    asyncio.run(all_stores())
    for objects in places:
        with closing(ObjectJournal(objects, "the place")) as again:
            assert sorted(stored.graph_id for stored in again.load().graphs) == ["g0", "g1", "g2"]


def replacement(table: GraphStore, number: int) -> Change:
    """Build the change of one of three graphs, which leaves an object that is dead."""
    graph = Registered.parse(b'{"graph_id":"g%d","number":%d,"graph":{}}' % (number % 3, number))
    write = GraphWrite("", graph.graph_id, graph.record)
    return Change(table, ("", graph.graph_id), graph, write, lambda _: True)


async def commit(commits: Commits, change: Change) -> None:
    done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    commits.submit(Proposal([change], done.set_result))
    assert await done is None


def test_closing_a_store_needs_no_free_thread_of_its_kind() -> None:
    """Each store is closed on a thread of commits, and waits there for a thread that tidies."""
    threads = SharedThreads(1)
    journals = [ObjectJournal(MemoryObjects(), "the place", CROWDED, 1.0, threads) for _ in range(4)]
    for number, journal in enumerate(journals):
        journal.load()
        journal.commit(put(tensor("w", number)))
    closing_all = [threads.threads(1, "gradserve-commit").submit(journal.close) for journal in journals]
    assert [future.result(PATIENCE) for future in closing_all] == [None] * 4
