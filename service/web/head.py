"""Request heads: what the request line and the headers decide before the body is read.

`HeadReader` turns the bytes up to the empty line into a `Head`. Nothing here reads a body, so that a request can be
refused, and sent to the right handler, before its body arrives. Of

    POST /v1/gradients?timeout_ms=500 HTTP/1.1
    Host: localhost:8000
    Content-Type: application/json
    Content-Length: 58

the reader checks in this order:

- Syntax: h11 parses. Everything that it lets pass and that two parsers could read differently is refused (two Hosts,
  two lengths, bare line ends), since such requests can be smuggled past a proxy.
- Media: the types of the body and of the response, and so the limit on the body's bytes.
- Origin: `OriginPolicy` compares Host and Origin with the names of the server. This keeps web pages of other sites from
  calling a server on localhost.
- Call: `ComputeCall("gradients", None, media, 0.5)`, since the path is that of a computing call. The second
  field is the id of a registered graph, which is None here.

A head that fails one of the last three has `call` None: it goes to the ASGI application, which repeats the check and
reports the error. Only heads with a call can take the fast path to the worker pool.

Parsing costs about a hundred times as much as a lookup, and clients send the same few heads over and over. `HeadCache`
therefore caches `Head` objects by their bytes. It leaves the digits of Content-Length out of the key, because the
length is the part that changes from call to call; `find` returns it beside the head. A `Head` must then not depend on
time or on the connection: whether the key is still valid is checked for each request.
"""

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
from service.api.media import JSON, PIECE_SUMS, SAFETENSORS, SUPPORTED, content_kind, negotiate
from service.core.errors import Refusal
from service.core.keys.authentication import Access
from service.core.keys.caller import KeyScope, credential_of
from service.core.settings import WILDCARD, Settings
from service.facades.protocols import BINARY_PATH, LENGTH_HEADER
from service.store.idempotency import KEY_HEADER
from service.workers.task import Reply

# A browser sends whatever any web page tells it to, so a foreign page can reach a server on localhost in two ways. It
# uses the server's address: then the browser states the page's origin. Or the page's own name suddenly resolves to
# 127.0.0.1 (DNS rebinding), so that the browser takes server and page for the same origin: then Host is a foreign name.

_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#,\s]+)(?::([0-9]*))?")
_ORIGIN: Final = re.compile(r"(https?)://(.*)", re.IGNORECASE)
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
#: prefix of health checks, which a server answers under any name
HEALTH: Final = "/health/"


class OriginPolicy:
    """Names that the server may be called by, and web pages that may call it."""

    def __init__(self, settings: Settings) -> None:
        allowed = settings.allowed_hosts
        # With keys, names need no check: a browser that was led astray by DNS rebinding sends no key.
        self._allowed_hosts = (
            None if settings.requires_keys or WILDCARD in allowed else frozenset(map(canonical_origin, allowed))
        )
        self._allowed_origins = frozenset(settings.cors_origins)
        self._open_to_others = settings.requires_keys or settings.insecure == "on"

    def check_address(self, host: str) -> None:
        """Raise Refusal (forbidden) for an address that other machines reach, if the server has no keys.

        Own listeners are on the loopback then. For another server's, the address is known only with the first request.
        """
        address = None if self._open_to_others else _ip_address(host)
        if address is not None and not is_loopback(address):
            detail = (
                f"other machines can reach this server, at {address}, but it has no API keys: set GRADSERVE_KEYS_FILE "
                "or GRADSERVE_API_KEY, or set GRADSERVE_INSECURE=on to allow everybody"
            )
            raise Refusal("forbidden", detail, expected="a server on localhost, or a server with API keys")

    def check(self, headers: Headers, scheme: str, route: str | None, *, visits: bool) -> None:
        """Raise Refusal (misdirected, forbidden) for a request by a foreign name or from a foreign page.

        `route` is the path of the matching route, None if no route matches. With `visits`, the route is a page that is
        open to everybody, which links on any site may lead to.
        """
        host = headers.get("host", "")
        is_named = self._allowed_hosts is None or is_of_this_machine(host) or _host_name(host) in self._allowed_hosts
        if not is_named and "host" in headers and not (route or "").startswith(HEALTH):
            got = printable(host)
            advice = "use localhost, or start the server with this name in --allowed-hosts"
            detail = f"the server does not accept the host name “{got}”; {advice}"
            raise Refusal("misdirected", detail, expected="localhost, or a name in --allowed-hosts", got=got)
        origin = ", ".join(headers.getlist("origin"))
        if origin in self._allowed_origins or (WILDCARD in self._allowed_origins and "origin" in headers):
            return
        if "origin" in headers:
            if not _is_origin_of(origin, scheme, host):
                raise _forbidden_origin(origin)
        elif is_cross_site(headers) and not (visits and is_visit(headers)):
            raise _forbidden_origin("other sites")


