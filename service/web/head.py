"""Decisions that a request's head alone allows: framing, size, media types, and what a computing call asks for."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from heapq import nsmallest
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import count
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote_plus, unquote_to_bytes

import h11
from starlette.datastructures import Headers

from engine import printable
from service.api.calls import calls
from service.api.media import JSON, PIECE_SUMS, SAFETENSORS, SPOKEN, accepted, content_kind
from service.core.errors import Refusal
from service.core.keys.authentication import Access
from service.core.keys.caller import KeyScope, credential_of
from service.core.settings import EVERY, Settings
from service.facades.protocols import BINARY_PATH, LENGTH_HEADER
from service.store.idempotency import KEY_HEADER
from service.workers.task import Reply

# By which names the server may be called, and by which web pages: a browser sends what any page tells it to.
#
# A page from elsewhere reaches a server on the loopback in two ways. It calls it by its address: then the browser says
# where the page is from. Or the page's own name leads to 127.0.0.1 all at once (DNS rebinding), so that the browser
# takes server and page for the same: then the name is a stranger's.

_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#,\s]+)(?::([0-9]*))?")
_ORIGIN: Final = re.compile(r"(https?)://(.*)", re.IGNORECASE)
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
#: what is asked of any server under any address: whether it is well
HEALTH: Final = "/health/"


class OriginPolicy:
    """Policy of a server of these settings on origins."""

    def __init__(self, settings: Settings) -> None:
        allowed = settings.allowed_hosts
        # Who has to send a key is not helped by a name: a browser that is led astray sends none.
        self._allowed_hosts = (
            None if settings.asks_for_keys or EVERY in allowed else frozenset(map(canonical_origin, allowed))
        )
        self._allowed_origins = frozenset(settings.cors_origins)
        self._open_to_others = settings.asks_for_keys or settings.insecure == "on"

    def check_address(self, host: str) -> None:
        """Raise Refusal (forbidden) where others reach the address that a request came to, and may not.

        Our own connections are on the loopback then. Of another server's it is known with the first request.
        """
        address = None if self._open_to_others else _ip_address(host)
        if address is not None and not is_loopback(address):
            detail = (
                f"others reach this server, at {address}, and it asks for no key: set GRADSERVE_KEYS_FILE or "
                "GRADSERVE_API_KEY, or GRADSERVE_INSECURE=on if everybody may compute here"
            )
            raise Refusal("forbidden", detail, expected="a server on the loopback, or one with keys")

    def check(self, headers: Headers, scheme: str, route: str | None, *, visits: bool) -> None:
        """Raise Refusal (misdirected, forbidden) where the request is not to be served.

        `route` is the path that leads to what is asked for, None where none does; a page that is open to everybody may
        be visited from anywhere, by a click on a link.
        """
        host = headers.get("host", "")
        is_named = self._allowed_hosts is None or is_of_this_machine(host) or _host_name(host) in self._allowed_hosts
        if not is_named and "host" in headers and not (route or "").startswith(HEALTH):
            got = printable(host)
            advice = "call it localhost, or start it with --allowed-hosts"
            detail = f"the server is not known by the name “{got}”; {advice}"
            raise Refusal("misdirected", detail, expected="localhost, or a name of --allowed-hosts", got=got)
        origin = ", ".join(headers.getlist("origin"))
        if origin in self._allowed_origins or (EVERY in self._allowed_origins and "origin" in headers):
            return
        if "origin" in headers:
            if not _is_origin_of(origin, scheme, host):
                raise _forbidden_origin(origin)
        elif is_cross_site(headers) and not (visits and is_visit(headers)):
            raise _forbidden_origin("other sites")


def canonical_origin(name: str) -> str:
    """Write a host's name or address as it is compared: in lower case, without a dot at its end; addresses in short."""
    address = _ip_address(name)
    return str(address) if address is not None else name.lower().removesuffix(".")


def is_of_this_machine(host: str) -> bool:
    """Whether the value of `Host` names the loopback, under whatever port (RFC 6761, 6.3 for names)."""
    name = _host_name(host)
    if name is None:
        return False
    address = _ip_address(name)
    if address is None:
        return name == "localhost" or (name.endswith(".localhost") and not name.startswith("."))
    return is_loopback(address)


