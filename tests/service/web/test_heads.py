"""Heads that were read before, and what may never be taken for one of them."""

from __future__ import annotations

import pytest

from service.core.errors import Refusal
from service.core.settings import Settings
from service.web.head import Head, HeadCache, HeadReader

READ = HeadReader(Settings(device="cpu"))


class Counted:
    """Reads heads, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, raw: bytes) -> Head:
        self.count += 1
        return READ(raw)


def head(*lines: bytes, top: bytes = b"POST /v1/forward HTTP/1.1") -> bytes:
    """A head of these lines."""
    return b"\r\n".join([top, b"Host: localhost", *lines, b"", b""])


@pytest.fixture
def reads() -> Counted:
    return Counted()


def test_a_head_is_read_once_whatever_its_length(reads: Counted) -> None:
    known = HeadCache(reads)
    lengths = [0, 7, 10**17, 7]
    for name in (b"Content-Length", b"content-length"):
        assert [known.find(head(b"%b: %d" % (name, length)))[1] for length in lengths] == lengths
    assert reads.count == 2


def test_other_spellings_are_read_as_they_are(reads: Counted) -> None:
    known = HeadCache(reads)
    for line in (b"CONTENT-LENGTH: 7", b"Content-Length:7", b"Content-Length:\t 7 "):
        assert known.find(head(line))[1] == 7
        assert known.find(head(line.replace(b"7", b"8")))[1] == 8
    assert reads.count == 6


@pytest.mark.parametrize(
    "lines",
    [
        (b"Content-Length: ",), (b"Content-Length: \0",), (b"Content-Length: x",), (b"Content-Length: 7 7",),
        (b"Content-Length: 7", b"Content-Length: 7"), (b"Content-Length: -7",),
        (b"Content-Length: 7", b"Transfer-Encoding: chunked"), (b"Content-Length: 7", b"content-length: 0"),
    ],
)  # fmt: skip
def test_no_malformed_head_is_found_as_one_that_is_known(reads: Counted, lines: tuple[bytes, ...]) -> None:
    known = HeadCache(reads)
    for sound in ((b"Content-Length: 7",), (b"content-length: 7",), (), (b"Transfer-Encoding: chunked",)):
        known.find(head(*sound))
    for _ in range(2):
        with pytest.raises(Refusal):
            known.find(head(*lines))


def test_a_number_in_another_header_is_not_a_length(reads: Counted) -> None:
    known = HeadCache(reads)
    assert [known.find(head(b"X-Content-Length: %d" % i))[1] for i in (3, 4)] == [0, 0]
    assert reads.count == 2


def test_few_are_kept_and_those_that_come_again_stay(reads: Counted) -> None:
    known = HeadCache(reads, capacity=10)
    often = head(b"X: often")
    for i in range(1000):
        known.find(often)
        known.find(head(b"X: %d" % i))
    assert reads.count == 1001
    assert len(known._young) + len(known._old) <= 20


def test_large_ones_are_not_kept(reads: Counted) -> None:
    known = HeadCache(reads)
    for _ in range(2):
        known.find(head(b"X: " + b"x" * 5000))
    assert reads.count == 2


@pytest.mark.parametrize(
    ("top", "call"),
    [
        (b"POST /v1/forward HTTP/1.1", "forward"),
        (b"POST /v1/f%6frward HTTP/1.1", "forward"),
        (b"GET /v1/forward HTTP/1.1", None),
        (b"POST /v1/forward/ HTTP/1.1", None),
        (b"POST /v1/nothing HTTP/1.1", None),
        (b"POST /v1/forward?timeout_ms=0 HTTP/1.1", None),
    ],
)
def test_which_call_a_head_asks_for(top: bytes, call: str | None) -> None:
    asked = READ(head(top=top)).call
    assert (asked and asked.name) == call


def test_browsers_that_may_call_go_by_the_other_door() -> None:
    shares = HeadReader(Settings(device="cpu", cors_origins=("*",)))
    origin = head(b"Origin: https://app.example", b"Content-Type: application/json")
    assert shares(head()).direct
    assert not shares(origin).direct
    assert shares(origin).call is not None
    assert READ(origin).call is None
