"""Commits: batches, order, conditions, failures, and deferred writes."""

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
    created = Bench()
    yield created
    if not created.loop.is_closed():
        created.close()


class Answers(list[Any]):
    """Recorded answers with the names of their proposals."""

    def callback(self, name: str) -> Any:
        """Return a `done` that records the code."""
        return lambda refusal: self.append((name, None if refusal is None else refusal.code))


@pytest.fixture
def answers() -> Answers:
    return Answers()


def test_change_is_visible_only_after_it_is_durable(bench: Bench, answers: Answers) -> None:
    bench.submit(bench.change("a", "1"), done=answers.callback("first"))
    assert not answers
    assert bench.tensors.find(("", "a")) is None
    bench.run_next()
    assert answers == [("first", None)]
    assert bench.placed["a"].etag == "1"
    assert bench.disk.tensors == {"a": "1"}


def test_waiting_proposals_are_written_in_one_batch(bench: Bench, answers: Answers) -> None:
    for i in range(5):
        bench.submit(bench.change(f"t{i}", str(i)), done=answers.callback(str(i)))
    assert len(bench.writer.queued) == 1
    bench.run_next()
    assert len(answers) == 1
    bench.run_next()
    assert answers == [(str(i), None) for i in range(5)]
    assert not bench.writer.queued, "the last four were one write"