def is_loopback(address: IPv4Address | IPv6Address) -> bool:
    """Whether only this machine reaches it."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def is_of_a_browser(headers: Headers) -> bool:
    """Whether a browser sends this for a page, as far as it says."""
    return "origin" in headers or any(name.startswith("sec-fetch-") for name in headers)


def is_cross_site(headers: Headers) -> bool:
    """Whether a browser says that a page of another site asks."""
    return "cross-site" in headers.get("sec-fetch-site", "").lower()


def is_visit(headers: Headers) -> bool:
    """Whether a person goes there, in a tab of its own, rather than a page fetches or frames it."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _is_origin_of(origin: str, scheme: str, host: str) -> bool:
    match = _ORIGIN.fullmatch(origin)
    if match is None or match[1].lower() != scheme:
        return False
    own = _host_and_port(host, scheme)
    return own is not None and own == _host_and_port(match[2], scheme)


def _host_and_port(authority: str, scheme: str) -> tuple[str, str] | None:
    match = _AUTHORITY.fullmatch(authority)
    return None if match is None else (canonical_origin(match[1]), match[2] or _DEFAULT_PORTS[scheme])


def _host_name(authority: str) -> str | None:
    """Return the name or address without the port."""
    match = _AUTHORITY.fullmatch(authority)
    return None if match is None else canonical_origin(match[1])


def _ip_address(name: str) -> IPv4Address | IPv6Address | None:
    """Read a name that is an address; those of IPv6 are in brackets, or were before `canonical_origin`."""
    try:
        address = ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    return None if isinstance(address, IPv4Address) and name.startswith("[") else address


def _forbidden_origin(origin: str) -> Refusal:
    got = printable(origin)
    return Refusal("forbidden", f"pages of {got} may not make this call", got=got)


#: the query's parameter that every call with a deadline takes
TIMEOUT: Final = "timeout_ms"
_MILLISECONDS: Final = re.compile(r"[0-9]{1,18}")
#: entries of a page
_DEFAULT_LIMIT: Final = 100
_MAX_LIMIT: Final = 1000
_LIMIT: Final = re.compile(r"[0-9]{1,9}")


def parameters_of(query: bytes, known: Sequence[str]) -> dict[str, str]:
    """Read these parameters of a query, each once. Raises Refusal (invalid_field)."""
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in known or name in parameters:
            if name in parameters:
                detail = f"{name} stands twice in the query"
                raise Refusal("invalid_field", detail, expected=f"{name} once", got="twice")
            unknown_name, known_names = printable(name), ", ".join(known)
            detail = f"the query has no parameter “{unknown_name}” (known: {known_names})"
            raise Refusal("invalid_field", detail, expected=known_names, got=unknown_name)
        parameters[name] = value
    return parameters


def timeout_of(query: bytes, max_ms: int) -> float:
    """Seconds that a request may take: `timeout_ms`, lowered to the server's. Raises Refusal (invalid_field)."""
    return timeout_in(parameters_of(query, (TIMEOUT,)), max_ms)


def timeout_in(parameters: dict[str, str], max_ms: int) -> float:
    """Read it where the query may state other things, too."""
    timeout = parameters.get(TIMEOUT)
    if timeout is None:
        return max_ms / 1000
    if not _MILLISECONDS.fullmatch(timeout) or not int(timeout):
        got = printable(timeout) or "nothing"
        detail = f"timeout_ms must be a whole number of milliseconds of at least 1, but is {got}"
        raise Refusal("invalid_field", detail, expected="a whole number of at least 1", got=got)
    return min(int(timeout), max_ms) / 1000


def without_time(query: bytes) -> str:
    """Leave the time out of a query: whoever asks the same with more time, or with less, has the same text."""
    parameters = query.decode("latin-1").split("&")
    return "&".join(part for part in parameters if unquote_plus(part.partition("=")[0]) != TIMEOUT)


def choice_in(parameters: dict[str, str], name: str, choices: Sequence[str]) -> str:
    """Read a choice of the query, the first one where nothing is stated. Raises Refusal (invalid_field)."""
    value = parameters.get(name, choices[0])
    if value not in choices:
        expected, got = " or ".join(choices), printable(value) or "nothing"
        raise Refusal("invalid_field", f"{name} must be {expected}, but is {got}", expected=expected, got=got)
    return value


class Page(NamedTuple):
    """Page of a long listing: so many entries, from behind the one that is called `after`; None: from the first on."""

    limit: int
    after: str | None


def names_of_page(existing: Iterable[str], limit: int, after: str | None) -> tuple[list[str], str | None]:
    """Return the names of a page, in their order, and the `after` of the next page, if there is one."""
    page = nsmallest(limit + 1, existing if after is None else (name for name in existing if name > after))
    return page[:limit], page[limit - 1] if len(page) > limit else None


