"""What is kept, and in which order: commits against a model that does one thing after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.errors import Refusal
from service.state.commits import Proposal
from service.state.conditions import ALWAYS, ANY_VERSION, Condition
from service.state.journal import StateFull, StateLost
from tests.service.state.commit_model import Bench

NAMES = ("a", "b", "c")


class Serial(RuleBasedStateMachine):
    """The answers, in the order in which they come, are those of a server that does one thing after the other.

    And what is on disk, whenever one looks: all that was acknowledged as durable, and nothing by halves.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.model: dict[str, str] = {}
        self.history: dict[str, list[str | None]] = {name: [None] for name in NAMES}
        self.together: list[dict[str, str | None]] = []
        self.floor: dict[str, int] = dict.fromkeys(NAMES, 0)
        self.submitted = self.answered = 0

    def propose(self, changed: dict[str, tuple[bool, Condition]], *, durable: bool) -> None:
        self.submitted += 1
        etags = {name: f"{self.submitted:03}{name}" if keeps else None for name, (keeps, _) in changed.items()}
        changes = [self.bench.change(name, etags[name], condition) for name, (_, condition) in changed.items()]
        conditions = {name: condition for name, (_, condition) in changed.items()}

        def done(refusal: Refusal | None) -> None:
            self.answered += 1
            self.judge(etags, conditions, refusal, durable=durable)

        self.bench.submit(*changes, done=done, durable=durable)

    def judge(
        self,
        etags: dict[str, str | None],
        conditions: dict[str, Condition],
        refusal: Refusal | None,
        *,
        durable: bool,
    ) -> None:
        holds = all(condition.holds(self.model.get(name)) for name, condition in conditions.items())
        if refusal is not None:
            assert refusal.code in ("precondition_failed", "store_full", "internal_error")
            assert refusal.code != "precondition_failed" or not holds
            return
        assert holds, "what was kept was kept upon what the model has"
        self.together.append(etags)
        for name, etag in etags.items():
            self.history[name].append(etag)
            if etag is None:
                self.model.pop(name, None)
            else:
                self.model[name] = etag
            if durable:
                self.floor[name] = len(self.history[name]) - 1

    conditions = st.sampled_from(["always", "absent", "there", "current", "stale"])

    def condition(self, name: str, kind: str) -> Condition:
        return {
            "always": ALWAYS,
            "absent": Condition(none_match=(ANY_VERSION,)),
            "there": Condition(match=(ANY_VERSION,)),
            "current": Condition(match=(self.model.get(name, "none"),)),
            "stale": Condition(match=("stale",)),
        }[kind]

    @rule(
        changed=st.dictionaries(
            st.sampled_from(NAMES), st.tuples(st.sampled_from([True, True, False]), conditions), min_size=1
        ),
        durable=st.booleans(),
    )
    def submit(self, changed: dict[str, tuple[bool, str]], *, durable: bool) -> None:
        """Somebody wants something kept, or no more kept."""
        stated = {name: (keeps, self.condition(name, kind)) for name, (keeps, kind) in changed.items()}
        stated = {
            name: (keeps, Condition((*(condition.match or (ANY_VERSION,)),)) if not keeps else condition)
            for name, (keeps, condition) in stated.items()
        }
        self.propose(stated, durable=durable)

    @precondition(lambda self: self.bench.hand.given)
    @rule(failure=st.sampled_from([None, None, None, StateFull("full"), OSError("broken")]))
    def end_a_write(self, failure: Exception | None) -> None:
        """The disk has done it, or has not."""
        self.bench.go_on(failure)

    @precondition(lambda self: self.bench.commits.behind)
    @rule()
    def flush(self) -> None:
        """The time of what is behind has come."""
        self.bench.flush()

    @invariant()
    def everybody_sees_what_was_answered(self) -> None:
        """No more, and no less."""
        seen = {name: version.etag for (_, name), version in self.bench.tensors}
        assert seen == self.model
        assert {name: version.etag for name, version in self.bench.placed.items()} == self.model

    @invariant()
    def what_is_on_disk_is_whole_and_not_too_old(self) -> None:
        """Each tensor is as it was at some time, not before its last durable write, and with those of its time."""
        disk = self.bench.disk.tensors
        at = {
            name: self.history[name].index(disk[name])
            for name in NAMES
            if name in disk and disk[name] in self.history[name]
        }
        for name, floor in self.floor.items():
            if name in at:
                assert at[name] >= floor
            elif name not in disk:
                assert None in self.history[name][floor:], "what was acknowledged is there"
            else:
                pytest.fail("something is on disk that nobody was told of")
        for etags in self.together:
            there = [name for name, etag in etags.items() if etag is not None and disk.get(name) == etag]
            for name, etag in etags.items():
                if there and name in at and etag is not None:
                    assert at[name] >= self.history[name].index(etag), "written as one, there as one"

    @invariant()
    def what_is_counted_is_what_is_there_and_coming(self) -> None:
        """Quotas are never wrong."""
        table = self.bench.tensors
        after = {name: table.latest(("", name)) for name in NAMES}
        values = [version for version in after.values() if version is not None]
        assert (table.count, table.held) == (len(values), sum(table._nbytes(version) for version in values))

    def teardown(self) -> None:
        """After an orderly end all of it is on disk, and everybody was answered once."""
        assert self.bench.close()
        assert self.bench.disk.closed
        assert self.answered == self.submitted
        assert self.bench.disk.tensors == self.model
        assert not self.bench.commits.behind


Serial.TestCase.settings = settings(max_examples=300, stateful_step_count=40)
TestSerial = Serial.TestCase


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


def test_a_disk_that_fails_is_a_fault_and_told(
    bench: Bench, answers: Answers, caplog: pytest.LogCaptureFixture
) -> None:
    bench.submit(bench.change("a", "1"), done=answers.of("1"))
    bench.go_on(OSError("the disk is on fire"))
    assert answers == [("1", "internal_error")]
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
        ("first", "internal_error"),
        ("second", "internal_error"),
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
