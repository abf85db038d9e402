"""The OpenAPI document: paths from the routes, messages from the schemas, and for every call what it can refuse.

One document, no input and output variants, no nulls: it is written for the generators of clients.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import orjson
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from service.calls import calls
from service.calls.definition import AnyCall, Json
from service.compute.job import Job, Reply
from service.errors import KINDS
from service.pages import examples
from service.pages.examples import Failure
from service.wire.media import JSON, PROBLEM, SAFETENSORS

DESCRIPTION: Final = (
    "Send a computation graph, get gradients back. A graph is a list of nodes; a node's id is its index, and its "
    "operands are earlier nodes. Unknown request fields are refused. The calls that take a graph speak JSON and "
    "safetensors: there the request stands in `__metadata__.request` without its tensors, and these are named by "
    "their place (`feeds.0`, `constants.3`, `cotangents.6`, `tangents.0`, `vectors.1`); the answer likewise. Errors "
    "are `application/problem+json`; their codes are explained at [/docs/errors](/docs/errors)."
)
ABOUT: Final[Json] = {
    "contact": {"name": "The gradserve authors"},
    "license_info": {"name": "MIT", "url": "https://opensource.org/license/mit"},
    "servers": [{"url": "/", "description": "the server that this document comes from"}],
    "tags": [
        {"name": "compute", "description": "Run a graph."},
        {
            "name": "analysis",
            "description": "What a graph takes; whether its gradients are right; these as a graph.",
        },
        {"name": "catalogue", "description": "The ops that a graph may use."},
        {"name": "health", "description": "For whatever watches the server."},
    ],
}
REQUEST_ID: Final = "6f1c2d7e9a4b4c0f8d3e5a7b9c1d2e3f"
TIMEOUT: Final = 60.0
EXECUTE_MS: Final = 0.2  # in examples: measured, the document would differ at every start

_TIMEOUT: Final = {
    "name": "timeout_ms",
    "in": "query",
    "required": False,
    "description": "milliseconds that this request may take; the server's own limit stays",
    "schema": {"type": "integer", "format": "int64", "minimum": 1},
}
_NAME: Final = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "an op, by its name or any alias, ignoring case",
    "schema": {"type": "string"},
    "example": "matmul",
}


@dataclass(frozen=True)
class Operation:
    """What the document says of a call beyond its path and its docstring."""

    answer: str
    failures: Sequence[Failure]
    request: str = ""
    requests: Mapping[str, Json] = field(default_factory=dict)
    parameters: Sequence[Json] = ()


def _computing(call: AnyCall) -> Operation:
    failing = examples.failures(call)
    return Operation(call.answer.__name__, failing, call.request.__name__, call.examples, (_TIMEOUT,))


@cache
def operations() -> Mapping[str, Operation]:
    """All operations, by their id."""
    return {
        **{name: _computing(call) for name, call in calls().items()},
        "listOps": Operation("Catalogue", examples.READING),
        "getOp": Operation("OpInfo", (*examples.READING, *examples.GET_OP), parameters=(_NAME,)),
        "live": Operation("Health", examples.ANY),
        "ready": Operation("Health", (*examples.ANY, *examples.READY)),
    }


#: a body in safetensors, as far as a schema can say it
_BINARY: Final[Json] = {"schema": {"type": "string", "format": "binary"}}


def document(routes: Sequence[BaseRoute], components: Mapping[str, Json], work: Callable[[Job], Reply]) -> Json:
    """The document for these routes and messages; `work` answers the failing examples that it shows."""
    described: Json = get_openapi(
        title="gradserve",
        version=_version(),
        openapi_version="3.1.0",
        description=DESCRIPTION,
        routes=routes,
        **ABOUT,
    )
    described["security"] = []  # said outright: no call asks for credentials
    for methods in described["paths"].values():
        for operation in methods.values():
            _complete(operation, operations()[operation["operationId"]], work)
    described["components"] = {"schemas": dict(components)}
    return described


def _complete(operation: Json, known: Operation, work: Callable[[Job], Reply]) -> None:
    operation["summary"], _, rest = operation.pop("description").partition("\n")
    operation["description"] = " ".join(rest.split()) or operation["summary"]
    if known.parameters:
        operation["parameters"] = list(known.parameters)
    if known.request:
        operation["requestBody"] = _body(known)
    operation["responses"] = {
        "200": {"description": "The answer", "content": _answers(operation["operationId"], known, work)},
        **_problems(operation["operationId"], known.failures, work),
    }


def _body(known: Operation) -> Json:
    shown = {name: {"summary": name, "value": body} for name, body in known.requests.items()}
    spoken = {JSON: {"schema": _reference(known.request), "examples": shown}, SAFETENSORS: _BINARY}
    return {"required": True, "content": spoken}


def _answers(call: str, known: Operation, work: Callable[[Job], Reply]) -> Json:
    """The answer in each media type that is spoken."""
    return {JSON: _answer(call, known, work)} | ({SAFETENSORS: _BINARY} if known.requests else {})


def _answer(call: str, known: Operation, work: Callable[[Job], Reply]) -> Json:
    """What the call answers, with the answer to each example of a request."""
    shown = {name: {"summary": name, "value": _answered(call, body, work)} for name, body in known.requests.items()}
    return {"schema": _reference(known.answer)} | ({"examples": shown} if shown else {})


def _answered(call: str, body: Json, work: Callable[[Job], Reply]) -> Json:
    answer: Json = orjson.loads(_run(call, orjson.dumps(body), work).body)
    if "stats" in answer:
        answer["stats"]["execute_ms"] = EXECUTE_MS
    return answer


def _problems(call: str, failures: Sequence[Failure], work: Callable[[Job], Reply]) -> Json:
    """A response for each status, with an example for each code."""
    responses: Json = {}
    for failure in sorted(failures, key=lambda f: KINDS[f.code].status):
        status = str(KINDS[failure.code].status)
        blank = {"description": "", "content": {PROBLEM: {"schema": _reference("Problem"), "examples": {}}}}
        response = responses.setdefault(status, blank)
        response["content"][PROBLEM]["examples"][failure.code] = _example(call, failure, work)
        response["description"] = ", ".join(response["content"][PROBLEM]["examples"])
    return responses


def _example(call: str, failure: Failure, work: Callable[[Job], Reply]) -> Json:
    """An example object; `x-request` is what to send to get it."""
    if failure.stated is not None:
        problem = dict(failure.stated.problem(REQUEST_ID))
    else:
        body = failure.raw.encode() if failure.raw is not None else orjson.dumps(failure.body)
        problem = orjson.loads(_run(call, body, work).body)
    example: Json = {"summary": KINDS[failure.code].title, "value": problem}
    return example | ({"x-request": failure.request} if failure.request else {})


def _run(call: str, body: bytes, work: Callable[[Job], Reply]) -> Reply:
    return work(Job(call, body, REQUEST_ID, TIMEOUT, time.monotonic() + TIMEOUT))


def _reference(message: str) -> Json:
    return {"$ref": f"#/components/schemas/{message}"}


def _version() -> str:
    try:
        return version("gradserve")
    except PackageNotFoundError:
        return "0"
