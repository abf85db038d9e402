"""What a request's head alone can get wrong: framing, size, media types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from engine import printable
from service.errors import Refusal
from service.wire.media import JSON, SPOKEN, accepted, content_kind

_CALLS: Final = "/v1/"


def check_head(scope: Scope, max_header_bytes: int) -> None:
    """Note in the scope's state what the body is and what the answer shall be.

    Raises Refusal: headers_too_large, bad_request_framing, unsupported_media_type, not_acceptable.
    """
    headers = Headers(scope=scope)
    _check_size(scope, max_header_bytes)
    _check_framing(headers)
    if scope["path"].startswith(_CALLS):
        posted = scope["method"] == "POST"
        scope["state"]["accepted"] = _accepted(headers, SPOKEN if posted else (JSON,))
        if posted:
            _check_coding(headers)
            scope["state"]["sent"] = _sent(headers)


def too_large(limit: int) -> Refusal:
    """The report for a head over the limit."""
    return Refusal(
        "headers_too_large",
        f"the request line and headers may have at most {limit} bytes together",
        expected=f"at most {limit} bytes",
        got="more",
    )


def _check_size(scope: Scope, limit: int) -> None:
    size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    if size + sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > limit:
        raise too_large(limit)


def _check_framing(headers: Headers) -> None:
    """Two statements of where the body ends are how requests are smuggled past a proxy."""
    if "content-length" in headers and "transfer-encoding" in headers:
        raise Refusal(
            "bad_request_framing",
            "the request has both Content-Length and Transfer-Encoding; send one of them",
            expected="one of them",
            got="both",
        )


def _check_coding(headers: Headers) -> None:
    coding = ", ".join(headers.getlist("content-encoding")).strip().lower()
    if coding not in ("", "identity"):
        got = printable(coding)
        raise Refusal(
            "unsupported_media_type",
            f"the body has the content encoding {got}; send it as it is (identity)",
            expected="identity",
            got=got,
        )


def _sent(headers: Headers) -> str:
    """A body without a type is taken to be JSON."""
    stated = ", ".join(headers.getlist("content-type"))
    kind = content_kind(stated)
    if kind is None:
        spoken, got = " or ".join(SPOKEN), printable(stated)
        raise Refusal(
            "unsupported_media_type",
            f"a body of the type {got} is not understood; send {JSON} in UTF-8 or {SPOKEN[1]}",
            expected=spoken,
            got=got,
        )
    return kind


def _accepted(headers: Headers, spoken: Sequence[str]) -> str:
    stated = ",".join(headers.getlist("accept"))
    kind = accepted(stated, spoken)
    if kind is None:
        listed, got = " or ".join(spoken), printable(stated)
        detail = f"the answer is {listed}, which Accept: {got} rules out"
        raise Refusal("not_acceptable", detail, expected=listed, got=got)
    return kind