def page_of(query: bytes) -> Page:
    """Return the page that a query asks for. Raises Refusal (invalid_field)."""
    parameters = parameters_of(query, ("limit", "after"))
    limit = parameters.get("limit", str(_DEFAULT_LIMIT))
    if not _LIMIT.fullmatch(limit) or not 1 <= int(limit) <= _MAX_LIMIT:
        got = printable(limit) or "nothing"
        expected = f"a whole number from 1 to {_MAX_LIMIT}"
        raise Refusal("invalid_field", f"limit must be {expected}, but is {got}", expected=expected, got=got)
    return Page(int(limit), parameters.get("after"))


_API_PREFIX: Final = "/v1/"
#: C0 and C1
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TENSOR_PATH: Final = re.compile(r"/v1/tensors/[^/]+/?")
_CALL_PATH: Final = re.compile(r"/v1/(?:graphs/([^/]+)/)?([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Media:
    """The media types of a body and of its answer."""

    sent: str
    accepted: str


@dataclass(frozen=True, slots=True)
class ComputeCall:
    """Order of a computing call: which one, of which registered graph if of any, and in how many seconds."""

    name: str
    graph: str | None
    media: Media
    timeout: float


def check_head(version: str, path: str, headers: Headers) -> None:
    """Refuse what two readers could take differently. Raises Refusal (bad_request_framing).

    Two statements of where the body ends are how requests are smuggled past a proxy; of two hosts, each reader
    believes another; and a line that ends within a path ends a pattern, too.
    """
    hosts = len(headers.getlist("host"))
    if hosts > 1 or (not hosts and version != "1.0") or _CONTROL.search(path):
        raise malformed()
    if "content-length" in headers and "transfer-encoding" in headers:
        detail = "the request has both Content-Length and Transfer-Encoding; send one of them"
        raise Refusal("bad_request_framing", detail, expected="one of them", got="both")


def media_of(method: str, path: str, headers: Headers) -> Media:
    """Decide the types of body and answer. Raises Refusal: unsupported_media_type, not_acceptable."""
    if not path.startswith(_API_PREFIX):
        if method == "POST":
            _check_content_encoding(headers)
        # A body that has tensors as bytes behind its JSON may be as long as safetensors.
        has_bytes = LENGTH_HEADER in headers and BINARY_PATH.fullmatch(path) is not None
        return Media(SAFETENSORS if has_bytes else JSON, JSON)
    if method in ("POST", "PUT"):
        accepted_type = _accepted_type(headers, SPOKEN if method == "POST" else (JSON,))
        _check_content_encoding(headers)
        return Media(_body_type(headers), accepted_type)
    reads_tensor = method in ("GET", "HEAD") and _TENSOR_PATH.fullmatch(path) is not None
    return Media(JSON, _accepted_type(headers, SPOKEN if reads_tensor else (JSON,)))


def compute_call_of(path: str, query: bytes, media: Media, max_ms: int) -> ComputeCall | None:
    """Return the computing call that a POST to this path is; None for any other. Raises Refusal: invalid_field."""
    match = _CALL_PATH.fullmatch(path)
    if match is None or match[2] not in calls():
        return None
    return ComputeCall(match[2], match[1], media, timeout_of(query, max_ms))


def body_limit(media: Media, settings: Settings) -> int:
    """Return the bytes that a body of this type may have."""
    return settings.max_binary_bytes if media.sent == SAFETENSORS else settings.max_body_bytes


def too_large(limit: int) -> Refusal:
    """Return the report for a head over the limit."""
    detail = f"the request line and headers may have at most {limit} bytes together"
    return Refusal("headers_too_large", detail, expected=f"at most {limit} bytes", got="more")


def too_long(limit: int, got: str) -> Refusal:
    """Return the report for a body over the limit; `got` is what it has."""
    detail = f"the body may have at most {limit} bytes, but has {got}"
    return Refusal("body_too_large", detail, expected=f"at most {limit} bytes", got=got)


def malformed() -> Refusal:
    """Return the report for what is not HTTP."""
    return Refusal("bad_request_framing", "the request is not well-formed HTTP/1.1")


def _check_content_encoding(headers: Headers) -> None:
    encoding = ", ".join(headers.getlist("content-encoding")).strip().lower()
    if encoding not in ("", "identity"):
        got = printable(encoding)
        detail = f"the body has the content encoding {got}; send it as it is (identity)"
        raise Refusal("unsupported_media_type", detail, expected="identity", got=got)


def _body_type(headers: Headers) -> str:
    """Take a body without a type to be JSON; not of a browser, which asks nobody before it sends such."""
    content_type = ", ".join(headers.getlist("content-type"))
    media_type = content_kind(content_type)
    if media_type is None or (not content_type.strip() and is_of_a_browser(headers)):
        got = printable(content_type) if media_type is None else "none"
        problem = f"of the type {got} is not understood" if media_type is None else "of a browser has to say its type"
        detail = f"a body {problem}; send {JSON} in UTF-8 or {SPOKEN[1]}"
        raise Refusal("unsupported_media_type", detail, expected=" or ".join(SPOKEN), got=got)
    return media_type


def _accepted_type(headers: Headers, spoken: Sequence[str]) -> str:
    accept = ",".join(headers.getlist("accept"))
    media_type = PIECE_SUMS if accept == PIECE_SUMS and spoken is SPOKEN else accepted(accept, spoken)
    if media_type is None:
        expected, got = " or ".join(spoken), printable(accept)
        detail = f"the answer is {expected}, which Accept: {got} rules out"
        raise Refusal("not_acceptable", detail, expected=expected, got=got)
    return media_type


# A head, read: bytes up to the empty line become what the connection and both doors need to know.
#
# h11 parses, which is safe and slow; what it lets pass and two readers could take differently is refused here.

#: of a request's id: the client's own where it is sane, else a new one
REQUEST_ID_HEADER: Final = "X-Request-Id"
_VALID_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}")
#: tells processes apart, and those that were started before
_ID_PREFIX: Final = secrets.token_hex(12)
_request_numbers: Final = count()


