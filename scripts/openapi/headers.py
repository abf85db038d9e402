"""Response headers in the OpenAPI document, and the responses that have them."""

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


#: headers by name; `required` if every response that lists the header has it
HEADERS: Final[Mapping[str, Json]] = {
    ETAG: _header("Version of the resource, in quotation marks."),
    REPLAYED: _header(
        "`true` if this is the stored response to an earlier request with the same `Idempotency-Key`.",
        {"type": "boolean"},
        always=False,
    ),
    LOCATION: _header("Path of the stored resource."),
    "Retry-After": _header(
        "Number of seconds to wait before a retry.", {"type": "integer", "format": "int64"}, always=False
    ),
    "WWW-Authenticate": _header("Authentication scheme for the API key."),
    REQUEST_ID: _header("Id of the request: the one that the client sent, or a new one. The server logs it."),
}


def of_answers(operation: Operation) -> Json:
    """Return the headers of an operation's successful responses."""
    replayed = [REPLAYED] if IDEMPOTENCY_KEY in operation.parameters else []
    return _references([*operation.headers, *replayed, REQUEST_ID])


def of_refusals(failures: Iterable[Failure]) -> Json:
    """Return the headers of a response with these refusals."""
    stated = [name for failure in failures if failure.refusal for name in failure.refusal.headers]
    return _references([*stated, REQUEST_ID])


def _references(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
