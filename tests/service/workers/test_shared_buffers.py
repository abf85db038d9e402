"""Shared buffers: of usual sizes, used again when they are clear, and seen by the other process once each."""

from __future__ import annotations

import mmap
import os
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from engine.ir.run_context import NO_LIMITS
from engine.runtime.host_mapping import mapping_of
from service.api.binary import read_one, write_one
from service.workers import shared_memory as shared_buffers
from service.workers.shared_memory import LARGEST, DescriptorChannel, SharedBuffer, SharedBuffers, size_of

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("nbytes", "size"),
    [
        (1, 128 * KIB),
        (128 * KIB, 128 * KIB),
        (128 * KIB + 1, 256 * KIB),
        (MIB, MIB),
        (LARGEST, LARGEST),
        (LARGEST + 1, LARGEST + mmap.PAGESIZE),
        (LARGEST + mmap.PAGESIZE, LARGEST + mmap.PAGESIZE),
    ],
)
def test_sizes_are_powers_of_two_up_to_the_largest_that_is_kept(nbytes: int, size: int) -> None:
    assert size_of(nbytes) == size


class Kept:
    """Buffers, and those that are gone."""

    def __init__(self, keep: int) -> None:
        self.gone: list[SharedBuffer] = []
        self.buffers = SharedBuffers(keep, self.gone.append)


@pytest.fixture
def kept() -> Iterator[Kept]:
    made = Kept(MIB)
    yield made
    made.buffers.close()


def test_a_buffer_serves_the_next_of_its_size(kept: Kept) -> None:
    first = kept.buffers.acquire(1000)
    assert kept.buffers.acquire(1000) is not first
    kept.buffers.put(first)
    assert kept.buffers.waiting
    assert kept.buffers.acquire(MIB) is not first
    assert kept.buffers.acquire(2000) is first
    assert not kept.buffers.waiting


def test_no_more_bytes_wait_than_are_to_be_kept(kept: Kept) -> None:
    several = [kept.buffers.acquire(MIB // 2) for _ in range(3)]
    for buffer in several:
        kept.buffers.put(buffer)
    assert kept.gone == several[2:]
    assert kept.buffers.acquire(MIB // 2) in several
    kept.buffers.put(several[2])
    assert kept.gone == several[2:], "there is room again"


def test_what_is_large_is_not_kept() -> None:
    kept = Kept(1 << 40)
    large, usual = kept.buffers.acquire(LARGEST + 1), kept.buffers.acquire(LARGEST)
    assert (large.pooled, usual.pooled) == (False, True)
    for buffer in (large, usual):
        kept.buffers.put(buffer)
    assert kept.gone == [large]
    kept.buffers.close()
    assert kept.gone == [large], "who closes needs not be told"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(usual.fd)


def test_what_nobody_uses_for_a_while_goes_back(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = kept.buffers.acquire(1)
    kept.buffers.put(buffer)
    kept.buffers.trim()
    assert kept.gone == []
    monkeypatch.setattr(shared_buffers, "UNUSED", -1.0)
    kept.buffers.trim()
    assert (kept.gone, kept.buffers.waiting) == ([buffer], False)


def test_only_what_was_written_is_cleared(kept: Kept) -> None:
    buffer = kept.buffers.acquire(1)
    buffer.memory[:4] = b"abcd"
    buffer.used = 3
    buffer.clear()
    assert (buffer.memory[:4], buffer.used) == (b"\0\0\0d", 0)


@pytest.fixture
def channels() -> Iterator[tuple[DescriptorChannel, DescriptorChannel]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    theirs.setblocking(False)
    made = DescriptorChannel(ours), DescriptorChannel(theirs)
    yield made
    for channel in made:
        channel.close()


def test_the_other_side_reads_what_is_written(kept: Kept, channels: tuple[DescriptorChannel, ...]) -> None:
    ours, theirs = channels
    first, second = kept.buffers.acquire(10), kept.buffers.acquire(MIB)
    first.memory[:3] = b"abc"
    for _ in range(2):  # once is enough
        ours.show(first)
    ours.show(second)
    second.memory[:2] = b"xy"
    assert bytes(theirs.body(second.number, 2)) == b"xy"
    found = theirs.body(first.number, 3)
    assert bytes(found) == b"abc"
    first.memory[:1] = b"z"
    assert bytes(found) == b"zbc"
    assert not found.flags.writeable
    before = theirs.mapped(first.number)
    ours.show(first)
    with pytest.raises(BlockingIOError):
        theirs.mapped(99)
    assert theirs.mapped(first.number) is before, "it was shown once"


def test_more_than_a_message_holds_go_in_several(kept: Kept, channels: tuple[DescriptorChannel, ...]) -> None:
    ours, theirs = channels
    several = [kept.buffers.acquire(1) for _ in range(130)]
    ours.show_all(several)
    assert [len(theirs.mapped(buffer.number)) for buffer in several] == [128 * KIB] * 130
    for buffer in several:
        buffer.drop()


def test_a_number_that_is_gone_is_shown_anew(kept: Kept, channels: tuple[DescriptorChannel, ...]) -> None:
    ours, theirs = channels
    buffer = kept.buffers.acquire(1)
    assert not ours.hide(buffer.number), "the other side does not have it"
    ours.show(buffer)
    before = theirs.mapped(buffer.number)
    assert ours.hide(buffer.number)
    assert theirs.forget(buffer.number) is before
    assert theirs.forget(buffer.number) is None
    ours.show(buffer)
    assert theirs.mapped(buffer.number) is not before


def test_a_side_that_is_gone_shows_nothing(channels: tuple[DescriptorChannel, ...]) -> None:
    channels[0].close()
    with pytest.raises(ConnectionResetError):
        channels[1].mapped(1)


def test_tensors_of_a_body_lie_in_a_mapping_that_says_when_it_goes(
    kept: Kept, channels: tuple[DescriptorChannel, ...]
) -> None:
    """So a device may read them by itself: until nobody reads the buffer any more."""
    ours, theirs = channels
    array, gone = np.arange(40.0).reshape(4, 10), list[str]()
    body = b"".join(write_one("x", array))
    buffer = kept.buffers.acquire(len(body))
    buffer.memory[: len(body)] = body
    ours.show(buffer)
    theirs.mapped(buffer.number).on_unmap(lambda: gone.append("gone"))
    found = read_one(theirs.body(buffer.number, len(body)), 1000, 10, NO_LIMITS)
    assert mapping_of(found) is theirs.mapped(buffer.number)
    theirs.forget(buffer.number)
    np.testing.assert_array_equal(found, array)
    assert not gone
    del found
    assert gone == ["gone"]