def canonical_origin(name: str) -> str:
    """Normalize a host's name (lower case, no trailing dot) or address (shortest form) for comparison."""
    address = _ip_address(name)
    return str(address) if address is not None else name.lower().removesuffix(".")


def is_of_this_machine(host: str) -> bool:
    """Return whether a `Host` header names the loopback, under any port (names: RFC 6761, 6.3)."""
    name = _host_name(host)
    if name is None:
        return False
    address = _ip_address(name)
    if address is None:
        return name == "localhost" or (name.endswith(".localhost") and not name.startswith("."))
    return is_loopback(address)


def is_loopback(address: IPv4Address | IPv6Address) -> bool:
    """Return whether only this machine reaches an address."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def is_of_a_browser(headers: Headers) -> bool:
    """Return whether a browser sends this for a page, judging by its headers."""
    return "origin" in headers or any(name.startswith("sec-fetch-") for name in headers)


def is_cross_site(headers: Headers) -> bool:
    """Return whether a browser says that the request comes from a page of another site."""
    return "cross-site" in headers.get("sec-fetch-site", "").lower()


def is_visit(headers: Headers) -> bool:
    """Return whether this is a top-level navigation by a person, not a fetch or a frame of a page."""
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
    """Parse a name that is an IP address; IPv6 addresses are in brackets, or were before `canonical_origin`."""
    try:
        address = ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    return None if isinstance(address, IPv4Address) and name.startswith("[") else address


def _forbidden_origin(origin: str) -> Refusal:
    got = printable(origin)
    return Refusal("forbidden", f"pages from {got} may not make this call", got=got)


#: query parameter of every request
TIMEOUT: Final = "timeout_ms"
_MILLISECONDS: Final = re.compile(r"[0-9]{1,18}")
#: default and greatest number of entries on a page
_DEFAULT_LIMIT: Final = 100
_MAX_LIMIT: Final = 1000
_LIMIT: Final = re.compile(r"[0-9]{1,9}")


def parameters_of(query: bytes, *names: str) -> dict[str, str]:
    """Parse the query's parameters, each at most once: `names` and `timeout_ms`. Raises Refusal (invalid_field)."""
    known = (*names, TIMEOUT)
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in known or name in parameters:
            if name in parameters:
                detail = f"{name} appears twice in the query"
                raise Refusal("invalid_field", detail, expected=f"{name} once", got="twice")
            unknown_name, known_names = printable(name), ", ".join(known)
            detail = f"the query has no parameter “{unknown_name}” (known: {known_names})"
            raise Refusal("invalid_field", detail, expected=known_names, got=unknown_name)
        parameters[name] = value
    return parameters


def timeout_of(query: bytes, max_ms: int) -> float:
    """Return the timeout of a request in seconds: `timeout_ms`, at most `max_ms`. Raises Refusal (invalid_field)."""
    timeout = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)).get(TIMEOUT)
    if timeout is None:
        return max_ms / 1000
    if not _MILLISECONDS.fullmatch(timeout) or not int(timeout):
        got = printable(timeout) or "nothing"
        detail = f"timeout_ms must be a whole number of milliseconds of at least 1, but is {got}"
        raise Refusal("invalid_field", detail, expected="a whole number of at least 1", got=got)
    return min(int(timeout), max_ms) / 1000


