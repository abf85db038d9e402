"""The control page: both who hold its descriptor see the same words, and nobody can make it shorter."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import pytest

from engine.runtime.crash_record import CRASH_RECORD_BYTES
from service.workers.shared_memory import SLOTS, ControlPage, Vitals, sealed_memory


@pytest.fixture
def pages() -> Iterator[tuple[ControlPage, ControlPage]]:
    """The front's and the worker's."""
    front = ControlPage.create()
    yield front, ControlPage(front.fd)
    front.close()


def test_a_new_page_says_nothing(pages: tuple[ControlPage, ControlPage]) -> None:
    front, _ = pages
    assert (front.executing, front.since, front.vitals) == (None, 0.0, Vitals(0, 0))
    assert [bytes(stop) for stop in front.stops] == [b"\0"] * SLOTS
    assert bytes(front.crash_record) == bytes(CRASH_RECORD_BYTES)


@pytest.mark.parametrize("slot", [0, 1, 31, 32, SLOTS - 1])
def test_the_front_sees_what_the_worker_begins_and_ends(pages: tuple[ControlPage, ControlPage], slot: int) -> None:
    front, worker = pages
    worker.begin(slot, 12.5)
    assert (front.executing, front.since) == (slot, 12.5)
    worker.end()
    assert front.executing is None


def test_the_front_sees_one_of_the_slots_whatever_a_worker_gone_wrong_writes(
    pages: tuple[ControlPage, ControlPage],
) -> None:
    front, worker = pages
    worker._executing[0] = (1 << SLOTS) - 1
    assert front.executing in range(SLOTS)
    worker.begin(5, 9.0)
    assert front.executing == 5


def test_the_worker_sees_which_jobs_are_to_stop_and_no_words_overlap(pages: tuple[ControlPage, ControlPage]) -> None:
    front, worker = pages
    worker.begin(SLOTS - 1, 1.5)
    worker.report(Vitals(2**63, 2**40))
    for stop in front.stops:
        stop[0] = 1
    front.crash_record[:] = b"w" * CRASH_RECORD_BYTES
    assert all(stop[0] == 1 for stop in worker.stops)
    front.stops[9][0] = 0
    assert [slot for slot in range(SLOTS) if not worker.stops[slot][0]] == [9]
    assert (front.executing, front.since, front.vitals) == (SLOTS - 1, 1.5, Vitals(2**63, 2**40))
    assert bytes(worker.crash_record) == b"w" * CRASH_RECORD_BYTES


def test_of_a_worker_that_is_gone_nothing_is_executed_whatever_it_had_said() -> None:
    front = ControlPage.create()
    worker = ControlPage(front.fd)
    front.close()
    worker.begin(3, 1.0)
    assert front.executing == 3, "the memory stays without the descriptor"
    front.forget()
    worker.begin(4, 2.0)
    assert (front.executing, front.since, front.vitals) == (None, 0.0, Vitals(0, 0))
    front.stops[3][0] = 1
    assert worker.stops[3][0] == 0


def test_sealed_memory_can_neither_shrink_nor_grow() -> None:
    fd = sealed_memory("test", 4096)
    try:
        assert os.fstat(fd).st_size == 4096
        assert os.pread(fd, 4096, 0) == bytes(4096)
        for nbytes in (0, 4095, 8192):
            with pytest.raises(OSError) as caught:  # noqa: PT011 - by its number
                os.ftruncate(fd, nbytes)
            assert caught.value.errno == errno.EPERM
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)
