"""Cache of request heads, and heads that must never hit it."""

from __future__ import annotations

import pytest

from service.core.errors import Refusal
from service.core.settings import Settings
from service.web.head import Head, HeadCache, HeadReader

READ = HeadReader(Settings(device="cpu"))


class CountingReader:
    """Head reader that counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, raw: bytes) -> Head:
        self.count += 1
        return READ(raw)


def head(*lines: bytes, top: bytes = b"POST /v1/forward HTTP/1.1") -> bytes:
    """Build a head with these lines."""
    return b"\r\n".join([top, b"Host: localhost", *lines, b"", b""])


@pytest.fixture
def reads() -> CountingReader:
    return CountingReader()


def test_content_length_is_not_part_of_the_cache_key(reads: CountingReader) -> None:
    cache = HeadCache(reads)
    lengths = [0, 7, 10**17, 7]
    for name in (b"Content-Length", b"content-length"):
        assert [cache.find(head(b"%b: %d" % (name, length)))[1] for length in lengths] == lengths
    assert reads.count == 2


def test_other_spellings_of_content_length_are_not_cached(reads: CountingReader) -> None:
    cache = HeadCache(reads)
    for line in (b"CONTENT-LENGTH: 7", b"Content-Length:7", b"Content-Length:\t 7 "):
        assert cache.find(head(line))[1] == 7
        assert cache.find(head(line.replace(b"7", b"8")))[1] == 8
    assert reads.count == 6


@pytest.mark.parametrize(
    "lines",
    [
        (b"Content-Length: ",), (b"Content-Length: \0",), (b"Content-Length: x",), (b"Content-Length: 7 7",),
        (b"Content-Length: 7", b"Content-Length: 7"), (b"Content-Length: -7",),
        (b"Content-Length: 7", b"Transfer-Encoding: chunked"), (b"Content-Length: 7", b"content-length: 0"),
    ],
)  # fmt: skip
def test_malformed_head_never_hits_the_cache(reads: CountingReader, lines: tuple[bytes, ...]) -> None:
    cache = HeadCache(reads)
    for valid in ((b"Content-Length: 7",), (b"content-length: 7",), (), (b"Transfer-Encoding: chunked",)):
        cache.find(head(*valid))
    for _ in range(2):
        with pytest.raises(Refusal):
            cache.find(head(*lines))


def test_number_in_another_header_is_not_a_length(reads: CountingReader) -> None:
    cache = HeadCache(reads)
    assert [cache.find(head(b"X-Content-Length: %d" % i))[1] for i in (3, 4)] == [0, 0]
    assert reads.count == 2


def test_cache_is_bounded_and_keeps_frequent_heads(reads: CountingReader) -> None:
    cache = HeadCache(reads, capacity=10)
    often = head(b"X: often")
    for i in range(1000):
        cache.find(often)
        cache.find(head(b"X: %d" % i))
    assert reads.count == 1001
    assert len(cache._young) + len(cache._old) <= 20


def test_large_heads_are_not_cached(reads: CountingReader) -> None:
    cache = HeadCache(reads)
    for _ in range(2):
        cache.find(head(b"X: " + b"x" * 5000))
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
def test_call_of_a_head(top: bytes, call: str | None) -> None:
    asked = READ(head(top=top)).call
    assert (asked and asked.name) == call


def test_calls_of_allowed_browsers_skip_the_fast_path() -> None:
    shares = HeadReader(Settings(device="cpu", cors_origins=("*",)))
    origin = head(b"Origin: https://app.example", b"Content-Type: application/json")
    assert shares(head()).direct
    assert not shares(origin).direct
    assert shares(origin).call is not None
    assert READ(origin).call is None
