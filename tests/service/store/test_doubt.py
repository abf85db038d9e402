"""Where a place does not say what became of a write: who is told what, and when; and what is answered meanwhile."""

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
    made = Bench(shared=True)
    yield made
    if not made.loop.is_closed():
        made.close()


class Answers(list[tuple[str, str | None]]):
    def of(self, name: str) -> Callable[[Refusal | None], None]:
        return lambda refusal: self.append((name, None if refusal is None else refusal.code))


@pytest.fixture
def answers() -> Answers:
    return Answers()


def test_at_the_deadline_a_write_in_doubt_is_unconfirmed_and_one_that_waits_is_late(
    bench: Bench, answers: Answers
) -> None:
    bench.propose("a", "1", answers, expires=5.0)
    bench.propose("a", "2", answers, expires=6.0)
    bench.propose("b", "1", answers, expires=7.0)
    bench.wait(4.9)
    assert not answers
    bench.wait(8.0)
    assert answers == [("a=1 unsure", "unconfirmed"), ("a=2", "deadline_exceeded"), ("b=1", "deadline_exceeded")]
    bench.go_on()
    assert answers[3:] == [("a=1", None)]
    assert bench.disk.tensors == {"a": "1"}
    assert bench.placed["a"].etag == "1", "it was kept, and is seen"
    assert [outcome for outcome, _ in bench.told] == ["unconfirmed", "deadline_exceeded", "deadline_exceeded"]


def test_names_in_doubt_wait(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, expires=5.0)
    bench.wait(6.0)
    bench.propose("a", "2", answers, expires=100.0, condition=ABSENT)
    bench.propose("a", "3", answers, expires=100.0, durable=False)
    assert len(answers) == 1
    bench.go_on()
    bench.go_on()
    assert answers[1:] == [("a=1", None), ("a=2", "precondition_failed"), ("a=3", None)]


def test_one_that_was_told_in_time_is_told_once(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, expires=5.0)
    bench.go_on()
    bench.wait(10.0)
    assert answers == [("a=1", None)]


def test_a_write_that_another_server_forestalled_was_not_made(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, expires=100.0)
    bench.go_on(StateLost("another one"))
    assert answers == [("a=1", "not_ready")]


def test_a_server_that_ends_in_doubt_does_not_say_that_nothing_was_kept(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, expires=100.0)
    bench.go_on(StateUnknown())
    assert answers == [("a=1", "unconfirmed")]


def test_what_is_decided_without_a_write_is_seen_first(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers)
    bench.go_on()
    bench.disk.is_current = False
    bench.propose("a", "2", answers, condition=ABSENT)
    assert answers[1:] == [], "a look is on its way"
    bench.look_on()
    assert answers[1:] == [("a=2", "precondition_failed")]
    bench.disk.is_current = False
    bench.propose("a", "3", answers, condition=ABSENT)
    bench.look_on(StateLost("another one"))
    assert answers[2:] == [("a=3", "not_ready")]


def test_what_was_decided_in_a_tenure_is_not_told_after_it(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers)
    bench.go_on()
    bench.propose("z", "0", answers)
    bench.propose("a", "2", answers, condition=ABSENT)
    bench.propose("b", "2", answers)
    bench.go_on()
    bench.disk.is_current = False
    bench.go_on(StateLost("another one"))
    assert answers[2:] == [("a=2", "not_ready"), ("b=2", "not_ready")]


def test_what_need_not_be_durable_is_written_where_a_look_is_due(bench: Bench, answers: Answers) -> None:
    bench.propose("a", "1", answers, durable=False)
    assert answers == [("a=1", None)]
    bench.disk.is_current = False
    bench.propose("a", "2", answers, durable=False)
    assert len(answers) == 1
    bench.go_on()
    assert answers[1:] == [("a=2", None)]
    assert bench.disk.tensors == {"a": "2"}


def test_a_call_in_doubt_is_under_way() -> None:
    """Its client was told unconfirmed; who sends it again is neither answered nor obeyed until it is known."""
    table = AnswerTable(Quota(10, 1 << 20), 600.0)
    change = new_answer(table, AnswerRecord(*ASKED, "text/plain", b"ok", 1e12))
    assert table.begin(ASKED) is None
    table.expect(change.key, change.value)
    table.end(ASKED)
    with pytest.raises(Refusal, match="under way"):
        table.begin(ASKED)
    with pytest.raises(Refusal, match="another request"):
        table.begin(ASKED._replace(fingerprint="of another"))
    table.settle(change.key, change.value)
    assert table.begin(ASKED) == change.value


class Looked(Disk):
    """A place of which each look is counted, and good for nobody who comes later."""

    shared = True

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.is_current = False

    def look(self) -> None:
        self.count += 1


def test_one_look_is_for_all_that_wait_before_it_begins() -> None:
    async def scenario() -> tuple[int, int]:
        journal = Looked()
        fence = Fence(journal)
        await asyncio.gather(*(fence.wait_until_current() for _ in range(20)))
        first = journal.count
        await fence.wait_until_current()
        fence.close()
        return first, journal.count

    assert asyncio.run(scenario()) == (1, 2)


def test_who_waits_for_a_look_waits_no_longer_than_there_is_time() -> None:
    async def scenario() -> None:
        fence = Fence(Looked(), clock=lambda: 10.0)
        with pytest.raises(Refusal, match="does not answer") as refused:
            await fence.wait_until_current(expires=10.0)
        assert (refused.value.code, refused.value.retry_after) == ("not_ready", 1)
        fence.close()

    asyncio.run(scenario())


def test_a_place_of_ones_own_needs_no_look() -> None:
    async def scenario() -> None:
        fence = Fence(Disk(), executor=None)
        fence.close()
        await fence.wait_until_current(expires=0.0)

    asyncio.run(scenario())


def test_the_end_gives_up_what_is_in_doubt(answers: Answers) -> None:
    bench = Bench(shared=True)
    bench.propose("a", "1", answers)
    assert not bench.loop.run_until_complete(bench.commits.close(0.01))
    assert bench.disk.gave_up
    bench.close()


def test_proposals_have_a_deadline_only_where_somebody_else_may_write() -> None:
    bench = Bench()
    proposal = Proposal([bench.change("a", "1")], lambda refusal: None, expires=1e9)
    bench.do(lambda: bench.commits.submit(proposal))
    assert proposal.timer is None
    bench.close()