def new_id() -> str:
    """Return an id that no other request has."""
    return f"{_ID_PREFIX}{next(_request_numbers):08x}"


def valid_request_id(stated: str) -> str | None:
    """Return the client's id for a request, where it can stand in a header, a report and a log."""
    return stated if _VALID_REQUEST_ID.fullmatch(stated) else None


CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE: Final = b"connection: close\r\n"
_ID_FIELD: Final = REQUEST_ID_HEADER.lower().encode()
#: a browser is to take no answer for a page or a script, whatever its bytes look like
NO_SNIFFING: Final = ("x-content-type-options", "nosniff")
_NO_SNIFFING: Final = (NO_SNIFFING[0].encode(), NO_SNIFFING[1].encode())
_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\ndate: ".encode() for status in HTTPStatus
}


class HeadWriter:
    """Writer of heads with the date, which is made once a second at most."""

    def __init__(self) -> None:
        self.tick()

    def tick(self) -> None:
        """Look at the clock."""
        date = formatdate(usegmt=True).encode()
        self._starts = {status: line + date + b"\r\n" for status, line in _STATUS_LINES.items()}
        self._ok = b"".join((
            self._starts[200], b"content-length: %d\r\ncontent-type: %b\r\n", _ID_FIELD, b": %b\r\n",
            b"%b: %b\r\n" % _NO_SNIFFING, b"%b\r\n",
        ))  # fmt: skip

    def of(self, status: int, fields: Iterable[tuple[bytes, bytes]], *, closes: bool) -> bytes:
        """Return the head with these fields."""
        lines = b"".join([b"%b: %b\r\n" % field for field in fields])
        start = self._starts.get(status) or b"HTTP/1.1 %d \r\n" % status
        return b"%b%b%b\r\n" % (start, lines, CLOSE if closes else b"")

    def reply_head(self, reply: Reply, length: int, request_id: str, *, closes: bool) -> bytes:
        """Write the head of a body of this length, with the same fields in the same order as through the other door."""
        connection_field = CLOSE if closes else b""
        media_type, id_value = reply.media_type.encode(), request_id.encode()
        if reply.status == 200 and not reply.headers:
            return self._ok % (length, media_type, id_value, connection_field)
        fields = [(name.lower().encode(), value.encode()) for name, value in reply.headers]
        fields += [
            (b"content-length", b"%d" % length),
            (b"content-type", media_type),
            (_ID_FIELD, id_value),
            _NO_SNIFFING,
        ]
        return self.of(reply.status, fields, closes=closes)