def test_proposals_that_wait_are_not_looked_at_again_for_each_new_one(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a commit is written, hundreds may arrive."""
    bench = Bench(most=1000)
    bench.submit(bench.change("z", "0"), done=answers.callback("z"))
    looks = 0
    names = Proposal.names.fget
    assert names is not None

    def counted(proposal: Proposal) -> object:
        nonlocal looks
        looks += 1
        return names(proposal)

    monkeypatch.setattr(Proposal, "names", property(counted))
    for number in range(500):
        bench.submit(bench.change(f"t{number}", "1"), done=answers.callback(str(number)))
    bench.run_next()
    bench.run_next()
    assert answers == [("z", None), *((str(number), None) for number in range(500))]
    assert looks < 5 * 500
    bench.close()


def test_condition_sees_earlier_changes_of_its_batch(bench: Bench, answers: Answers) -> None:
    absent = Condition(none_match=(ANY_VERSION,))
    bench.submit(bench.change("z", "0"), done=answers.callback("one that is being written"))
    for name in ("first", "second", "third"):
        bench.submit(bench.change("a", name, absent), done=answers.callback(name))
    bench.run_next()
    bench.run_next()
    assert answers[1:] == [("first", None), ("second", "precondition_failed"), ("third", "precondition_failed")]
    assert bench.disk.tensors["a"] == "first"


def test_oversized_proposal_does_not_fail_others_of_its_batch(bench: Bench, answers: Answers) -> None:
    """Proposals that were refused because of it are decided again."""
    absent = Condition(none_match=(ANY_VERSION,))
    bench.submit(bench.change("z", "0"), done=answers.callback("z"))
    bench.submit(bench.change("a", "1", absent), done=answers.callback("large"))
    bench.submit(bench.change("a", "2", absent), done=answers.callback("small"))
    bench.submit(bench.change("b", "3"), done=answers.callback("other"))
    bench.run_next()
    bench.run_next(StateFull("all together"))
    bench.run_next(StateFull("the large one"))
    bench.run_next()
    bench.run_next()
    assert answers == [("z", None), ("large", "store_full"), ("small", None), ("other", None)]
    assert bench.disk.tensors == {"z": "0", "a": "2", "b": "3"}


def test_full_disk_keeps_the_old_value(bench: Bench, answers: Answers) -> None:
    bench.submit(bench.change("a", "1"), done=answers.callback("1"))
    bench.run_next()
    bench.submit(bench.change("a", "2"), done=answers.callback("2"))
    bench.run_next(StateFull("full"))
    assert answers == [("1", None), ("2", "store_full")]
    assert bench.placed["a"].etag == "1"
    bench.submit(bench.change("a", "3"), done=answers.callback("3"))
    bench.run_next()
    assert bench.placed["a"].etag == "3", "it goes on when there is room again"


def test_disk_failure_is_not_ready_and_logged(bench: Bench, answers: Answers, caplog: pytest.LogCaptureFixture) -> None:
    bench.submit(bench.change("a", "1"), done=answers.callback("1"))
    bench.run_next(OSError("the disk is on fire"))
    assert answers == [("1", "not_ready")]
    assert "the disk is on fire" in caplog.text
    assert not bench.placed


def test_failed_batch_fails_answers_that_depend_on_it(bench: Bench, answers: Answers) -> None:
    absent = Condition(none_match=(ANY_VERSION,))
    bench.submit(bench.change("z", "0"), done=answers.callback("z"))
    bench.submit(bench.change("z", "1", absent), done=answers.callback("justly refused"))
    bench.submit(bench.change("a", "1", absent), done=answers.callback("first"))
    bench.submit(bench.change("a", "2", absent), done=answers.callback("second"))
    bench.run_next()
    bench.run_next(OSError("broken"))
    assert answers[1:] == [
        ("justly refused", "precondition_failed"),
        ("first", "not_ready"),
        ("second", "not_ready"),
    ]


def test_server_that_lost_its_place_refuses_all_changes(bench: Bench, answers: Answers) -> None:
    bench.submit(bench.change("a", "1"), done=answers.callback("1"))
    bench.submit(bench.change("b", "1"), done=answers.callback("waits"))
    bench.run_next(StateLost("another one"))
    bench.submit(bench.change("c", "1"), done=answers.callback("later"), durable=False)
    assert answers == [("1", "not_ready"), ("waits", "not_ready"), ("later", "not_ready")]
    assert bench.commits.lost is not None
    assert not bench.placed
    assert not bench.writer.queued


class TestDeferredWrites:
    """Deferred writes: visible at once, written later."""

    def test_deferred_write_is_answered_at_once(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), done=answers.callback("1"), durable=False)
        assert answers == [("1", None)]
        assert bench.placed["a"].etag == "1"
        assert bench.disk.tensors == {}
        bench.flush()
        bench.run_next()
        assert bench.disk.tensors == {"a": "1"}

    def test_only_the_latest_deferred_version_is_written(self, bench: Bench, answers: Answers) -> None:
        for i in range(5):
            bench.submit(bench.change("a", str(i)), done=answers.callback(str(i)), durable=False)
        bench.flush()
        bench.run_next()
        (commit,) = bench.disk.commits
        assert [write.etag for write in commit.tensors] == ["4"]

    def test_deferred_write_does_not_wait_for_running_writes(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), done=answers.callback("1"), durable=False)
        bench.flush()
        bench.submit(bench.change("b", "1"), done=answers.callback("durable"))
        bench.submit(bench.change("a", "2"), done=answers.callback("2"), durable=False)
        assert answers == [("1", None), ("2", None)]
        bench.run_next()
        bench.run_next()
        assert bench.disk.tensors == {"a": "1", "b": "1"}
        bench.flush()
        bench.run_next()
        assert bench.disk.tensors == {"a": "2", "b": "1"}

    def test_deferred_write_waits_for_a_durable_one_of_its_name(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), done=answers.callback("durable"))
        bench.submit(bench.change("a", "2"), done=answers.callback("later"), durable=False)
        assert not answers
        bench.run_next()
        assert answers == [("durable", None), ("later", None)]
        assert bench.placed["a"].etag == "2"

    def test_deferred_write_follows_earlier_proposals(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("z", "0"), done=answers.callback("z"))
        bench.submit(bench.change("a", "1"), done=answers.callback("durable"))
        bench.submit(bench.change("a", "2"), done=answers.callback("later"), durable=False)
        assert not answers
        bench.run_next()
        bench.run_next()
        assert answers == [("z", None), ("durable", None), ("later", None)]
        assert bench.placed["a"].etag == bench.disk.tensors["a"] == "2"

    def test_deferred_groups_that_share_a_name_are_merged(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), bench.change("b", "1"), done=answers.callback("1"), durable=False)
        bench.submit(bench.change("c", "1"), bench.change("d", "1"), done=answers.callback("2"), durable=False)
        bench.submit(bench.change("a", "2"), bench.change("c", "2"), done=answers.callback("3"), durable=False)
        bench.submit(bench.change("b", "2"), done=answers.callback("durable"))
        bench.run_next()
        assert bench.disk.tensors == {"a": "2", "b": "2", "c": "2", "d": "1"}
        assert not bench.commits.behind

    def test_deferred_write_is_refused_after_the_place_is_lost(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), done=answers.callback("durable"))
        bench.submit(bench.change("a", "2"), done=answers.callback("later"), durable=False)
        bench.run_next(StateLost("another one"))
        assert answers == [("durable", "not_ready"), ("later", "not_ready")]
        assert not bench.placed

    def test_durable_write_includes_the_deferred_group_of_its_name(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), bench.change("b", "1"), done=answers.callback("both"), durable=False)
        bench.submit(bench.change("c", "1"), done=answers.callback("apart"), durable=False)
        bench.submit(bench.change("a", "2"), done=answers.callback("durable"))
        bench.run_next()
        assert bench.disk.tensors == {"a": "2", "b": "1"}
        assert bench.commits.behind == 1

    def test_deferred_write_is_retried_after_a_full_disk(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("a", "1"), bench.change("b", "1"), done=answers.callback("1"), durable=False)
        bench.flush()
        bench.submit(bench.change("a", "2"), done=answers.callback("2"), durable=False)
        bench.run_next(StateFull("full"))
        assert bench.placed["a"].etag == "2"
        bench.flush()
        bench.run_next()
        assert bench.disk.tensors == {"a": "2", "b": "1"}

    def test_deferred_write_is_written_in_time(self, answers: Answers) -> None:
        bench = Bench(within=0.02)

        async def written() -> None:
            while not bench.writer.queued:  # noqa: ASYNC110  waits for the timer
                await asyncio.sleep(0.001)

        bench.submit(bench.change("a", "1"), done=answers.callback("1"), durable=False)
        bench.loop.run_until_complete(asyncio.wait_for(written(), 30))
        bench.run_next(StateFull("not now"))
        bench.loop.run_until_complete(asyncio.wait_for(written(), 30))
        bench.run_next()
        assert bench.disk.tensors == {"a": "1"}
        bench.close()

    def test_close_writes_deferred_changes(self, bench: Bench, answers: Answers) -> None:
        bench.submit(bench.change("b", "1"), done=answers.callback("durable"))
        bench.submit(bench.change("b", "2"), done=answers.callback("later"), durable=False)
        bench.submit(bench.change("a", "1"), done=answers.callback("1"), durable=False)
        assert bench.close()
        assert bench.disk.tensors == {"a": "1", "b": "2"}


def test_expired_proposal_is_not_begun(bench: Bench, answers: Answers) -> None:
    bench.submit(bench.change("a", "1"), done=answers.callback("late"), expires=0.0, timeout=1.0)
    assert answers == [("late", "deadline_exceeded")]
    assert not bench.writer.queued


def test_proposals_after_close_are_refused(bench: Bench, answers: Answers) -> None:
    async def scenario() -> bool:
        bench.commits.submit(Proposal([bench.change("a", "1")], answers.callback("before")))
        closing = asyncio.ensure_future(bench.commits.close(30.0))
        await asyncio.sleep(0)
        bench.commits.submit(Proposal([bench.change("a", "2")], answers.callback("after")))
        while not closing.done():
            if bench.writer.queued:
                bench.writer.run_next()
            await asyncio.sleep(0)
        closed: bool = await closing
        return closed

    assert bench.loop.run_until_complete(scenario())
    assert sorted(answers) == [("after", "shutting_down"), ("before", None)]
    bench.loop.close()


def test_hanging_disk_does_not_block_close(answers: Answers, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.submit(bench.change("a", "1"), done=answers.callback("1"))
    assert not bench.loop.run_until_complete(bench.commits.close(0.01))
    bench.close()
    assert "the server stops before its state is closed" in caplog.text


def test_quotas_include_pending_changes(answers: Answers) -> None:
    bench = Bench(most=2)
    for name in ("a", "b", "c"):
        bench.submit(bench.change(name, "1"), done=answers.callback(name))
    bench.submit(bench.change("a", "2"), done=answers.callback("in place of one"))
    bench.submit(bench.change("a", None), bench.change("c", "2"), done=answers.callback("one for another"))
    bench.run_next()
    bench.run_next()
    assert answers == [
        ("a", None),
        ("b", None),
        ("c", "store_full"),
        ("in place of one", None),
        ("one for another", None),
    ]
    assert bench.disk.tensors == {"b": "1", "c": "2"}
    bench.close()


def test_error_in_a_check_is_answered(bench: Bench, answers: Answers) -> None:
    change = bench.change("a", "1")
    broken = type(change)(change.table, change.key, change.value, change.write, lambda there: 1 // 0 > 0)
    bench.submit(broken, done=answers.callback("1"))
    assert answers == [("1", "internal_error")]
