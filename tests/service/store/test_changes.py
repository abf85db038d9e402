"""Checks of changes against the state at the time of the decision."""

from __future__ import annotations

import asyncio

import pytest

from service.core.errors import Refusal
from service.core.keys.caller import ANONYMOUS
from service.observe.store import StoreService
from service.store.changes import Condition, new_answer
from service.store.idempotency import AnswerTable, Repetition
from service.store.journal import MemoryJournal
from service.store.tables import Quota
from service.store.writes import AnswerRecord
from service.web.repetition import answer_changes
from service.workers.task import Reply, Task
from tests.simulation.checker import Operation
from tests.simulation.server import SETTINGS, Pool, code_of, stored_of

ASKED = Repetition("", "k", "f")


def record(expires: float) -> AnswerRecord:
    return AnswerRecord(*ASKED, "text/plain", b"told", expires)


def test_first_of_two_answers_to_one_call_is_recorded() -> None:
    """Two servers have received and computed the same call."""
    now = [100.0]
    table = AnswerTable(Quota(10, 10_000), 60.0, lambda: now[0])
    change = new_answer(table, record(160.0))
    assert change.check(None)
    with pytest.raises(Refusal) as refused:
        change.check(record(150.0))
    assert (refused.value.code, refused.value.retry_after) == ("conflict", 1)
    now[0] = 151.0
    assert change.check(record(150.0)), "it is given no more"


def test_look_up_does_not_begin_a_call() -> None:
    table = AnswerTable(Quota(10, 10_000), 60.0, lambda: 0.0)
    assert table.look_up(ASKED) is None
    assert table.begin(ASKED) is None
    with pytest.raises(Refusal, match="is still in progress"):
        table.look_up(ASKED)
    table.end(ASKED)
    table.load(("", "k"), record(10.0))
    assert table.look_up(ASKED) == record(10.0)
    with pytest.raises(Refusal, match="a different request"):
        table.look_up(ASKED._replace(fingerprint="g"))


def test_second_execution_of_a_call_gets_a_conflict() -> None:
    """Both calls require that the tensor does not exist. The second gets the conflict about its key first."""

    async def settle_twice() -> list[str]:
        store = StoreService(SETTINGS, Pool(), MemoryJournal())  # type: ignore[arg-type]
        operation = Operation("write", 0.0, (), {"x": 1}, {"x": None})
        outcomes = []
        for _ in range(2):
            reply = Reply(200, "text/plain", [b"ok"])
            reply.stored, reply.stored_data = [stored_of(operation, "x")], [b"\0"]
            more = answer_changes(store.answers, ASKED, reply)
            job = Task("forward", b"", "request", 10.0, float("inf"))
            result = await store.settle_and_wait(job, ANONYMOUS, reply, Condition(), more)
            outcomes.append("ok" if result.status == 200 else code_of(result))
        return outcomes

    assert asyncio.run(settle_twice()) == ["ok", "conflict"]
