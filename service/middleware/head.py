"""What a request's head alone can get wrong: framing, size, media types."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from service.errors import Refusal, printable
from service.responses import JSON

SPOKEN: Final = (JSON,)
_CALLS: Final = "/v1/"


def check_head(scope: Scope, max_header_bytes: int) -> None:
    """Raise Refusal: headers_too_large, bad_request_framing, unsupported_media_type, not_acceptable."""
    headers = Headers(scope=scope)
    _check_size(scope, max_header_bytes)
    _check_framing(headers)
    if scope["path"].startswith(_CALLS):
        _check_accept(headers)
        if scope["method"] == "POST":
            _check_coding(headers)
            _check_type(headers)


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


def _check_type(headers: Headers) -> None:
    """A body without a type is taken to be JSON: there is only one thing that it can be."""
    stated = ", ".join(headers.getlist("content-type"))
    kind, _, parameters = stated.partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower().partition("charset=")[2]
    if stated and (kind.strip().lower() not in SPOKEN or charset not in ("", "utf-8", "utf8")):
        spoken, got = " or ".join(SPOKEN), printable(stated)
        raise Refusal(
            "unsupported_media_type",
            f"a body of the type {got} is not understood; send {spoken} in UTF-8",
            expected=spoken,
            got=got,
        )


def _check_accept(headers: Headers) -> None:
    stated = ",".join(headers.getlist("accept"))
    if stated.strip() and not accepts_json(stated):
        spoken, got = " or ".join(SPOKEN), printable(stated)
        detail = f"the answer is {spoken}, which Accept: {got} rules out"
        raise Refusal("not_acceptable", detail, expected=spoken, got=got)


def accepts_json(accept: str) -> bool:
    """Whether an Accept header allows JSON: its most specific range that fits decides (RFC 9110, 12.5.1)."""
    quality = {}
    for item in accept.split(","):
        media_range, *parameters = (part.strip().lower() for part in item.split(";"))
        quality[media_range] = next((p[2:] for p in parameters if p.startswith("q=")), "1")
    decisive = next((quality[r] for r in (JSON, "application/*", "*/*") if r in quality), "0")
    return decisive.strip("0.") != ""
