"""Chunked coding: the result does not depend on how the input is split."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import Refusal
from service.web.body_reader import ChunkedFraming

MOST, MOST_CHUNKS = 1000, 20


def unframed(pieces: list[bytes]) -> tuple[bytes, bytes, bool] | str:
    """The body, the bytes after it, and whether it is complete; or the code of the refusal."""
    framing, body, rest = ChunkedFraming(MOST, MOST_CHUNKS), b"", b""
    try:
        for piece in pieces:
            if framing.complete:
                rest += piece
                continue
            payload, rest = framing.unframe(piece)
            body += b"".join(payload)
    except Refusal as refusal:
        return refusal.code
    return body, rest, framing.complete


def cut(sent: bytes, places: list[int]) -> list[bytes]:
    """Split the bytes into pieces."""
    bounds = sorted({0, len(sent), *(place % (len(sent) + 1) for place in places)})
    return [sent[start:end] for start, end in pairwise(bounds)]


chunks = st.lists(st.binary(min_size=1, max_size=60), max_size=8)
extensions = st.sampled_from([b"", b";", b";a=b", b';a="b c"'])
trailers = st.sampled_from([b"", b"Digest: x\r\n", b"A: b\r\nC: \r\n"])
places = st.lists(st.integers(0, 10**6), max_size=12)


@given(chunks=chunks, extension=extensions, trailer=trailers, places=places, after=st.binary(max_size=20))
def test_body_does_not_depend_on_how_it_is_split(
    chunks: list[bytes], extension: bytes, trailer: bytes, places: list[int], after: bytes
) -> None:
    sent = b"".join(b"%x%b\r\n%b\r\n" % (len(chunk), extension, chunk) for chunk in chunks)
    sent += b"0" + extension + b"\r\n" + trailer + b"\r\n" + after
    assert unframed(cut(sent, places)) == (b"".join(chunks), after, True)


parts = st.sampled_from(
    [b"0", b"1", b"5", b"a", b"F" * 16, b"\r\n", b"\n", b"\r", b";", b"x", b" ", b"0\r\n\r\n", b"1\r\na\r\n", b"-",
     b"\0", b"A: b"]
)  # fmt: skip


@given(sent=st.lists(parts, max_size=30).map(b"".join), places=places)
def test_refusal_does_not_depend_on_how_input_is_split(sent: bytes, places: list[int]) -> None:
    assert unframed(cut(sent, places)) == unframed([sent])


def test_bounds() -> None:
    one = b"1\r\nx\r\n"
    assert unframed([one * MOST_CHUNKS + b"0\r\n\r\n"]) == "body_too_large", "the last one counts"
    assert unframed([one * (MOST_CHUNKS - 1) + b"0\r\n\r\n"]) == (b"x" * (MOST_CHUNKS - 1), b"", True)
    assert unframed([b"3e9\r\n"]) == "body_too_large", "before it comes"
    assert unframed([b"3e8\r\n" + bytes(1000) + b"\r\n0\r\n\r\n"]) == (bytes(1000), b"", True)
    assert unframed([b"1;" + b"x" * 5000]) == "bad_request_framing"
    assert unframed([b"1;" + b"x" * 300 + b"\r\na\r\n"] * 15) == "bad_request_framing"
    assert unframed([b"0\r\n", *[b"A: b\r\n"] * 1000]) == "bad_request_framing"
