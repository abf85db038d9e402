"""All operations in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, get_type_hints

from engine import Limits, graph_id, registry
from schemas.resources import GraphList, GraphSummary, RegisteredGraph, RegisterGraphRequest, without_graph
from scripts.openapi import examples
from scripts.openapi.model_operations import in_use_failure, model_operations
from scripts.openapi.operation import Operation
from scripts.openapi.tensor_operations import (
    IDEMPOTENCY_KEY,
    KEEPING,
    PAGING,
    TIMEOUT_MS,
    listing_failures,
    storing_failures,
    tensor_operations,
)
from service.api.calls import calls
from service.api.calls.description import MEAN, CallDescription, Json
from service.api.graphs import Translator
from service.web.graph_routes import OF_GRAPH
from service.web.pages.error_pages import Failure
from service.workers.task import REGISTER

#: the graph that all examples share, as a registration request
SHARED: Final[Json] = {"graph": MEAN["graph"], "description": "a mean of squares"}

_NAME: Final = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "Name or alias of an op. Case does not matter.",
    "schema": {"type": "string"},
    "example": "matmul",
}


@cache
def operations() -> Mapping[str, Operation]:
    """Return all operations, by id."""
    return {
        **{name: _computing(call) for name, call in calls().items()},
        **dict(_of_graphs()),
        **dict(tensor_operations()),
        **dict(model_operations(_graph_id()["example"])),
        **{f"{name}{OF_GRAPH}": _on_registered(call) for name, call in calls().items()},
        "listOps": Operation("Catalogue", examples.READING, parameters=(TIMEOUT_MS,)),
        "getOp": Operation("OpInfo", (*examples.READING, *examples.GET_OP), parameters=(_NAME, TIMEOUT_MS)),
        "live": Operation("Health", examples.ANY),
        "ready": Operation("Health", (*examples.ANY, *examples.READY)),
    }


def _computing(call: type[CallDescription]) -> Operation:
    failing, message = (*examples.failures(call), *_of_store(call)), call.request.__name__
    parameters = (TIMEOUT_MS, IDEMPOTENCY_KEY) if _stores(call) else (TIMEOUT_MS,)
    return Operation(call.answer.__name__, failing, message, call.examples, parameters, call.name, is_binary=True)


def _stores(call: type[CallDescription]) -> bool:
    """Return whether a call can store values that it computes."""
    return "store" in get_type_hints(call.request)


def _of_store(call: type[CallDescription]) -> tuple[Failure, ...]:
    return storing_failures(next(iter(call.examples.values()))) if _stores(call) else ()


def _on_registered(call: type[CallDescription]) -> Operation:
    return Operation(
        call.answer.__name__,
        (
            *examples.failures_on_registered(call),
            examples.unknown_graph(f"/v1/graphs/{{graph_id}}/{call.name}"),
            *map(examples.on_registered, _of_store(call)),
        ),
        without_graph(call.request).__name__,
        {name: examples.without_its_graph(body) for name, body in call.examples.items()},
        (_graph_id(), TIMEOUT_MS, IDEMPOTENCY_KEY) if _stores(call) else (_graph_id(), TIMEOUT_MS),
        call.name,
        registered=True,
        is_binary=True,
    )


def _of_graphs() -> Iterator[tuple[str, Operation]]:
    """Yield the operations on registered graphs, except calls."""
    statuses = {"201": "The graph was registered", "200": "The graph was already registered"}
    failing, message = (*examples.registration_failures(), *KEEPING[1:]), RegisterGraphRequest.__name__
    full_record, summary = RegisteredGraph.__name__, GraphSummary.__name__
    named = (TIMEOUT_MS, IDEMPOTENCY_KEY)
    shown = {"mean of squares": SHARED}
    yield (
        REGISTER,
        Operation(full_record, failing, message, shown, named, REGISTER, statuses=statuses, headers=("Location",)),
    )
    yield "listGraphs", Operation(GraphList.__name__, listing_failures("/v1/graphs"), parameters=PAGING)
    unknown = (*examples.READING, examples.UNSEEN, examples.unknown_graph("/v1/graphs/{graph_id}"))
    yield "getGraph", Operation(full_record, unknown, parameters=(_graph_id(), TIMEOUT_MS))
    deleting = (*unknown, in_use_failure(), examples.LATE, *KEEPING)
    yield "deleteGraph", Operation(summary, deleting, parameters=(_graph_id(), *named))


@cache
def _graph_id() -> Json:
    shared = Translator(registry(), Limits()).program(SHARED["graph"], {})
    return {
        "name": "graph_id",
        "in": "path",
        "required": True,
        "description": "Id of a registered graph.",
        "schema": {"type": "string"},
        "example": graph_id(shared),
    }