def without_time(query: bytes) -> str:
    """Remove the timeout from a query, so that requests that differ in it alone have equal texts."""
    parameters = query.decode("latin-1").split("&")
    return "&".join(part for part in parameters if unquote_plus(part.partition("=")[0]) != TIMEOUT)


def choice_in(parameters: dict[str, str], name: str, choices: Sequence[str]) -> str:
    """Read a parameter that is one of `choices`, by default the first. Raises Refusal (invalid_field)."""
    value = parameters.get(name, choices[0])
    if value not in choices:
        expected, got = " or ".join(choices), printable(value) or "nothing"
        raise Refusal("invalid_field", f"{name} must be {expected}, but is {got}", expected=expected, got=got)
    return value


class Page(NamedTuple):
    """Page of a long listing: at most `limit` entries, after the one named `after`, or from the start if it is None."""

    limit: int
    after: str | None


def names_of_page(existing: Iterable[str], limit: int, after: str | None) -> tuple[list[str], str | None]:
    """Return the names of a page, sorted, and the `after` of the next page, if there is one."""
    page = nsmallest(limit + 1, existing if after is None else (name for name in existing if name > after))
    return page[:limit], page[limit - 1] if len(page) > limit else None


def page_of(query: bytes) -> Page:
    """Parse the page that a query asks for. Raises Refusal (invalid_field)."""
    parameters = parameters_of(query, "limit", "after")
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
    """Media types of a body and of its response."""

    body_type: str
    answer_type: str


@dataclass(frozen=True, slots=True)
class ComputeCall:
    """A computing call: its name, the id of its registered graph (if any), its media types, its timeout in seconds."""

    name: str
    graph: str | None
    media: Media
    timeout: float


def check_head(version: str, path: str, headers: Headers) -> None:
    """Refuse a head that two parsers could read differently. Raises Refusal (bad_request_framing).

    Two statements of where the body ends allow a request to be smuggled past a proxy. With two hosts, each parser
    believes another one. A line end within a path would end a match of the path's pattern early.
    """
    hosts = len(headers.getlist("host"))
    if hosts > 1 or (not hosts and version != "1.0") or _CONTROL.search(path):
        raise malformed()
    if "content-length" in headers and "transfer-encoding" in headers:
        detail = "the request has both Content-Length and Transfer-Encoding; send one of them"
        raise Refusal("bad_request_framing", detail, expected="one of them", got="both")


def media_of(method: str, path: str, headers: Headers) -> Media:
    """Choose the types of body and response. Raises Refusal: unsupported_media_type, not_acceptable."""
    if not path.startswith(_API_PREFIX):
        if method == "POST":
            _check_content_encoding(headers)
        # A body with binary tensors after its JSON may be as long as one in safetensors.
        has_bytes = LENGTH_HEADER in headers and BINARY_PATH.fullmatch(path) is not None
        return Media(SAFETENSORS if has_bytes else JSON, JSON)
    if method in ("POST", "PUT"):
        accepted_type = _accepted_type(headers, SUPPORTED if method == "POST" else (JSON,))
        _check_content_encoding(headers)
        return Media(_body_type(headers), accepted_type)
    reads_tensor = method in ("GET", "HEAD") and _TENSOR_PATH.fullmatch(path) is not None
    return Media(JSON, _accepted_type(headers, SUPPORTED if reads_tensor else (JSON,)))


def compute_call_of(path: str, query: bytes, media: Media, max_ms: int) -> ComputeCall | None:
    """Return the computing call of a POST to this path, None if it is not one. Raises Refusal: invalid_field."""
    match = _CALL_PATH.fullmatch(path)
    if match is None or match[2] not in calls():
        return None
    parameters_of(query)
    return ComputeCall(match[2], match[1], media, timeout_of(query, max_ms))


def body_limit(media: Media, settings: Settings) -> int:
    """Return the most bytes that a body of this type may have."""
    return settings.max_binary_bytes if media.body_type == SAFETENSORS else settings.max_body_bytes


def too_large(limit: int) -> Refusal:
    """Return the refusal of a head over the limit."""
    detail = f"the request line and headers may have at most {limit} bytes together"
    return Refusal("headers_too_large", detail, expected=f"at most {limit} bytes", got="more")


