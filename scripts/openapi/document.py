"""Generate the OpenAPI document: paths from the routes, messages from the schemas, and the errors of every call.

`make docs` writes it to a file, which servers read. Client generators need one schema per message, without input and
output variants and without nulls.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import orjson
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from scripts.openapi.examples import denials
from scripts.openapi.headers import HEADERS, of_answers, of_refusals
from scripts.openapi.operation import Operation
from scripts.openapi.operations import SHARED, operations
from scripts.openapi.refusals import shared_refusals
from service.api.calls.description import Json
from service.api.media import JSON, PROBLEM, SAFETENSORS
from service.core.errors import ERRORS, KINDS
from service.core.keys.caller import KeyScope
from service.store.tables import Registered
from service.web.pages.error_pages import REQUEST_ID, Failure
from service.workers.task import REGISTER, Reply, Task

DESCRIPTION: Final = (
    "Send a computation graph, get gradients back. A graph is a list of nodes. The id of a node is its index, and its "
    "operands are ids of earlier nodes. Unknown request fields are errors. Calls that take a graph accept and return "
    "JSON or safetensors. In safetensors, `__metadata__.request` is the request without its tensors, and tensors are "
    "named by field and node (`feeds.0`, `constants.3`, `cotangents.6`, `tangents.0`, `vectors.1`). Responses have the "
    "same form, with `__metadata__.response`. Errors are `application/problem+json` reports; "
    f"[{ERRORS}]({ERRORS}) explains their codes."
)
ABOUT: Final[Json] = {
    "contact": {"name": "The gradserve authors"},
    "license_info": {"name": "MIT", "url": "https://opensource.org/license/mit"},
    "servers": [{"url": "/", "description": "The server that sent this document."}],
    "tags": [
        {"name": "compute", "description": "Run a graph."},
        {
            "name": "analysis",
            "description": "Estimate the cost of a graph, check its gradients, or get them as a graph.",
        },
        {"name": "graphs", "description": "Graphs that are stored on the server, so that requests can refer to them."},
        {
            "name": "tensors",
            "description": "Tensors that are stored on the server, so that requests can refer to them.",
        },
        {"name": "models", "description": "Registered graphs with named inputs and outputs."},
        {"name": "catalogue", "description": "The ops that graphs can use."},
        {"name": "health", "description": "Health checks for monitoring."},
    ],
}
TIMEOUT: Final = 60.0
# Fixed values in examples: real ones would make the document differ in every build.
EXECUTE_MS: Final = 0.2
ETAG: Final = "9f86d081884c7d65"


class _Shown:
    """Responses of a worker to the examples, on the shared graph if it is registered."""

    def __init__(self, work: Callable[[Task], Reply]) -> None:
        self._work = work
        register = Task(REGISTER, orjson.dumps(SHARED), REQUEST_ID, TIMEOUT, time.monotonic() + TIMEOUT)
        self._graph = Registered.parse(work(register).body)

    def reply(self, operation: Operation, body: bytes) -> Any:
        """Return the response to the body of an example."""
        job = Task(operation.call, body, REQUEST_ID, TIMEOUT, time.monotonic() + TIMEOUT, subject=operation.subject)
        if operation.registered:
            job.graph, job.graph_bytes = self._graph.key, self._graph.record
        return orjson.loads(self._work(job).body)


#: authentication by key; it is optional for each operation, since a server without keys takes requests without one
_SECURITY: Final[Json] = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, if the server requires one. Ask the operator of the server for a key.",
    }
}

#: name of the default response of every operation, so that generators make one type of error
_ANY_REFUSAL: Final = "Refused"
#: a body in safetensors, as far as a schema can describe it
_BINARY: Final[Json] = {"schema": {"type": "string", "format": "binary"}}


def document(
    routes: Sequence[BaseRoute],
    components: Mapping[str, Json],
    work: Callable[[Task], Reply],
    scope_of: Callable[[str, str], KeyScope | None],
) -> Json:
    """Return the document of these routes and messages. `work` computes the responses to the examples.

    `scope_of` returns the scope that a key needs for a method and a path.
    """
    described: Json = get_openapi(
        title="gradserve",
        version=_version(),
        openapi_version="3.1.0",
        description=DESCRIPTION,
        routes=routes,
        **ABOUT,
    )
    described["security"] = [{}, {"key": []}]
    shown = _Shown(work)
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            needed = scope_of(method.upper(), path)
            details = operations()[operation["operationId"]]
            _complete(operation, replace(details, failures=(*details.failures, *denials(needed))), shown)
            if needed is None:
                operation["security"] = []
    refusals = shared_refusals(described["paths"])
    refusals["responses"][_ANY_REFUSAL] = {
        "description": "Any other error.",
        "headers": of_refusals(()),
        "content": {PROBLEM: {"schema": _reference("Problem")}},
    }
    for operation in (operation for methods in described["paths"].values() for operation in methods.values()):
        operation["responses"]["default"] = {"$ref": f"#/components/responses/{_ANY_REFUSAL}"}
    described["components"] = {
        "schemas": dict(components),
        **refusals,
        "headers": dict(HEADERS),
        "securitySchemes": _SECURITY,
    }
    return described


def _complete(operation: Json, details: Operation, shown: _Shown) -> None:
    operation["summary"], _, rest = operation.pop("description").partition("\n")
    operation["description"] = " ".join(rest.split()) or operation["summary"]
    if details.parameters:
        operation["parameters"] = list(details.parameters)
    if details.request:
        operation["requestBody"] = _body(details)
    answers = _answers(details, shown)
    operation["responses"] = {
        **{status: _response(meaning, details, answers) for status, meaning in details.statuses.items()},
        **{status: _response(meaning, details) for status, meaning in details.bodiless.items()},
        **_problems(details, shown),
    }


def _response(meaning: str, details: Operation, answers: Json | None = None) -> Json:
    return {"description": meaning, "headers": of_answers(details)} | ({"content": answers} if answers else {})


def _body(details: Operation) -> Json:
    shown = {name: {"value": body} for name, body in details.requests.items()}
    content = {JSON: {"schema": _reference(details.request), "examples": shown}}
    return {"required": True, "content": content | ({SAFETENSORS: _BINARY} if details.takes_binary else {})}


def _answers(details: Operation, shown: _Shown) -> Json:
    """Return the response in each of its media types."""
    return {JSON: _answer(details, shown)} | ({SAFETENSORS: _BINARY} if details.is_binary else {})


def _answer(details: Operation, shown: _Shown) -> Json:
    """Return the schema of a response, with the response to each example request."""
    answers = {name: {"value": _answered(details, body, shown)} for name, body in details.requests.items()}
    return {"schema": _reference(details.answer)} | ({"examples": answers} if answers else {})


def _answered(details: Operation, body: Json, shown: _Shown) -> Json:
    answer: Json = shown.reply(details, orjson.dumps(body))
    if "stats" in answer:
        answer["stats"]["execute_ms"] = EXECUTE_MS
    if "etag" in answer:
        answer["etag"] = ETAG
    return answer


def _problems(details: Operation, shown: _Shown) -> Json:
    """Return a response for each status, with an example for each code."""
    by_status: defaultdict[int, list[Failure]] = defaultdict(list)
    for failure in details.failures:
        by_status[KINDS[failure.code].status].append(failure)
    return {str(status): _refused(details, by_status[status], shown) for status in sorted(by_status)}


def _refused(details: Operation, failures: Sequence[Failure], shown: _Shown) -> Json:
    examples = {failure.code: _example(details, failure, shown) for failure in failures}
    return {
        "description": ", ".join(examples),
        "headers": of_refusals(failures),
        "content": {PROBLEM: {"schema": _reference("Problem"), "examples": examples}},
    }


def _example(details: Operation, failure: Failure, shown: _Shown) -> Json:
    """Return an example object. Its `x-request` is a request that causes the error."""
    if failure.refusal is not None:
        problem = dict(failure.refusal.problem(REQUEST_ID))
    else:
        problem = shown.reply(details, failure.raw.encode() if failure.raw is not None else orjson.dumps(failure.body))
    return {"value": problem} | ({"x-request": failure.request} if failure.request else {})


def _reference(message: str) -> Json:
    return {"$ref": f"#/components/schemas/{message}"}


def _version() -> str:
    try:
        return version("gradserve")
    except PackageNotFoundError:
        return "0"
