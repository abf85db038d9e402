"""The control page: both holders of its descriptor see the same words, and its size is sealed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import pytest

from engine.runtime.crash_record import CRASH_RECORD_BYTES
from service.workers.shared_memory import SLOTS, ControlPage, Vitals, sealed_memory


@pytest.fixture
def pages() -> Iterator[tuple[ControlPage, ControlPage]]:
    """The page of the front and the page of the worker."""
    front = ControlPage.create()
    yield front, ControlPage(front.fd)
    front.close()


def test_new_page_is_empty(pages: tuple[ControlPage, ControlPage]) -> None:
    front, _ = pages
    assert (front.executing, front.since, front.vitals) == (None, 0.0, Vitals(0, 0))
    assert [bytes(stop) for stop in front.stops] == [b"\0"] * SLOTS
    assert bytes(front.crash_record) == bytes(CRASH_RECORD_BYTES)


@pytest.mark.parametrize("slot", [0, 1, 31, 32, SLOTS - 1])
def test_front_sees_the_executing_slot(pages: tuple[ControlPage, ControlPage], slot: int) -> None:
    front, worker = pages
    worker.begin(slot, 12.5)
    assert (front.executing, front.since) == (slot, 12.5)
    worker.end()
    assert front.executing is None


def test_corrupt_executing_word_still_names_a_slot(
    pages: tuple[ControlPage, ControlPage],
) -> None:
    front, worker = pages
    worker._executing[0] = (1 << SLOTS) - 1
    assert front.executing in range(SLOTS)
    worker.begin(5, 9.0)
    assert front.executing == 5


def test_worker_sees_stop_flags_and_no_words_overlap(pages: tuple[ControlPage, ControlPage]) -> None:
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


def test_page_ignores_the_worker_after_forget() -> None:
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
            with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is checked below
                os.ftruncate(fd, nbytes)
            assert caught.value.errno == errno.EPERM
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)
