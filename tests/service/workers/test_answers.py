"""Large answers in shared buffers: the front reads them, and released buffers are cleared and reused."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from service.workers import frames
from service.workers import shared_memory as shared_buffers
from service.workers.shared_memory import LARGEST, DescriptorChannel
from service.workers.worker_main import AnswerBuffers


class Sides:
    """A worker's answer buffers, its messages about them, and the front that reads them."""

    def __init__(self, ours: socket.socket, theirs: socket.socket) -> None:
        self.messages: list[tuple[int, int]] = []
        self.front = DescriptorChannel(theirs)
        self.answers = AnswerBuffers(DescriptorChannel(ours), lambda kind, number: self.messages.append((kind, number)))

    def write(self, *parts: bytes | memoryview) -> int:
        number = self.answers.write(parts, sum(map(len, parts)))
        assert isinstance(number, int)
        return number

    def read(self, number: int, nbytes: int) -> bytes:
        return bytes(self.front.body(number, nbytes))


@pytest.fixture
def sides() -> Iterator[Sides]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield Sides(ours, theirs)


def test_front_reads_the_parts_in_order(sides: Sides) -> None:
    assert sides.read(sides.write(b"ab", memoryview(b"cde"), b"", b"f"), 6) == b"abcdef"


def test_unreleased_buffer_is_not_reused(sides: Sides) -> None:
    first, second = sides.write(b"one"), sides.write(b"two")
    assert first != second
    assert (sides.read(first, 3), sides.read(second, 3)) == (b"one", b"two")


def test_released_buffer_is_cleared_and_reused(sides: Sides) -> None:
    first = sides.write(b"a longer secret")
    assert not sides.answers.buffers.waiting
    sides.answers.release(first)
    assert sides.answers.buffers.waiting
    assert sides.read(first, 15) == bytes(15)
    assert sides.write(b"short") == first
    assert sides.read(first, 15) == b"short" + bytes(10)
    assert sides.messages == []


def test_large_buffer_is_dropped_on_release(sides: Sides) -> None:
    number = sides.write(bytes(LARGEST + 1))
    sides.answers.release(number)
    assert sides.messages == [(frames.FORGET, number)]
    assert not sides.answers.buffers.waiting
    with pytest.raises(KeyError):
        sides.answers.release(number)


def test_unused_buffer_is_trimmed(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    number = sides.write(b"one")
    sides.answers.release(number)
    sides.answers.buffers.trim()
    assert sides.answers.buffers.waiting
    monkeypatch.setattr(shared_buffers, "UNUSED", -1.0)
    sides.answers.buffers.trim()
    assert (sides.answers.buffers.waiting, sides.messages) == (False, [(frames.FORGET, number)])
    assert sides.write(b"two") != number
