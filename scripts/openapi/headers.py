"""Headers of answers in the OpenAPI document: those that tell a client something, and where each occurs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from scripts.openapi.operation import Operation
from scripts.openapi.tensor_operations import IDEMPOTENCY_KEY
from service.api.calls.description import Json
from service.web.head import REQUEST_ID_HEADER as REQUEST_ID
from service.web.pages.error_pages import Failure
from service.web.repetition import REPLAYED

ETAG: Final = "ETag"
LOCATION: Final = "Location"


def _header(description: str, schema: Json | None = None, *, always: bool = True) -> Json:
    return {"description": description, "required": always, "schema": schema or {"type": "string"}}


#: each by its name; `required` where an answer that may have it always does
HEADERS: Final[Mapping[str, Json]] = {
    ETAG: _header("the version, in quotation marks"),
    REPLAYED: _header(
        "true, where a call with this `Idempotency-Key` was answered so before", {"type": "boolean"}, always=False
    ),
    LOCATION: _header("the path of what is kept"),
    "Retry-After": _header(
        "seconds after which the request may be sent again", {"type": "integer", "format": "int64"}, always=False
    ),
    "WWW-Authenticate": _header("the scheme by which a key is sent"),
    REQUEST_ID: _header("the id that the request came with, or a new one: its line of the server's log has it"),
}


def of_answers(known: Operation) -> Json:
    """Of an operation's answers that are no refusals."""
    replayed = [REPLAYED] if IDEMPOTENCY_KEY in known.parameters else []
    return _references([*known.headers, *replayed, REQUEST_ID])


def of_refusals(failures: Iterable[Failure]) -> Json:
    """Of a response with these refusals."""
    stated = [name for failure in failures if failure.refusal for name in failure.refusal.headers]
    return _references([*stated, REQUEST_ID])


def _references(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
