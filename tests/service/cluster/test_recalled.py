"""Calls on a registered graph of another server: they run while that server is asked about the graph."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import orjson
import pytest

from service.cluster.pool import RecalledTask
from service.core.errors import Refusal
from service.store.tables import Registered
from service.workers.pool import Done
from service.workers.task import Reply, Task
from tests.service.workers.pools import until

GRAPH_ID = "a" * 64


def registered(name: str) -> Registered:
    return Registered.parse(orjson.dumps({"graph_id": GRAPH_ID, "name": name, "graph": {}}))


class Trial:
    """Task on a graph called `first`, whose owner answers when the test says so."""

    def __init__(self) -> None:
        graph = registered("first")
        self.task = Task(
            "forward", b"", "test", 60.0, time.monotonic() + 60.0, graph=graph.key, graph_bytes=graph.record
        )
        self.task.recalled = GRAPH_ID
        self.submitted: list[tuple[str | None, Done]] = []
        self.answer: asyncio.Future[Registered | None] = asyncio.get_running_loop().create_future()
        self.replies: list[Reply] = []
        self.over = 0
        self.run = RecalledTask(self.task, self.replies.append, self.find, self.submit)
        self.run.begin(self.count)

    def count(self) -> None:
        self.over += 1

    def find(self, namespace: str, graph_id: str) -> asyncio.Future[Registered | None]:
        assert (namespace, graph_id) == ("", GRAPH_ID)
        return self.answer

    def submit(self, task: Task, done: Done) -> None:
        assert task.recalled is None, "it would be asked for again and again"
        self.submitted.append((task.graph, done))

    def finish(self) -> None:
        """Let the worker reply to the last submission."""
        self.submitted[-1][1](Reply(200, "application/json", [b"{}"]))

    async def answer_with(self, answer: Registered | Exception | None) -> None:
        """Let the owner answer."""
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    @property
    def statuses(self) -> list[int]:
        return [reply.status for reply in self.replies]


def trial(test: Callable[[Trial, bool], Awaitable[None]]) -> Callable[..., None]:
    """Run a test in which the worker replies before the owner answers, and one in which it replies after it."""

    @pytest.mark.parametrize("worker_first", [True, False])
    def run(worker_first: bool) -> None:
        async def scenario() -> None:
            await test(Trial(), worker_first)

        asyncio.run(scenario())

    return run


async def both(trial: Trial, worker_first: bool, answer: Registered | Exception | None) -> None:
    if worker_first:
        trial.finish()
        assert not trial.replies, "the owner has not answered"
    await trial.answer_with(answer)
    if not worker_first:
        assert not trial.replies
        trial.finish()


@trial
async def test_reply_waits_for_the_owner(trial: Trial, worker_first: bool) -> None:
    await both(trial, worker_first, registered("first"))
    assert (trial.statuses, trial.over, len(trial.submitted)) == ([200], 1, 1)


@trial
async def test_deleted_graph_is_not_found(trial: Trial, worker_first: bool) -> None:
    await both(trial, worker_first, None)
    assert (trial.statuses, trial.over) == ([404], 1)
    assert f"there is no graph “{GRAPH_ID}”" in orjson.loads(trial.replies[0].body)["detail"]


@trial
async def test_graph_with_other_names_runs_again(trial: Trial, worker_first: bool) -> None:
    renamed = registered("second")
    await both(trial, worker_first, renamed)
    assert not trial.replies
    assert [graph for graph, _ in trial.submitted] == [registered("first").key, renamed.key]
    assert trial.task.graph_bytes == renamed.record
    trial.finish()
    assert (trial.statuses, trial.over) == ([200], 1)


@trial
async def test_refusal_of_the_owner_is_returned(trial: Trial, worker_first: bool) -> None:
    await both(trial, worker_first, Refusal("not_ready", "it does not answer"))
    assert (trial.statuses, trial.over) == ([503], 1)


@trial
async def test_ended_task_is_not_answered(trial: Trial, worker_first: bool) -> None:
    if worker_first:
        trial.finish()
    trial.run.end()
    await trial.answer_with(registered("first"))
    assert not trial.replies


@trial
async def test_deadline_is_kept_while_the_owner_is_silent(trial: Trial, worker_first: bool) -> None:
    trial.task.expires = time.monotonic()
    trial.finish()
    await until(lambda: trial.replies)
    assert (trial.statuses, trial.over) == ([503], 1)
    if worker_first:
        await trial.answer_with(registered("first"))
        assert len(trial.replies) == 1