def too_long(limit: int, got: str) -> Refusal:
    """Return the refusal of a body over the limit; `got` describes its length."""
    detail = f"the body may have at most {limit} bytes, but has {got}"
    return Refusal("body_too_large", detail, expected=f"at most {limit} bytes", got=got)


def malformed() -> Refusal:
    """Return the refusal of malformed HTTP."""
    return Refusal("bad_request_framing", "the request is not well-formed HTTP/1.1")


def _check_content_encoding(headers: Headers) -> None:
    encoding = ", ".join(headers.getlist("content-encoding")).strip().lower()
    if encoding not in ("", "identity"):
        got = printable(encoding)
        detail = f"the body has the content encoding {got}; send it uncompressed (identity)"
        raise Refusal("unsupported_media_type", detail, expected="identity", got=got)


def _body_type(headers: Headers) -> str:
    """Return the type of the body: JSON if none is stated.

    A browser has to state it: it sends a cross-site request of certain types, or of none, without asking the server
    first.
    """
    content_type = ", ".join(headers.getlist("content-type"))
    media_type = content_kind(content_type)
    if media_type is None or (not content_type.strip() and is_of_a_browser(headers)):
        got = printable(content_type) if media_type is None else "none"
        problem = (
            f"the media type {got} is not supported"
            if media_type is None
            else "a request from a browser must state its Content-Type"
        )
        detail = f"{problem}; send {JSON} in UTF-8 or {SUPPORTED[1]}"
        raise Refusal("unsupported_media_type", detail, expected=" or ".join(SUPPORTED), got=got)
    return media_type


def _accepted_type(headers: Headers, supported: Sequence[str]) -> str:
    accept = ",".join(headers.getlist("accept"))
    media_type = PIECE_SUMS if accept == PIECE_SUMS and supported is SUPPORTED else negotiate(accept, supported)
    if media_type is None:
        expected, got = " or ".join(supported), printable(accept)
        detail = f"the response is {expected}, which Accept: {got} excludes"
        raise Refusal("not_acceptable", detail, expected=expected, got=got)
    return media_type


# Parsing of heads.

#: header with the id of a request: the client's own if it is valid, otherwise a new one
REQUEST_ID_HEADER: Final = "X-Request-Id"
_VALID_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}")
#: prefix of the ids of this process, unique among all processes
_ID_PREFIX: Final = secrets.token_hex(12)
_request_numbers: Final = count()


def new_id() -> str:
    """Return a unique request id."""
    return f"{_ID_PREFIX}{next(_request_numbers):08x}"


def valid_request_id(client_id: str) -> str | None:
    """Return the client's own request id if it is safe in headers, reports and logs, otherwise None."""
    return client_id if _VALID_REQUEST_ID.fullmatch(client_id) else None


CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE: Final = b"connection: close\r\n"
_ID_FIELD: Final = REQUEST_ID_HEADER.lower().encode()
#: header that keeps browsers from guessing that a response is a page or a script
NO_SNIFFING: Final = ("x-content-type-options", "nosniff")
_NO_SNIFFING: Final = (NO_SNIFFING[0].encode(), NO_SNIFFING[1].encode())
_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\ndate: ".encode() for status in HTTPStatus
}


class HeadWriter:
    """Writer of response heads, with the date, which is formatted once per second at most."""

    def __init__(self) -> None:
        self.tick()

    def tick(self) -> None:
        """Update the date."""
        date = formatdate(usegmt=True).encode()
        self._starts = {status: line + date + b"\r\n" for status, line in _STATUS_LINES.items()}
        self._ok = b"".join((
            self._starts[200], b"content-length: %d\r\ncontent-type: %b\r\n", _ID_FIELD, b": %b\r\n",
            b"%b: %b\r\n" % _NO_SNIFFING, b"%b\r\n",
        ))  # fmt: skip

    def head(self, status: int, fields: Iterable[tuple[bytes, bytes]], *, closes: bool) -> bytes:
        """Write a head with these header fields."""
        lines = b"".join([b"%b: %b\r\n" % field for field in fields])
        start = self._starts.get(status) or b"HTTP/1.1 %d \r\n" % status
        return b"%b%b%b\r\n" % (start, lines, CLOSE if closes else b"")

    def reply_head(self, reply: Reply, length: int, request_id: str, *, closes: bool) -> bytes:
        """Write the head of a reply; the fields and their order are the same as through the ASGI application."""
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
        return self.head(reply.status, fields, closes=closes)


