"""What is kept, and in which order: commits against a model that does one thing after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from service.store.changes import ANY_VERSION, Condition
from service.store.commits import Proposal
from service.store.journal import StateFull, StateLost
from tests.service.store.commit_model import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    if not made.loop.is_closed():
        made.close()


class Answers(list[Any]):
    """What was answered, by name."""

    def of(self, name: str) -> Any:
        """A `done` that notes the code."""
        return lambda refusal: self.append((name, None if refusal is None else refusal.code))


@pytest.fixture
def answers() -> Answers:
    return Answers()


def test_nobody_sees_what_is_not_on_disk(bench: Bench, answers: Answers) -> None:
    bench.submit(bench.change("a", "1"), done=answers.of("first"))
    assert not answers
    assert bench.tensors.find(("", "a")) is None
    bench.go_on()
    assert answers == [("first", None)]
    assert bench.placed["a"].etag == "1"
    assert bench.disk.tensors == {"a": "1"}


def test_those_that_wait_are_written_together(bench: Bench, answers: Answers) -> None:
    for i in range(5):
        bench.submit(bench.change(f"t{i}", str(i)), done=answers.of(str(i)))
    assert len(bench.hand.given) == 1
    bench.go_on()
    assert len(answers) == 1
    bench.go_on()
    assert answers == [(str(i), None) for i in range(5)]
    assert not bench.hand.given, "the last four were one write"


def test_a_condition_sees_what_comes_before_it_in_its_batch(bench: Bench, answers: Answers) -> None:
    absent = Condition(none_match=(ANY_VERSION,))
    bench.submit(bench.change("z", "0"), done=answers.of("one that is being written"))
    for name in ("first", "second", "third"):
        bench.submit(bench.change("a", name, absent), done=answers.of(name))
    bench.go_on()
    bench.go_on()
    assert answers[1:] == [("first", None), ("second", "precondition_failed"), ("third", "precondition_failed")]
    assert bench.disk.tensors["a"] == "first"


def test_one_that_has_no_room_takes_none_down_with_it(bench: Bench, answers: Answers) -> None:
    """And what was refused for its sake is decided anew."""
    absent = Condition(none_match=(ANY_VERSION,))
    bench.submit(bench.change("z", "0"), done=answers.of("z"))
    bench.submit(bench.change("a", "1", absent), done=answers.of("large"))
    bench.submit(bench.change("a", "2", absent), done=answers.of("small"))
    bench.submit(bench.change("b", "3"), done=answers.of("other"))
    bench.go_on()
    bench.go_on(StateFull("all together"))
    bench.go_on(StateFull("the large one"))
    bench.go_on()
    bench.go_on()
    assert answers == [("z", None), ("large", "store_full"), ("small", None), ("other", None)]
    assert bench.disk.tensors == {"z": "0", "a": "2", "b": "3"}


def test_the_old_value_stands_where_there_is_no_room(bench: Bench, answers: Answers) -> None:
    bench.submit(bench.change("a", "1"), done=answers.of("1"))
    bench.go_on()
    bench.submit(bench.change("a", "2"), done=answers.of("2"))
    bench.go_on(StateFull("full"))
    assert answers == [("1", None), ("2", "store_full")]
    assert bench.placed["a"].etag == "1"
    bench.submit(bench.change("a", "3"), done=answers.of("3"))
    bench.go_on()
    assert bench.placed["a"].etag == "3", "it goes on when there is room again"


def test_a_disk_that_fails_is_a_state_of_the_server_and_told(
    bench: Bench, answers: Answers, caplog: pytest.LogCaptureFixture
) -> None:
    bench.submit(bench.change("a", "1"), done=answers.of("1"))
    bench.go_on(OSError("the disk is on fire"))
    assert answers == [("1", "not_ready")]
    assert "the disk is on fire" in caplog.text
    assert not bench.placed


def test_upon_a_failure_nobody_is_told_what_did_not_come_about(bench: Bench, answers: Answers) -> None:
    absent = Condition(none_match=(ANY_VERSION,))
    bench.submit(bench.change("z", "0"), done=answers.of("z"))
    bench.submit(bench.change("z", "1", absent), done=answers.of("justly refused"))
    bench.submit(bench.change("a", "1", absent), done=answers.of("first"))
    bench.submit(bench.change("a", "2", absent), done=answers.of("second"))
    bench.go_on()
    bench.go_on(OSError("broken"))
    assert answers[1:] == [
        ("justly refused", "precondition_failed"),
        ("first", "not_ready"),
        ("second", "not_ready"),
    ]


def test_a_server_that_lost_its_place_keeps_nothing_more(bench: Bench, answers: Answers) -> None:
    bench.submit(bench.change("a", "1"), done=answers.of("1"))
    bench.submit(bench.change("b", "1"), done=answers.of("waits"))
    bench.go_on(StateLost("another one"))
    bench.submit(bench.change("c", "1"), done=answers.of("later"), durable=False)
    assert answers == [("1", "not_ready"), ("waits", "not_ready"), ("later", "not_ready")]
    assert bench.commits.lost is not None
    assert not bench.placed
    assert not bench.hand.given


class TestWhatNeedNotBeDurable:
    """Seen at once, written later."""

    def test_it_is_answered_before_it_is_written(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), done=answers.of("1"), durable=False)
        assert answers == [("1", None)]
        assert bench.placed["a"].etag == "1"
        assert bench.disk.tensors == {}
        bench.flush()
        bench.go_on()
        assert bench.disk.tensors == {"a": "1"}

    def test_only_the_newest_is_written(self, bench: Bench, answers: Answers) -> None:
        for i in range(5):
            bench.submit(bench.change("a", str(i)), done=answers.of(str(i)), durable=False)
        bench.flush()
        bench.go_on()
        (commit,) = bench.disk.commits
        assert [write.etag for write in commit.tensors] == ["4"]

    def test_it_waits_for_no_write_of_others_nor_of_its_own(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), done=answers.of("1"), durable=False)
        bench.flush()
        bench.submit(bench.change("b", "1"), done=answers.of("durable"))
        bench.submit(bench.change("a", "2"), done=answers.of("2"), durable=False)
        assert answers == [("1", None), ("2", None)]
        bench.go_on()
        bench.go_on()
        assert bench.disk.tensors == {"a": "1", "b": "1"}
        bench.flush()
        bench.go_on()
        assert bench.disk.tensors == {"a": "2", "b": "1"}

    def test_it_waits_for_a_durable_write_of_the_same_name(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), done=answers.of("durable"))
        bench.submit(bench.change("a", "2"), done=answers.of("later"), durable=False)
        assert not answers
        bench.go_on()
        assert answers == [("durable", None), ("later", None)]
        assert bench.placed["a"].etag == "2"

    def test_it_comes_after_what_was_proposed_before_it(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("z", "0"), done=answers.of("z"))
        bench.submit(bench.change("a", "1"), done=answers.of("durable"))
        bench.submit(bench.change("a", "2"), done=answers.of("later"), durable=False)
        assert not answers
        bench.go_on()
        bench.go_on()
        assert answers == [("z", None), ("durable", None), ("later", None)]
        assert bench.placed["a"].etag == bench.disk.tensors["a"] == "2"

    def test_groups_that_come_to_share_a_name_are_one(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), bench.change("b", "1"), done=answers.of("1"), durable=False)
        bench.submit(bench.change("c", "1"), bench.change("d", "1"), done=answers.of("2"), durable=False)
        bench.submit(bench.change("a", "2"), bench.change("c", "2"), done=answers.of("3"), durable=False)
        bench.submit(bench.change("b", "2"), done=answers.of("durable"))
        bench.go_on()
        assert bench.disk.tensors == {"a": "2", "b": "2", "c": "2", "d": "1"}
        assert not bench.commits.behind

    def test_it_is_not_kept_by_a_server_that_lost_its_place(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), done=answers.of("durable"))
        bench.submit(bench.change("a", "2"), done=answers.of("later"), durable=False)
        bench.go_on(StateLost("another one"))
        assert answers == [("durable", "not_ready"), ("later", "not_ready")]
        assert not bench.placed

    def test_a_durable_write_takes_along_what_was_kept_as_one_with_its_past(
        self, bench: Bench, answers: Answers
    ) -> None:
        bench.submit(bench.change("a", "1"), bench.change("b", "1"), done=answers.of("both"), durable=False)
        bench.submit(bench.change("c", "1"), done=answers.of("apart"), durable=False)
        bench.submit(bench.change("a", "2"), done=answers.of("durable"))
        bench.go_on()
        assert bench.disk.tensors == {"a": "2", "b": "1"}
        assert bench.commits.behind == 1

    def test_without_room_it_stays_and_is_tried_again(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), bench.change("b", "1"), done=answers.of("1"), durable=False)
        bench.flush()
        bench.submit(bench.change("a", "2"), done=answers.of("2"), durable=False)
        bench.go_on(StateFull("full"))
        assert bench.placed["a"].etag == "2"
        bench.flush()
        bench.go_on()
        assert bench.disk.tensors == {"a": "2", "b": "1"}

    def test_it_is_written_within_the_time(self, answers: Answers) -> None:
        bench = Bench(within=0.02)

        async def written() -> None:
            while not bench.hand.given:  # noqa: ASYNC110  it is the timer that is waited for
                await asyncio.sleep(0.001)

        bench.submit(bench.change("a", "1"), done=answers.of("1"), durable=False)
        bench.loop.run_until_complete(asyncio.wait_for(written(), 30))
        bench.go_on(StateFull("not now"))
        bench.loop.run_until_complete(asyncio.wait_for(written(), 30))
        bench.go_on()
        assert bench.disk.tensors == {"a": "1"}
        bench.close()

    def test_an_end_writes_it(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("b", "1"), done=answers.of("durable"))
        bench.submit(bench.change("b", "2"), done=answers.of("later"), durable=False)
        bench.submit(bench.change("a", "1"), done=answers.of("1"), durable=False)
        assert bench.close()
        assert bench.disk.tensors == {"a": "1", "b": "2"}


def test_what_was_not_begun_in_time_is_not_done(bench: Bench, answers: Answers) -> None:
    bench.submit(bench.change("a", "1"), done=answers.of("late"), expires=0.0, timeout=1.0)
    assert answers == [("late", "deadline_exceeded")]
    assert not bench.hand.given


def test_nothing_begins_after_the_end(bench: Bench, answers: Answers) -> None:
    async def scenario() -> bool:
        bench.commits.submit(Proposal([bench.change("a", "1")], answers.of("before")))
        closing = asyncio.ensure_future(bench.commits.close(30.0))
        await asyncio.sleep(0)
        bench.commits.submit(Proposal([bench.change("a", "2")], answers.of("after")))
        while not closing.done():
            if bench.hand.given:
                bench.hand.go_on()
            await asyncio.sleep(0)
        closed: bool = await closing
        return closed

    assert bench.loop.run_until_complete(scenario())
    assert sorted(answers) == [("after", "shutting_down"), ("before", None)]
    bench.loop.close()


def test_a_disk_that_hangs_does_not_hold_up_the_end(answers: Answers, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.submit(bench.change("a", "1"), done=answers.of("1"))
    assert not bench.loop.run_until_complete(bench.commits.close(0.01))
    bench.close()
    assert "the server ends" in caplog.text


def test_quotas_count_what_is_coming(answers: Answers) -> None:
    bench = Bench(most=2)
    for name in ("a", "b", "c"):
        bench.submit(bench.change(name, "1"), done=answers.of(name))
    bench.submit(bench.change("a", "2"), done=answers.of("in place of one"))
    bench.submit(bench.change("a", None), bench.change("c", "2"), done=answers.of("one for another"))
    bench.go_on()
    bench.go_on()
    assert answers == [
        ("a", None),
        ("b", None),
        ("c", "store_full"),
        ("in place of one", None),
        ("one for another", None),
    ]
    assert bench.disk.tensors == {"b": "1", "c": "2"}
    bench.close()


def test_a_fault_in_a_check_is_answered(bench: Bench, answers: Answers) -> None:
    change = bench.change("a", "1")
    broken = type(change)(change.table, change.key, change.value, change.write, lambda there: 1 // 0 > 0)
    bench.submit(broken, done=answers.of("1"))
    assert answers == [("1", "internal_error")]
