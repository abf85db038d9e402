"""Shared buffers: sizes, reuse, and mapping in the other process."""

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
def test_sizes_are_powers_of_two_up_to_the_largest_pooled_one(nbytes: int, size: int) -> None:
    assert size_of(nbytes) == size


class Buffers:
    """A set of buffers, and the dropped ones."""

    def __init__(self, idle_bytes: int) -> None:
        self.dropped: list[SharedBuffer] = []
        self.buffers = SharedBuffers(idle_bytes, self.dropped.append)


@pytest.fixture
def pool() -> Iterator[Buffers]:
    pool = Buffers(MIB)
    yield pool
    pool.buffers.close()


def test_buffer_is_reused_for_its_size(pool: Buffers) -> None:
    first = pool.buffers.acquire(1000)
    assert pool.buffers.acquire(1000) is not first
    pool.buffers.put(first)
    assert pool.buffers.waiting
    assert pool.buffers.acquire(MIB) is not first
    assert pool.buffers.acquire(2000) is first
    assert not pool.buffers.waiting


def test_idle_bytes_are_bounded(pool: Buffers) -> None:
    several = [pool.buffers.acquire(MIB // 2) for _ in range(3)]
    for buffer in several:
        pool.buffers.put(buffer)
    assert pool.dropped == several[2:]
    assert pool.buffers.acquire(MIB // 2) in several
    pool.buffers.put(several[2])
    assert pool.dropped == several[2:], "there is room again"


def test_large_buffer_is_not_pooled() -> None:
    pool = Buffers(1 << 40)
    large, usual = pool.buffers.acquire(LARGEST + 1), pool.buffers.acquire(LARGEST)
    assert (large.pooled, usual.pooled) == (False, True)
    for buffer in (large, usual):
        pool.buffers.put(buffer)
    assert pool.dropped == [large]
    pool.buffers.close()
    assert pool.dropped == [large], "who closes needs not be told"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(usual.fd)


def test_unused_buffer_is_trimmed(pool: Buffers, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = pool.buffers.acquire(1)
    pool.buffers.put(buffer)
    pool.buffers.trim()
    assert pool.dropped == []
    monkeypatch.setattr(shared_buffers, "UNUSED", -1.0)
    pool.buffers.trim()
    assert (pool.dropped, pool.buffers.waiting) == ([buffer], False)


def test_only_used_bytes_are_cleared(pool: Buffers) -> None:
    buffer = pool.buffers.acquire(1)
    buffer.memory[:4] = b"abcd"
    buffer.used = 3
    buffer.clear()
    assert (buffer.memory[:4], buffer.used) == (b"\0\0\0d", 0)


@pytest.fixture
def channels() -> Iterator[tuple[DescriptorChannel, DescriptorChannel]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    theirs.setblocking(False)
    pair = DescriptorChannel(ours), DescriptorChannel(theirs)
    yield pair
    for channel in pair:
        channel.close()


def test_other_side_reads_written_bytes(pool: Buffers, channels: tuple[DescriptorChannel, ...]) -> None:
    ours, theirs = channels
    first, second = pool.buffers.acquire(10), pool.buffers.acquire(MIB)
    first.memory[:3] = b"abc"
    for _ in range(2):  # the second time has no effect
        ours.show(first)
    ours.show(second)
    second.memory[:2] = b"xy"
    assert bytes(theirs.body(second.number, 2)) == b"xy"
    array = theirs.body(first.number, 3)
    assert bytes(array) == b"abc"
    first.memory[:1] = b"z"
    assert bytes(array) == b"zbc"
    assert not array.flags.writeable
    before = theirs.mapped(first.number)
    ours.show(first)
    with pytest.raises(BlockingIOError):
        theirs.mapped(99)
    assert theirs.mapped(first.number) is before, "it was shown once"


def test_many_descriptors_take_several_messages(pool: Buffers, channels: tuple[DescriptorChannel, ...]) -> None:
    ours, theirs = channels
    several = [pool.buffers.acquire(1) for _ in range(130)]
    ours.show_all(several)
    assert [len(theirs.mapped(buffer.number)) for buffer in several] == [128 * KIB] * 130
    for buffer in several:
        buffer.drop()


def test_hidden_buffer_is_mapped_again(pool: Buffers, channels: tuple[DescriptorChannel, ...]) -> None:
    ours, theirs = channels
    buffer = pool.buffers.acquire(1)
    assert not ours.hide(buffer.number), "the other side does not have it"
    ours.show(buffer)
    before = theirs.mapped(buffer.number)
    assert ours.hide(buffer.number)
    assert theirs.forget(buffer.number) is before
    assert theirs.forget(buffer.number) is None
    ours.show(buffer)
    assert theirs.mapped(buffer.number) is not before


def test_closed_side_raises_connection_reset(channels: tuple[DescriptorChannel, ...]) -> None:
    channels[0].close()
    with pytest.raises(ConnectionResetError):
        channels[1].mapped(1)


def test_mapping_of_a_body_tensor_reports_its_end(pool: Buffers, channels: tuple[DescriptorChannel, ...]) -> None:
    """A device may read them directly until the buffer has no more readers."""
    ours, theirs = channels
    array, gone = np.arange(40.0).reshape(4, 10), list[str]()
    body = b"".join(write_one("x", array))
    buffer = pool.buffers.acquire(len(body))
    buffer.memory[: len(body)] = body
    ours.show(buffer)
    theirs.mapped(buffer.number).on_unmap(lambda: gone.append("gone"))
    tensor = read_one(theirs.body(buffer.number, len(body)), 1000, 10, NO_LIMITS)
    assert mapping_of(tensor) is theirs.mapped(buffer.number)
    theirs.forget(buffer.number)
    np.testing.assert_array_equal(tensor, array)
    assert not gone
    del tensor
    assert gone == ["gone"]