#: a control character, a line end that is half of one, or a line that goes on with the one before it
_ILL_FORMED: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)|\n[ \t]")
_CONTENT_LENGTHS: Final = re.compile(rb"\r\ncontent-length:[ \t]*([^\r]*?)[ \t]*(?=\r\n)", re.IGNORECASE)
_DIGITS: Final = re.compile(rb"[0-9]{1,20}")
_ABSOLUTE_FORM: Final = re.compile(rb"https?://([^/?]*)", re.IGNORECASE)
#: how heads of no HTTP begin: TLS, binary protocols, an empty line
_FIRST_VISIBLE: Final = b"\x21"
#: heads that are kept, at least; and the bytes that one may have
HEAD_CACHE_ENTRIES: Final = 1024
_MAX_CACHED_BYTES: Final = 2048
_CONTENT_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,18})\r\n")

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
    keep_alive: bool
    expects_continue: bool
    client_id: str | None
    max_bytes: int
    call: ComputeCall | None
    direct: bool
    access: Access


class HeadReader:
    """Reader of heads for a server of these settings."""

    def __init__(self, settings: Settings, *, calls: bool = True) -> None:
        """`calls` says whether there are computing calls where this server listens."""
        self._settings = settings
        self._calls = calls
        self._allows_origins = bool(settings.cors_origins)
        self._policy = OriginPolicy(settings)
        self._scheme = "http" if settings.tls_cert is None else "https"

    def __call__(self, raw: bytes) -> Head:
        """The head that these bytes are. Raises Refusal: bad_request_framing."""
        request = _parse_head(raw)
        authority, raw_path, query = _split_target(request.target)
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
        call, max_bytes = self._classify(method, path, query, headers)
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
            valid_request_id(headers.get(REQUEST_ID_HEADER, "")),
            max_bytes,
            call,
            not (self._allows_origins and "origin" in headers) and KEY_HEADER not in headers,
            Access(KeyScope.COMPUTE, credential_of(fields)),
        )

    def _classify(self, method: str, path: str, query: bytes, headers: Headers) -> tuple[ComputeCall | None, int]:
        """Return the computing call, and the bytes that the body may have."""
        try:
            media = media_of(method, path, headers)
            max_bytes = body_limit(media, self._settings)
            if method != "POST" or not self._calls:
                return None, max_bytes
            self._policy.check(headers, self._scheme, path, visits=False)
            return compute_call_of(path, query, media, self._settings.timeout_ms), max_bytes
        except Refusal:
            return None, self._settings.max_body_bytes


def is_hopeless(beginning: bytes) -> bool:
    """Whether these first bytes cannot become a head, whatever follows."""
    ends_in_cr = beginning.endswith(b"\r")
    return beginning[:1] < _FIRST_VISIBLE or bool(_ILL_FORMED.search(beginning, 0, len(beginning) - ends_in_cr))


def _parse_head(raw: bytes) -> h11.Request:
    lengths = _CONTENT_LENGTHS.findall(raw)
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


def _split_target(target: bytes) -> tuple[bytes | None, bytes, bytes]:
    """Host and port where it has them, path and query. The form of proxies means the same (RFC 9112, 3.2.2)."""
    match = _ABSOLUTE_FORM.match(target)
    if match:
        target = target[match.end() :] or b"/"
    path, _, query = target.partition(b"?")
    return match and match[1], path, query


class HeadCache:
    """Cache of heads by their bytes, but for the number of their length.

    Clients send the same few again and again; to look one up costs a hundredth of parsing it. Two generations stand
    for an order by use: what is met in the old one moves to the young one, and when that is full, the old one goes.
    """

    def __init__(self, read: Callable[[bytes], Head], capacity: int = HEAD_CACHE_ENTRIES) -> None:
        self._read = read
        self._capacity = capacity
        self._young: dict[Key, Head] = {}
        self._old: dict[Key, Head] = {}

    def find(self, raw: bytes) -> tuple[Head, int]:
        """Return a head, and the length of the body that it announces. Raises Refusal: bad_request_framing."""
        match = _CONTENT_LENGTH.search(raw)
        # Two parts and not a whole: a head that states no number at all must not be found as one that states some.
        key: Key = (raw[: match.start(1)], raw[match.end(1) :]) if match else raw
        head = self._young.get(key)
        if head is None:
            head = self._old.get(key) or self._read(raw)
            if len(raw) <= _MAX_CACHED_BYTES:
                if len(self._young) >= self._capacity:
                    self._old, self._young = self._young, {}
                self._young[key] = head
        return head, int(match[1]) if match else head.length
