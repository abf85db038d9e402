"""Writes with an unknown outcome: their answers, their deadlines, and answers to other calls meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from service.core.errors import Refusal
from service.store.changes import ANY_VERSION, Condition, new_answer
from service.store.commits import Proposal
from service.store.fence import Fence
from service.store.idempotency import AnswerTable, Repetition
from service.store.journal import StateLost, StateUnknown
from service.store.tables import Quota
from service.store.writes import AnswerRecord
from tests.service.store.commit_model import Bench, Disk

ABSENT = Condition(none_match=(ANY_VERSION,))
ASKED = Repetition("", "key", "of the request")


@pytest.fixture
def bench() -> Iterator[Bench]:
    created = Bench(shared=True)
    yield created
    if not created.loop.is_closed():
        created.close()


class Answers(list[tuple[str, str | None]]):
    def callback(self, name: str) -> Callable[[Refusal | None], None]:
        return lambda refusal: self.append((name, None if refusal is None else refusal.code))


@pytest.fixture
def answers() -> Answers:
    return Answers()


def test_write_in_doubt_is_unconfirmed_at_its_deadline(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, expires=5.0)
    bench.propose("a", "2", answers, expires=6.0)
    bench.propose("b", "1", answers, expires=7.0)
    bench.wait(4.9)
    assert not answers
    bench.wait(8.0)
    assert answers == [("a=1 unsure", "unconfirmed"), ("a=2", "deadline_exceeded"), ("b=1", "deadline_exceeded")]
    bench.run_next()
    assert answers[3:] == [("a=1", None)]
    assert bench.disk.tensors == {"a": "1"}
    assert bench.placed["a"].etag == "1", "it was kept, and is seen"
    assert [outcome for outcome, _ in bench.outcomes] == ["unconfirmed", "deadline_exceeded", "deadline_exceeded"]


def test_changes_of_a_name_in_doubt_wait(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, expires=5.0)
    bench.wait(6.0)
    bench.propose("a", "2", answers, expires=100.0, condition=ABSENT)
    bench.propose("a", "3", answers, expires=100.0, durable=False)
    assert len(answers) == 1
    bench.run_next()
    bench.run_next()
    assert answers[1:] == [("a=1", None), ("a=2", "precondition_failed"), ("a=3", None)]


def test_write_answered_in_time_is_answered_once(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, expires=5.0)
    bench.run_next()
    bench.wait(10.0)
    assert answers == [("a=1", None)]


def test_write_of_a_server_that_lost_its_place_is_refused(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, expires=100.0)
    bench.run_next(StateLost("another one"))
    assert answers == [("a=1", "not_ready")]


def test_unknown_outcome_is_unconfirmed(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, expires=100.0)
    bench.run_next(StateUnknown())
    assert answers == [("a=1", "unconfirmed")]


def test_refusal_in_doubt_at_its_deadline_is_not_unconfirmed(bench: Bench, answers: Answers) -> None:
    """Nothing is written, whatever the look finds."""
    bench.propose("a", "1", answers)
    bench.run_next()
    bench.disk.is_current = False
    bench.propose("a", "2", answers, condition=ABSENT, expires=5.0)
    bench.wait(6.0)
    assert answers[1:] == [("a=2 unsure", "not_ready")]
    bench.finish_look()
    assert answers[2:] == [("a=2", "precondition_failed")]


def test_refusal_from_memory_waits_for_a_look(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers)
    bench.run_next()
    bench.disk.is_current = False
    bench.propose("a", "2", answers, condition=ABSENT)
    assert answers[1:] == [], "a look is on its way"
    bench.finish_look()
    assert answers[1:] == [("a=2", "precondition_failed")]
    bench.disk.is_current = False
    bench.propose("a", "3", answers, condition=ABSENT)
    bench.finish_look(StateLost("another one"))
    assert answers[2:] == [("a=3", "not_ready")]


def test_decisions_are_refused_after_the_place_is_lost(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers)
    bench.run_next()
    bench.propose("z", "0", answers)
    bench.propose("a", "2", answers, condition=ABSENT)
    bench.propose("b", "2", answers)
    bench.run_next()
    bench.disk.is_current = False
    bench.run_next(StateLost("another one"))
    assert answers[2:] == [("a=2", "not_ready"), ("b=2", "not_ready")]


def test_deferred_write_is_written_at_once_if_a_look_is_due(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, durable=False)
    assert answers == [("a=1", None)]
    bench.disk.is_current = False
    bench.propose("a", "2", answers, durable=False)
    assert len(answers) == 1
    bench.run_next()
    assert answers[1:] == [("a=2", None)]
    assert bench.disk.tensors == {"a": "2"}


def test_call_in_doubt_is_under_way() -> None:
    """The client got `unconfirmed`; until the outcome is known, a repeated call is neither answered nor executed."""
    table = AnswerTable(Quota(10, 1 << 20), 600.0)
    change = new_answer(table, AnswerRecord(*ASKED, "text/plain", b"ok", 1e12))
    assert table.begin(ASKED) is None
    table.expect(change.key, change.value)
    table.end(ASKED)
    with pytest.raises(Refusal, match="still in progress"):
        table.begin(ASKED)
    with pytest.raises(Refusal, match="a different request"):
        table.begin(ASKED._replace(fingerprint="of another"))
    table.settle(change.key, change.value)
    assert table.begin(ASKED) == change.value


class LookCounter(Disk):
    """Shared place that counts its looks, each of which is outdated at once."""

    shared = True

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.is_current = False

    def look(self) -> None:
        self.count += 1


def test_one_look_serves_all_earlier_waiters() -> None:
    async def scenario() -> tuple[int, int]:
        journal = LookCounter()
        fence = Fence(journal)
        await asyncio.gather(*(fence.wait_until_current() for _ in range(20)))
        first = journal.count
        await fence.wait_until_current()
        fence.close()
        return first, journal.count

    assert asyncio.run(scenario()) == (1, 2)


def test_waiting_for_a_look_respects_the_deadline() -> None:
    async def scenario() -> None:
        fence = Fence(LookCounter(), clock=lambda: 10.0)
        with pytest.raises(Refusal, match="does not respond") as refused:
            await fence.wait_until_current(expires=10.0)
        assert (refused.value.code, refused.value.retry_after) == ("not_ready", 1)
        fence.close()

    asyncio.run(scenario())


def test_exclusive_place_needs_no_look() -> None:
    async def scenario() -> None:
        fence = Fence(Disk(), executor=None)
        fence.close()
        await fence.wait_until_current(expires=0.0)

    asyncio.run(scenario())


def test_close_gives_up_a_write_in_doubt(answers: Answers) -> None:
    bench = Bench(shared=True)
    bench.propose("a", "1", answers)
    assert not bench.loop.run_until_complete(bench.commits.close(0.01))
    assert bench.disk.gave_up
    bench.close()


def test_proposals_have_timers_only_in_shared_places() -> None:
    bench = Bench()
    proposal = Proposal([bench.change("a", "1")], lambda refusal: None, expires=1e9)
    bench.do(lambda: bench.commits.submit(proposal))
    assert proposal.timer is None
    bench.close()
