"""A head, read: bytes up to the empty line become what the connection and both doors need to know.

h11 parses, which is safe and slow; what it lets pass and two readers could take differently is refused here.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from itertools import count
from typing import Final
from urllib.parse import unquote_to_bytes

import h11
from starlette.datastructures import Headers

from service.core.errors import Refusal
from service.core.keys.authentication import Access
from service.core.keys.caller import KeyScope, credential_of
from service.core.settings import Settings
from service.store.idempotency import KEY_HEADER
from service.web.head import Order, OriginPolicy, check_head, malformed, media_of, most_bytes, order_of
from service.workers.task import Reply

# The line and headers of a response, as bytes.

#: of a request's id: the client's own where it is sane, else a new one
HEADER: Final = "X-Request-Id"
_SANE: Final = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}")
#: tells processes apart, and those that were started before
_PREFIX: Final = secrets.token_hex(12)
_numbers: Final = count()


def new_id() -> str:
    """Return an id that no other request has."""
    return f"{_PREFIX}{next(_numbers):08x}"


def sane(stated: str) -> str | None:
    """Return the client's id for a request, where it can stand in a header, a report and a log."""
    return stated if _SANE.fullmatch(stated) else None


CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE: Final = b"connection: close\r\n"
_ID: Final = HEADER.lower().encode()
#: a browser is to take no answer for a page or a script, whatever its bytes look like
NO_SNIFFING: Final = ("x-content-type-options", "nosniff")
_NO_SNIFFING: Final = (NO_SNIFFING[0].encode(), NO_SNIFFING[1].encode())
_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\ndate: ".encode() for status in HTTPStatus}


class Dated:
    """Writer of heads with the date, which is made once a second at most."""

    def __init__(self) -> None:
        self.tick()

    def tick(self) -> None:
        """Look at the clock."""
        date = formatdate(usegmt=True).encode()
        self._begun = {status: line + date + b"\r\n" for status, line in _LINES.items()}
        self._ok = b"".join((
            self._begun[200], b"content-length: %d\r\ncontent-type: %b\r\n", _ID, b": %b\r\n",
            b"%b: %b\r\n" % _NO_SNIFFING, b"%b\r\n",
        ))  # fmt: skip

    def of(self, status: int, fields: Iterable[tuple[bytes, bytes]], *, closes: bool) -> bytes:
        """Return the head with these fields."""
        stated = b"".join([b"%b: %b\r\n" % field for field in fields])
        begun = self._begun.get(status) or b"HTTP/1.1 %d \r\n" % status
        return b"%b%b%b\r\n" % (begun, stated, CLOSE if closes else b"")

    def of_reply(self, reply: Reply, length: int, request_id: str, *, closes: bool) -> bytes:
        """Write the head of a body of this length, with the same fields in the same order as through the other door."""
        ending = CLOSE if closes else b""
        kind, named = reply.media_type.encode(), request_id.encode()
        if reply.status == 200 and not reply.headers:
            return self._ok % (length, kind, named, ending)
        fields = [(name.lower().encode(), value.encode()) for name, value in reply.headers]
        fields += [(b"content-length", b"%d" % length), (b"content-type", kind), (_ID, named), _NO_SNIFFING]
        return self.of(reply.status, fields, closes=closes)


#: a control character, a line end that is half of one, or a line that goes on with the one before it
_ILL_FORMED: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)|\n[ \t]")
_LENGTHS: Final = re.compile(rb"\r\ncontent-length:[ \t]*([^\r]*?)[ \t]*(?=\r\n)", re.IGNORECASE)
_DIGITS: Final = re.compile(rb"[0-9]{1,20}")
_ABSOLUTE_FORM: Final = re.compile(rb"https?://([^/?]*)", re.IGNORECASE)
#: how heads of no HTTP begin: TLS, binary protocols, an empty line
_NO_BEGINNING: Final = b"\x21"
#: heads that are kept, at least; and the bytes that one may have
MOST_HEADS: Final = 1024
_MOST_BYTES: Final = 2048
_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,18})\r\n")

Key = bytes | tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Head:
    """A request's line and headers; `fields` are without Content-Length, since heads that differ in it alone are one.

    `order` is what a computing call asks for; None for all else, for what its head gets wrong, and for what comes by a
    name or from a page that may not call. It is `direct` where nothing but a worker has to answer it: no other origin
    is to be let in, no earlier answer given. `access` is what the call needs, and has the digest of the key that it
    comes with: whether that is good is asked for each request, since heads are kept.
    """

    method: str
    path: str
    raw_path: bytes
    query: bytes
    version: str
    fields: tuple[tuple[bytes, bytes], ...]
    length: int
    chunked: bool
    keeps: bool
    waits: bool
    stated_id: str | None
    most: int
    order: Order | None
    direct: bool
    access: Access


