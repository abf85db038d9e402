"""Decisions that a request's head alone allows: framing, size, media types, and what a computing call asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers

from engine import printable
from service.api.calls import calls
from service.api.media import JSON, PIECE_SUMS, SAFETENSORS, SPOKEN, accepted, content_kind
from service.core.errors import Refusal
from service.core.settings import Settings
from service.facades.protocols import BINARY_PATH, LENGTH_HEADER
from service.web.origin import is_of_a_browser
from service.web.query import timeout_of

_VERSIONED: Final = "/v1/"
#: C0 and C1
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TENSOR: Final = re.compile(r"/v1/tensors/[^/]+/?")
_COMPUTING: Final = re.compile(r"/v1/(?:graphs/([^/]+)/)?([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Media:
    """The media types of a body and of its answer."""

    sent: str
    accepted: str


@dataclass(frozen=True, slots=True)
class Order:
    """Order of a computing call: which one, of which registered graph if of any, and in how many seconds."""

    call: str
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
    if not path.startswith(_VERSIONED):
        if method == "POST":
            _check_coding(headers)
        # A body that has tensors as bytes behind its JSON may be as long as safetensors.
        has_bytes = LENGTH_HEADER in headers and BINARY_PATH.fullmatch(path) is not None
        return Media(SAFETENSORS if has_bytes else JSON, JSON)
    if method in ("POST", "PUT"):
        kind = _accepted(headers, SPOKEN if method == "POST" else (JSON,))
        _check_coding(headers)
        return Media(_sent(headers), kind)
    reads = method in ("GET", "HEAD") and _TENSOR.fullmatch(path) is not None
    return Media(JSON, _accepted(headers, SPOKEN if reads else (JSON,)))


def order_of(path: str, query: bytes, media: Media, most_ms: int) -> Order | None:
    """Return the computing call that a POST to this path is; None for any other. Raises Refusal: invalid_field."""
    found = _COMPUTING.fullmatch(path)
    if found is None or found[2] not in calls():
        return None
    return Order(found[2], found[1], media, timeout_of(query, most_ms))


def most_bytes(media: Media, settings: Settings) -> int:
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


def _check_coding(headers: Headers) -> None:
    coding = ", ".join(headers.getlist("content-encoding")).strip().lower()
    if coding not in ("", "identity"):
        got = printable(coding)
        detail = f"the body has the content encoding {got}; send it as it is (identity)"
        raise Refusal("unsupported_media_type", detail, expected="identity", got=got)


def _sent(headers: Headers) -> str:
    """Take a body without a type to be JSON; not of a browser, which asks nobody before it sends such."""
    stated = ", ".join(headers.getlist("content-type"))
    kind = content_kind(stated)
    if kind is None or (not stated.strip() and is_of_a_browser(headers)):
        got = printable(stated) if kind is None else "none"
        what = f"of the type {got} is not understood" if kind is None else "of a browser has to say its type"
        detail = f"a body {what}; send {JSON} in UTF-8 or {SPOKEN[1]}"
        raise Refusal("unsupported_media_type", detail, expected=" or ".join(SPOKEN), got=got)
    return kind


def _accepted(headers: Headers, spoken: Sequence[str]) -> str:
    stated = ",".join(headers.getlist("accept"))
    kind = PIECE_SUMS if stated == PIECE_SUMS and spoken is SPOKEN else accepted(stated, spoken)
    if kind is None:
        listed, got = " or ".join(spoken), printable(stated)
        detail = f"the answer is {listed}, which Accept: {got} rules out"
        raise Refusal("not_acceptable", detail, expected=listed, got=got)
    return kind
