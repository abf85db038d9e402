"""The loop that shares: jobs that wait together are done as one where they can be, and alone else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from service.transport import frames
from service.transport.frames import TensorFrame
from service.transport.job import Job, Reply
from service.wire.media import JSON
from service.worker.sharing import FEWEST
from service.worker.sharing_loop import SharingLoop
from tests.service.worker.loops import Loop, sent


def answer(job: Job, how: bytes) -> Reply:
    return Reply(200, JSON, [bytes(job.body), how])


class Groups:
    """Does as one those whose bodies begin alike; `fails` says whether that is not to be."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.loop: Loop | None = None
        self.seen: list[list[int]] = []

    def _look(self) -> None:
        assert self.loop is not None
        self.seen.append(self.loop.page.executed)

    def read_job(self, job: Job, most_seconds: float | None) -> Job | Reply:
        self._look()
        return answer(job, b" at once") if job.body[:1] == b"!" else job

    def groups(self, tasks: Sequence[Job]) -> list[list[int]]:
        alike: dict[bytes, list[int]] = {}
        for position, task in enumerate(tasks):
            alike.setdefault(bytes(task.body[:1]), []).append(position)
        return [group for group in alike.values() if len(group) > 1]

    def run_tasks(self, tasks: Sequence[Job]) -> list[Reply] | None:
        self._look()
        return None if self.fails else [answer(task, b" together") for task in tasks]

    def finish(self, task: Job) -> Reply:
        self._look()
        return answer(task, b" alone")


def said(groups: Groups, *jobs: bytes, stop: int | None = None) -> dict[int, bytes]:
    """The answers by slot."""
    groups.loop = Loop(lambda job, _: answer(job, b" by itself"), groups, SharingLoop)
    if stop is not None:
        groups.loop.page.stops[stop][0] = 1
    return dict(found for kind, found in groups.loop.say(*jobs) if kind == frames.REPLY)


def test_those_who_are_alike_are_done_together_and_the_others_alone() -> None:
    groups = Groups()
    found = said(groups, *(sent(slot, body) for slot, body in enumerate([b"a0", b"b1", b"a2", b"!3", b"c4", b"b5"])))
    assert found == {
        0: b"a0 together", 1: b"b1 together", 2: b"a2 together", 3: b"!3 at once", 4: b"c4 alone", 5: b"b5 together",
    }  # fmt: skip
    assert groups.seen == [[0], [1], [2], [3], [4], [5], [0, 2], [1, 5], [4]], "and the page has said so"


@pytest.mark.parametrize("count", [1, FEWEST - 1, FEWEST])
def test_few_are_not_worth_it(count: int) -> None:
    found = said(Groups(), *(sent(slot, b"a") for slot in range(count)))
    assert {*found.values()} == {b"a together" if count == FEWEST else b"a by itself"}
    assert len(found) == count


def test_what_was_not_to_be_is_done_one_by_one() -> None:
    found = said(Groups(fails=True), *(sent(slot, b"a") for slot in range(FEWEST)))
    assert [*found.values()] == [b"a alone"] * FEWEST


def test_one_that_is_to_be_alone_has_no_company() -> None:
    found = said(Groups(), sent(9, b"a", most=None), *(sent(slot, b"a") for slot in range(FEWEST)))
    assert found == {9: b"a by itself", **dict.fromkeys(range(FEWEST), b"a together")}


def test_one_that_was_stopped_is_skipped() -> None:
    found = said(Groups(), *(sent(slot, b"a") for slot in range(FEWEST + 1)), stop=1)
    assert [*found] == [0, 2, 3, 4]


def test_what_is_told_of_tensors_parts_those_before_from_those_after() -> None:
    groups = Groups()
    news = frames.tensor_frame(TensorFrame("", "w", f"{1:016x}", "int8", (1,), 0, b"\1"))
    jobs = [sent(slot, b"a") for slot in range(2 * FEWEST)]
    assert len(said(groups, *jobs[:FEWEST], news, *jobs[FEWEST:])) == 2 * FEWEST
    together = [slots for slots in groups.seen if len(slots) > 1]
    assert together == [[*range(FEWEST)], [*range(FEWEST, 2 * FEWEST)]]
