"""Large answers: the front sees what was written, and a buffer is used again, clear, once that has sent it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from service.workers import frames
from service.workers import shared_memory as shared_buffers
from service.workers.shared_memory import LARGEST, DescriptorChannel
from service.workers.worker_main import AnswerBuffers


class Sides:
    """A worker's answers, what it has said of them, and the front that sees them."""

    def __init__(self, ours: socket.socket, theirs: socket.socket) -> None:
        self.said: list[tuple[int, int]] = []
        self.front = DescriptorChannel(theirs)
        self.answers = AnswerBuffers(DescriptorChannel(ours), lambda kind, number: self.said.append((kind, number)))

    def write(self, *parts: bytes | memoryview) -> int:
        number = self.answers.write(parts, sum(map(len, parts)))
        assert isinstance(number, int)
        return number

    def seen(self, number: int, nbytes: int) -> bytes:
        return bytes(self.front.body(number, nbytes))


@pytest.fixture
def sides() -> Iterator[Sides]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield Sides(ours, theirs)


def test_the_front_sees_the_pieces_one_behind_the_other(sides: Sides) -> None:
    assert sides.seen(sides.write(b"ab", memoryview(b"cde"), b"", b"f"), 6) == b"abcdef"


def test_what_the_front_has_is_not_written_again(sides: Sides) -> None:
    first, second = sides.write(b"one"), sides.write(b"two")
    assert first != second
    assert (sides.seen(first, 3), sides.seen(second, 3)) == (b"one", b"two")


def test_a_buffer_that_was_released_serves_again_and_nothing_is_left_in_it(sides: Sides) -> None:
    first = sides.write(b"a longer secret")
    assert not sides.answers.buffers.waiting
    sides.answers.release(first)
    assert sides.answers.buffers.waiting
    assert sides.seen(first, 15) == bytes(15)
    assert sides.write(b"short") == first
    assert sides.seen(first, 15) == b"short" + bytes(10)
    assert sides.said == []


def test_what_is_large_is_dropped_and_the_front_is_told(sides: Sides) -> None:
    number = sides.write(bytes(LARGEST + 1))
    sides.answers.release(number)
    assert sides.said == [(frames.FORGET, number)]
    assert not sides.answers.buffers.waiting
    with pytest.raises(KeyError):
        sides.answers.release(number)


def test_what_nobody_uses_for_a_while_goes_back_and_is_shown_anew(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = sides.write(b"one")
    sides.answers.release(number)
    sides.answers.buffers.trim()
    assert sides.answers.buffers.waiting
    monkeypatch.setattr(shared_buffers, "UNUSED", -1.0)
    sides.answers.buffers.trim()
    assert (sides.answers.buffers.waiting, sides.said) == (False, [(frames.FORGET, number)])
    assert sides.write(b"two") != number