class HeadReader:
    """Reader of heads for a server of these settings."""

    def __init__(self, settings: Settings, *, calls: bool = True) -> None:
        """`calls` says whether there are computing calls where this server listens."""
        self._settings = settings
        self._calls = calls
        self._shares = bool(settings.cors_origins)
        self._policy = OriginPolicy(settings)
        self._scheme = "http" if settings.tls_cert is None else "https"

    def __call__(self, raw: bytes) -> Head:
        """The head that these bytes are. Raises Refusal: bad_request_framing."""
        request = _parse(raw)
        authority, raw_path, query = _split(request.target)
        fields = tuple(request.headers)
        if authority is not None:  # the host of the target counts before another
            fields = ((b"host", authority), *(field for field in fields if field[0] != b"host"))
        headers = Headers(raw=list(fields))
        path = unquote_to_bytes(raw_path).decode("utf-8", "replace")
        method, version = request.method.decode("ascii"), request.http_version.decode("ascii")
        check_head(version, path, headers)
        chunked = "transfer-encoding" in headers
        options: Sequence[str] = ",".join(headers.getlist("connection")).lower().split(",")
        if chunked and version == "1.0":
            raise malformed()
        order, most = self._judged(method, path, query, headers)
        return Head(
            method,
            path,
            raw_path,
            query,
            version,
            tuple((name, value) for name, value in fields if name != b"content-length"),
            int(headers.get("content-length", "0")),
            chunked,
            version != "1.0" and "close" not in map(str.strip, options),
            version != "1.0" and headers.get("expect", "").lower() == "100-continue",
            sane(headers.get(HEADER, "")),
            most,
            order,
            not (self._shares and "origin" in headers) and KEY_HEADER not in headers,
            Access(KeyScope.COMPUTE, credential_of(fields)),
        )

    def _judged(self, method: str, path: str, query: bytes, headers: Headers) -> tuple[Order | None, int]:
        """Return the computing call, and the bytes that the body may have."""
        try:
            media = media_of(method, path, headers)
            most = most_bytes(media, self._settings)
            if method != "POST" or not self._calls:
                return None, most
            self._policy.check(headers, self._scheme, path, visits=False)
            return order_of(path, query, media, self._settings.timeout_ms), most
        except Refusal:
            return None, self._settings.max_body_bytes


def infeasible(beginning: bytes) -> bool:
    """Whether these first bytes cannot become a head, whatever follows."""
    half_a_line_end = beginning.endswith(b"\r")
    return beginning[:1] < _NO_BEGINNING or bool(_ILL_FORMED.search(beginning, 0, len(beginning) - half_a_line_end))


def _parse(raw: bytes) -> h11.Request:
    lengths = _LENGTHS.findall(raw)
    if _ILL_FORMED.search(raw) or len(lengths) > 1 or not all(map(_DIGITS.fullmatch, lengths)):
        raise malformed()
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=len(raw) + 1)
    try:
        connection.receive_data(raw)
        event = connection.next_event()
    except h11.RemoteProtocolError:
        raise malformed() from None
    if not isinstance(event, h11.Request) or event.http_version[:2] != b"1.":
        raise malformed()
    return event


def _split(target: bytes) -> tuple[bytes | None, bytes, bytes]:
    """Host and port where it has them, path and query. The form of proxies means the same (RFC 9112, 3.2.2)."""
    found = _ABSOLUTE_FORM.match(target)
    if found:
        target = target[found.end() :] or b"/"
    path, _, query = target.partition(b"?")
    return found and found[1], path, query


class KnownHeads:
    """Cache of heads by their bytes, but for the number of their length.

    Clients send the same few again and again; to look one up costs a hundredth of parsing it. Two generations stand
    for an order by use: what is met in the old one moves to the young one, and when that is full, the old one goes.
    """

    def __init__(self, read: Callable[[bytes], Head], most: int = MOST_HEADS) -> None:
        self._read = read
        self._most = most
        self._young: dict[Key, Head] = {}
        self._old: dict[Key, Head] = {}

    def find(self, raw: bytes) -> tuple[Head, int]:
        """Return a head, and the length of the body that it announces. Raises Refusal: bad_request_framing."""
        found = _LENGTH.search(raw)
        # Two parts and not a whole: a head that states no number at all must not be found as one that states some.
        key: Key = (raw[: found.start(1)], raw[found.end(1) :]) if found else raw
        head = self._young.get(key)
        if head is None:
            head = self._old.get(key) or self._read(raw)
            if len(raw) <= _MOST_BYTES:
                if len(self._young) >= self._most:
                    self._old, self._young = self._young, {}
                self._young[key] = head
        return head, int(found[1]) if found else head.length
