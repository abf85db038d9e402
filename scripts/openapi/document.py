"""Making of the OpenAPI document: paths from the routes, messages from the schemas, what every call can refuse.

`make docs` makes it, and servers have it from a file. One document, no input and output variants, no nulls: it is
written for the generators of clients.
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
    "Send a computation graph, get gradients back. A graph is a list of nodes; a node's id is its index, and its "
    "operands are earlier nodes. Unknown request fields are refused. The calls that take a graph speak JSON and "
    "safetensors: there the request stands in `__metadata__.request` without its tensors, and these are named by "
    "their place (`feeds.0`, `constants.3`, `cotangents.6`, `tangents.0`, `vectors.1`); the answer likewise. Errors "
    f"are `application/problem+json`; their codes are explained at [{ERRORS}]({ERRORS})."
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
        {"name": "graphs", "description": "Graphs that the server keeps, so that requests can name them."},
        {"name": "tensors", "description": "Tensors that the server keeps, so that requests can name them."},
        {"name": "models", "description": "Registered graphs with names for what goes in and what comes out."},
        {"name": "catalogue", "description": "The ops that a graph may use."},
        {"name": "health", "description": "For whatever watches the server."},
    ],
}
TIMEOUT: Final = 60.0
# In examples: measured, or made, the document would differ at every start.
EXECUTE_MS: Final = 0.2
ETAG: Final = "9f86d081884c7d65"


class _Shown:
    """Examples as a worker answers them, on the graph that all of them share once it is registered."""

    def __init__(self, work: Callable[[Task], Reply]) -> None:
        self._work = work
        register = Task(REGISTER, orjson.dumps(SHARED), REQUEST_ID, TIMEOUT, time.monotonic() + TIMEOUT)
        self._graph = Registered.parse(work(register).body)

    def reply(self, known: Operation, body: bytes) -> Any:
        """What comes back for the body of an example."""
        job = Task(known.call, body, REQUEST_ID, TIMEOUT, time.monotonic() + TIMEOUT, subject=known.subject)
        if known.registered:
            job.graph, job.graph_bytes = self._graph.key, self._graph.record
        return orjson.loads(self._work(job).body)


#: what says who calls; a server without keys takes requests without, so each operation may do without one, too
_SECURITY: Final[Json] = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key, where the server asks for one; whoever runs the server has it.",
    }
}

#: a body in safetensors, as far as a schema can say it
_BINARY: Final[Json] = {"schema": {"type": "string", "format": "binary"}}


def document(
    routes: Sequence[BaseRoute],
    components: Mapping[str, Json],
    work: Callable[[Task], Reply],
    scope_of: Callable[[str, str], KeyScope | None],
) -> Json:
    """The document for these routes and messages; `work` answers the failing examples that it shows.

    `scope_of` a method and a path is what a key has to be good for, where the server asks for keys.
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
            known = operations()[operation["operationId"]]
            _complete(operation, replace(known, failures=(*known.failures, *denials(needed))), shown)
            if needed is None:
                operation["security"] = []
    described["components"] = {
        "schemas": dict(components),
        **shared_refusals(described["paths"]),
        "headers": dict(HEADERS),
        "securitySchemes": _SECURITY,
    }
    return described


def _complete(operation: Json, known: Operation, shown: _Shown) -> None:
    operation["summary"], _, rest = operation.pop("description").partition("\n")
    operation["description"] = " ".join(rest.split()) or operation["summary"]
    if known.parameters:
        operation["parameters"] = list(known.parameters)
    if known.request:
        operation["requestBody"] = _body(known)
    answers = _answers(known, shown)
    operation["responses"] = {
        **{status: _response(meaning, known, answers) for status, meaning in known.statuses.items()},
        **{status: _response(meaning, known) for status, meaning in known.bodiless.items()},
        **_problems(known, shown),
    }


def _response(meaning: str, known: Operation, answers: Json | None = None) -> Json:
    return {"description": meaning, "headers": of_answers(known)} | ({"content": answers} if answers else {})


def _body(known: Operation) -> Json:
    shown = {name: {"value": body} for name, body in known.requests.items()}
    spoken = {JSON: {"schema": _reference(known.request), "examples": shown}}
    return {"required": True, "content": spoken | ({SAFETENSORS: _BINARY} if known.takes_binary else {})}


def _answers(known: Operation, shown: _Shown) -> Json:
    """The answer in each media type that is spoken."""
    return {JSON: _answer(known, shown)} | ({SAFETENSORS: _BINARY} if known.is_binary else {})


def _answer(known: Operation, shown: _Shown) -> Json:
    """What the call answers, with the answer to each example of a request."""
    answers = {name: {"value": _answered(known, body, shown)} for name, body in known.requests.items()}
    return {"schema": _reference(known.answer)} | ({"examples": answers} if answers else {})


def _answered(known: Operation, body: Json, shown: _Shown) -> Json:
    answer: Json = shown.reply(known, orjson.dumps(body))
    if "stats" in answer:
        answer["stats"]["execute_ms"] = EXECUTE_MS
    if "etag" in answer:
        answer["etag"] = ETAG
    return answer


def _problems(known: Operation, shown: _Shown) -> Json:
    """A response for each status, with an example for each code."""
    by_status: defaultdict[int, list[Failure]] = defaultdict(list)
    for failure in known.failures:
        by_status[KINDS[failure.code].status].append(failure)
    return {str(status): _refused(known, by_status[status], shown) for status in sorted(by_status)}


def _refused(known: Operation, failures: Sequence[Failure], shown: _Shown) -> Json:
    examples = {failure.code: _example(known, failure, shown) for failure in failures}
    return {
        "description": ", ".join(examples),
        "headers": of_refusals(failures),
        "content": {PROBLEM: {"schema": _reference("Problem"), "examples": examples}},
    }


def _example(known: Operation, failure: Failure, shown: _Shown) -> Json:
    """An example object; `x-request` is what to send to get it."""
    if failure.refusal is not None:
        problem = dict(failure.refusal.problem(REQUEST_ID))
    else:
        problem = shown.reply(known, failure.raw.encode() if failure.raw is not None else orjson.dumps(failure.body))
    return {"value": problem} | ({"x-request": failure.request} if failure.request else {})


def _reference(message: str) -> Json:
    return {"$ref": f"#/components/schemas/{message}"}


def _version() -> str:
    try:
        return version("gradserve")
    except PackageNotFoundError:
        return "0"