#: a control character, a CR or LF alone, or a folded line
_ILL_FORMED: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)|\n[ \t]")
_CONTENT_LENGTHS: Final = re.compile(rb"\r\ncontent-length:[ \t]*([^\r]*?)[ \t]*(?=\r\n)", re.IGNORECASE)
_DIGITS: Final = re.compile(rb"[0-9]{1,20}")
_ABSOLUTE_FORM: Final = re.compile(rb"https?://([^/?]*)", re.IGNORECASE)
#: least first byte of a head: TLS, binary protocols and empty lines begin with smaller ones
_FIRST_VISIBLE: Final = b"\x21"
#: heads per generation of the cache, and the most bytes of a head in it
HEAD_CACHE_ENTRIES: Final = 1024
_MAX_CACHED_BYTES: Final = 2048
_CONTENT_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,18})\r\n")

Key = bytes | tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Head:
    """Parsed request line and headers. `fields` lack Content-Length: heads that differ in it alone share one Head.

    `call` is the computing call. It is None for other requests, for heads with an error, and for callers that
    `OriginPolicy` refuses. A call is `direct` if a worker alone can answer it: it needs neither CORS headers nor a
    stored answer for its Idempotency-Key. `access` is the scope that a call needs, and the digest of the caller's key.
    Whether that key is valid is checked for each request, since heads are cached.
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
    """Parser of heads for a server with these settings."""

    def __init__(self, settings: Settings, *, calls: bool = True) -> None:
        """With `calls` False, this listener serves no computing calls."""
        self._settings = settings
        self._calls = calls
        self._allows_origins = bool(settings.cors_origins)
        self._policy = OriginPolicy(settings)
        self._scheme = "http" if settings.tls_cert is None else "https"

    def __call__(self, raw: bytes) -> Head:
        """Parse a head. Raises Refusal: bad_request_framing."""
        request = _parse_head(raw)
        authority, raw_path, query = _split_target(request.target)
        fields = tuple(request.headers)
        if authority is not None:  # the host of the target overrides Host (RFC 9112, 3.2.2)
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
        """Return the computing call, and the most bytes that the body may have."""
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
    """Return whether no head can begin with these bytes."""
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
    """Split a target into host and port (if any), path and query. Absolute form means the same (RFC 9112, 3.2.2)."""
    match = _ABSOLUTE_FORM.match(target)
    if match:
        target = target[match.end() :] or b"/"
    path, _, query = target.partition(b"?")
    return match and match[1], path, query


class HeadCache:
    """Cache of heads by their bytes, without the digits of Content-Length.

    Two generations approximate LRU order: a hit in the old one moves the head to the young one, and when that is full,
    it becomes the old one.
    """

    def __init__(self, read: Callable[[bytes], Head], capacity: int = HEAD_CACHE_ENTRIES) -> None:
        self._read = read
        self._capacity = capacity
        self._young: dict[Key, Head] = {}
        self._old: dict[Key, Head] = {}

    def find(self, raw: bytes) -> tuple[Head, int]:
        """Return a head, and the length of the body that it announces. Raises Refusal: bad_request_framing."""
        match = _CONTENT_LENGTH.search(raw)
        # The key is a pair, not the joined bytes: a head without a number must not hit one with a number.
        key: Key = (raw[: match.start(1)], raw[match.end(1) :]) if match else raw
        head = self._young.get(key)
        if head is None:
            head = self._old.get(key) or self._read(raw)
            if len(raw) <= _MAX_CACHED_BYTES:
                if len(self._young) >= self._capacity:
                    self._old, self._young = self._young, {}
                self._young[key] = head
        return head, int(match[1]) if match else head.length
