"""HTTP framing attacks: the bytes to send, and the statuses that a server may respond with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.guarantees.jobs import small

_BODY = small()
_HOST = b"Host: localhost\r\n"
_POST = b"POST /v1/gradients HTTP/1.1\r\n" + _HOST + b"Content-Type: application/json\r\n"
_CHUNKED = _POST + b"Transfer-Encoding: chunked\r\n\r\n"
#: a second request, which a server or proxy reads if it misjudges where the first one ends
SMUGGLED = b"GET /smuggled HTTP/1.1\r\n" + _HOST + b"\r\n"

REFUSED = frozenset({400, 413, 431})


@dataclass(frozen=True)
class Frame:
    """Bytes and the valid statuses; with `ends`, the server must not read the rest as another request."""

    name: str
    sent: bytes
    statuses: frozenset[int] = REFUSED
    ends: bool = True
    seconds: float = 2.0  # until the response


def frames() -> list[Frame]:
    """All attacks."""
    return [frame for make in (_heads, _lengths, _encodings, _chunks, _smuggling, _floods) for frame in make()]


def _post(*lines: bytes, body: bytes = _BODY) -> bytes:
    return _POST + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def _heads() -> Iterator[Frame]:
    tops = {
        "plain words": b"nonsense\r\n\r\n",
        "HTTP/0.9": b"GET /\r\n\r\n",
        "no host": b"GET / HTTP/1.1\r\n\r\n",
        "two hosts": b"GET / HTTP/1.1\r\n" + _HOST + _HOST + b"\r\n",
        "no colon": b"GET / HTTP/1.1\r\n" + _HOST + b"no colon\r\n\r\n",
        "TLS": b"\x16\x03\x01\x02" + bytes(64) + b"\r\n\r\n",
        "NUL in a name": b"GET / HTTP/1.1\r\n" + _HOST + b"B\x00d: x\r\n\r\n",
        "space before the colon": b"GET / HTTP/1.1\r\n" + _HOST + b"Name : x\r\n\r\n",
        "NUL in a value": b"GET / HTTP/1.1\r\n" + _HOST + b"Name: \x00\r\n\r\n",
        "bare CR in a value": b"GET / HTTP/1.1\r\n" + _HOST + b"Name: a\rb\r\n\r\n",
        "space in the target": b"GET /a b HTTP/1.1\r\n" + _HOST + b"\r\n",
        "control in the target": b"GET /\x01 HTTP/1.1\r\n" + _HOST + b"\r\n",
        "no name": b"GET / HTTP/1.1\r\n" + _HOST + b": x\r\n\r\n",
    }
    yield from (Frame(f"head: {name}", top) for name, top in tops.items())
    yield Frame("head: HTTP/2 without negotiation", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REFUSED | {404, 405, 505})


def _lengths() -> Iterator[Frame]:
    size = len(_BODY)
    stated = {
        "negative": b"-1",
        "plus": b"+%d" % size,
        "hexadecimal": b"0x%x" % size,
        "empty": b"",
        "a word": b"many",
        "a list of different values": b"%d, %d" % (size, size + 1),
        "a fraction": b"%d.0" % size,
        "underscore": b"1_0",
        "beyond 64 bits": b"9" * 25,
        "4,000 digits": b"9" * 4000,
        "Arabic digits": "٣".encode(),
        "inner space": b"1 0",
    }
    yield from (Frame(f"length: {name}", _post(b"Content-Length: " + text)) for name, text in stated.items())
    yield Frame("length: 2^62", _post(b"Content-Length: %d" % 2**62))
    yield Frame(
        "length: twice, with different values", _post(b"Content-Length: %d" % size, b"Content-Length: %d" % (size + 1))
    )
    yield Frame("length: twice, in different case", _post(b"Content-Length: 0", b"content-length: %d" % size))
    yield Frame("length: missing", _post(body=b""), frozenset({400, 411, 422}), ends=False)
    yield Frame("length: too short", _post(b"Content-Length: %d" % (size - 9)), frozenset({400}), ends=False)
    yield Frame("length: too long", _post(b"Content-Length: %d" % (size + 1)), frozenset({400, 408}), seconds=12)


def _encodings() -> Iterator[Frame]:
    chunk = b"%x\r\n" % len(_BODY) + _BODY + b"\r\n0\r\n\r\n"
    codings = {
        "gzip": b"gzip",
        "chunked twice": b"chunked, chunked",
        "chunked, identity": b"chunked, identity",
        "identity": b"identity",
        "a vertical tab": b"\x0bchunked",
        "quoted": b'"chunked"',
        "x": b"xchunked",
        "empty": b"",
    }
    for name, text in codings.items():
        yield Frame(f"coding: {name}", _post(b"Transfer-Encoding: " + text, body=chunk), frozenset({400, 501}))
    yield Frame("coding: space before the colon", _post(b"Transfer-Encoding : chunked", body=chunk))
    yield Frame(
        "coding: on two lines", _post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=chunk)
    )
    yield Frame(
        "coding: HTTP/1.0",
        _post(b"Transfer-Encoding: chunked", body=chunk).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
        REFUSED | {200},
    )


def _chunks() -> Iterator[Frame]:
    sizes = {
        "not a number": b"zz",
        "negative": b"-1",
        "empty": b"",
        "with 0x": b"0x5",
        "with a leading space": b" 5",
        "plus": b"+5",
        "of 17 digits": b"F" * 17,
        "of 16 digits": b"F" * 16,
        "of 2^63 - 1": b"7" + b"F" * 15,
        "of a million digits": b"1" * 10**6,
        "a million zeros": b"0" * 10**6,
        "underscore": b"1_0",
        "an extension of a million bytes": b"5;" + b"x" * 10**6,
        "over the limit": b"5000000",
    }
    yield from (Frame(f"chunk: {name}", _CHUNKED + text + b"\r\n") for name, text in sizes.items())
    yield Frame("chunk: longer than stated", _CHUNKED + b"5\r\n" + _BODY + b"\r\n0\r\n\r\n")
    yield Frame("chunk: bare line feeds", _CHUNKED + b"%x\n" % len(_BODY) + _BODY + b"\n0\n\n")
    yield Frame("chunk: a trailer of a million bytes", _CHUNKED + b"0\r\nX: " + b"x" * 10**6)
    yield Frame("chunk: a million trailers", _CHUNKED + b"0\r\n" + b"X: y\r\n" * 10**6 + b"\r\n")


def _smuggling() -> Iterator[Frame]:
    size, empty = len(_BODY), b"0\r\n\r\n"
    yield Frame(
        "smuggling: CL.TE",
        _post(
            b"Content-Length: %d" % (len(empty) + len(SMUGGLED)), b"Transfer-Encoding: chunked", body=empty + SMUGGLED
        ),
    )
    yield Frame(
        "smuggling: TE.CL", _post(b"Transfer-Encoding: chunked", b"Content-Length: 4", body=b"5c\r\n" + SMUGGLED)
    )
    yield Frame(
        "smuggling: TE.TE", _post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: x", body=empty + SMUGGLED)
    )
    yield Frame("smuggling: CL.CL", _post(b"Content-Length: %d" % size, b"Content-Length: 0", body=_BODY + SMUGGLED))
    yield Frame(
        "smuggling: folded header",
        _post(b"X: y", b" Transfer-Encoding: chunked", b"\tContent-Length: 0", body=SMUGGLED),
        REFUSED | {411, 422},
        ends=False,
    )
    yield Frame("smuggling: bare line feed", _post(b"X: y\nContent-Length: 0", b"Content-Length: %d" % size))
    yield Frame("smuggling: after an extension", _CHUNKED + b"5;\n" + b"xxxxx\r\n0\r\n\r\n" + SMUGGLED)
    yield Frame(
        "smuggling: request in a refused body",
        b"POST /v1/gradients HTTP/1.1\r\n"
        + _HOST
        + b"Content-Type: text/csv\r\n"
        + b"Content-Length: 100000000\r\n\r\n"
        + SMUGGLED,
        frozenset({413, 415}),
    )


def _floods() -> Iterator[Frame]:
    get = b"GET /health/live HTTP/1.1\r\n" + _HOST
    yield Frame("flood: ten thousand headers", get + b"".join(b"X-%d: y\r\n" % i for i in range(10_000)) + b"\r\n")
    yield Frame("flood: a header of 10 MB", get + b"X: " + b"x" * 10**7)
    yield Frame(
        "flood: a target of 10 MB", b"GET /" + b"x" * 10**7 + b" HTTP/1.1\r\n" + _HOST + b"\r\n", REFUSED | {414}
    )
    yield Frame("flood: a method of 10 MB", b"X" * 10**7)
    yield Frame("flood: 10 MB of empty lines", b"\r\n" * 5 * 10**6)
    yield Frame("flood: 10 MB of zeros", bytes(10**7))
    yield Frame("flood: two million chunks of one byte", _CHUNKED + b"1\r\nx\r\n" * 2_000_000 + b"0\r\n\r\n", seconds=5)
    yield Frame("flood: a million chunks of spaces", _CHUNKED + b"1\r\n \r\n" * 1_000_000, seconds=5)
