"""Operations on resident tensors in the OpenAPI document, and the headers that they use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from schemas.graph import Tensor
from schemas.resources import ResidentTensor, TensorList, TensorSummary
from scripts.openapi import examples
from scripts.openapi.examples import by_head, refusal_of
from scripts.openapi.operation import Operation
from service.api.calls.description import MEAN, Json
from service.store.changes import Condition
from service.store.idempotency import under_way
from service.store.tables import require_name, table_full, unknown_tensor
from service.web.head import page_of
from service.web.pages.error_pages import Failure
from service.workers.task import GET_TENSOR, PUT_TENSOR

#: name of the tensor in examples
SUBJECT: Final = "w"
#: etag of no version
STALE: Final = "0000000000000000"
_ABSENT: Final = "nothing"


def _parameter(name: str, where: str, description: str, schema: Json, **more: Any) -> Json:
    return {"name": name, "in": where, "description": description, "schema": schema} | more


_TEXT: Final[Json] = {"type": "string"}
TIMEOUT_MS: Final = _parameter(
    "timeout_ms",
    "query",
    "Timeout in milliseconds. It can only shorten the server's.",
    {"type": "integer", "format": "int64", "minimum": 1},
)
IDEMPOTENCY_KEY: Final = _parameter(
    "Idempotency-Key",
    "header",
    "1 to 255 visible characters that identify this request. If you repeat the request with the same key, the server "
    "returns the first response and stores nothing twice.",
    _TEXT,
)
_LIMIT: Final = _parameter(
    "limit",
    "query",
    "Maximum number of entries in the page.",
    {"type": "integer", "format": "int64", "minimum": 1, "maximum": 1000, "default": 100},
)
_AFTER: Final = _parameter("after", "query", "Value of `next` from the previous page.", _TEXT)
#: parameters of every listing
PAGING: Final = (_LIMIT, _AFTER, TIMEOUT_MS)


def name_of(noun: str, example: str) -> Json:
    """Return the parameter for a name in a path."""
    return _parameter("name", "path", f"Name of {noun}.", _TEXT, required=True, example=example)


def conditions(noun: str) -> tuple[Json, Json]:
    """Return the parameters for conditional requests."""
    of_any = f"Etags in quotation marks: the {noun} must have one of them. `*` accepts any version."
    of_none = f"Etags in quotation marks: the {noun} must have none of them. `*` means that it must not exist."
    return (
        _parameter("If-Match", "header", of_any, _TEXT),
        _parameter("If-None-Match", "header", of_none, _TEXT),
    )


_NAME: Final = name_of("a resident tensor", SUBJECT)
_CONDITIONS: Final = conditions("tensor")
_DURABLE: Final = _parameter(
    "durable", "query", "Whether to write the tensor to disk before responding.", {"type": "boolean", "default": True}
)
_ENCODING: Final = _parameter(
    "encoding", "query", "Encoding of the elements. Default: json.", {"$ref": "#/components/schemas/TensorEncoding"}
)

_PATH: Final = "/v1/tensors/"
_UNKNOWN: Final = by_head(unknown_tensor(_ABSENT), {"path": _PATH + _ABSENT})
_NO_NAME: Final = by_head(refusal_of(lambda: require_name("-w", "the name of a tensor")), {"path": _PATH + "-w"})
_PRECONDITION: Final = by_head(
    refusal_of(lambda: Condition(match=[STALE]).require(_ABSENT, None)),
    {"path": _PATH + _ABSENT, "headers": {"If-Match": f'"{STALE}"'}},
)
_FULL: Final = by_head(table_full("the server keeps 10000 tensors", "at most 10000 tensors"))
_UNDER_WAY: Final = by_head(under_way())
_NO_PAGE: Final = by_head(refusal_of(lambda: page_of(b"limit=0")))
#: failures of every request that stores a resource
KEEPING: Final = (_FULL, _UNDER_WAY, examples.UNCONFIRMED)


def listing_failures(path: str) -> tuple[Failure, ...]:
    """Return the errors of a listing."""
    return (*examples.READING, examples.UNSEEN, replace(_NO_PAGE, head={"path": f"{path}?limit=0"}))


def storing_failures(request: Json) -> tuple[Failure, ...]:
    """Return the additional errors of a call with `store`."""
    stored = {"node": 0, "tensor_id": _ABSENT, "if_match": STALE}
    return (*KEEPING, replace(_PRECONDITION, head={}, body=request | {"store": [stored]}))


def tensor_operations() -> Iterator[tuple[str, Operation]]:
    """Yield all operations on tensors, by id."""
    summary = TensorSummary.__name__
    vector = MEAN["feeds"][0]["tensor"]
    yield (
        PUT_TENSOR,
        Operation(
            summary,
            (
                *examples.uploading_failures(vector),
                replace(_NO_NAME, body=vector),
                replace(_PRECONDITION, body=vector),
                *KEEPING,
            ),
            Tensor.__name__,
            {"vector": vector},
            (_NAME, _DURABLE, TIMEOUT_MS, *_CONDITIONS, IDEMPOTENCY_KEY),
            PUT_TENSOR,
            subject=SUBJECT,
            statuses={"201": "A new tensor was stored", "200": "An existing tensor was replaced"},
            headers=("ETag",),
        ),
    )
    yield (
        GET_TENSOR,
        Operation(
            ResidentTensor.__name__,
            (*examples.ANY, examples.NOT_SPOKEN, _UNKNOWN, _NO_NAME, *examples.WAITING),
            parameters=(_NAME, _ENCODING, TIMEOUT_MS, *_CONDITIONS),
            is_binary=True,
            headers=("ETag",),
            bodiless={"304": "The client has the current version"},
        ),
    )
    yield (
        "deleteTensor",
        Operation(
            summary,
            (*examples.READING, examples.UNSEEN, examples.LATE, _UNKNOWN, _NO_NAME, _PRECONDITION, *KEEPING),
            parameters=(_NAME, TIMEOUT_MS, *_CONDITIONS, IDEMPOTENCY_KEY),
        ),
    )
    yield "listTensors", Operation(TensorList.__name__, listing_failures("/v1/tensors"), parameters=PAGING)
