"""What the OpenAPI document says of each operation beyond its path and its docstring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from engine import Limits, graph_id, registry
from schemas.registered import GraphList, GraphSummary, RegisteredGraph, without_graph
from service.calls import calls
from service.calls.definition import AnyCall, Json
from service.calls.sample import MEAN
from service.compute.registration import REGISTER, Registration
from service.pages import examples
from service.pages.examples import Failure
from service.wire.translate import Translator

#: what the id of an operation on a registered graph ends with, behind the name of the call
OF_GRAPH: Final = "OfGraph"
#: the graph that all examples share, as it is registered
SHARED: Final[Json] = {"graph": MEAN["graph"], "description": "a mean of squares"}

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
    """What there is to say.

    `call` names the job that answers the examples, on the shared graph where that is `registered`. `statuses` are
    those of its answers, each with what it means; `is_binary`, whether they come as safetensors, too.
    """

    answer: str
    failures: Sequence[Failure]
    request: str = ""
    requests: Mapping[str, Json] = field(default_factory=dict)
    parameters: Sequence[Json] = ()
    call: str = ""
    registered: bool = False
    statuses: Mapping[str, str] = field(default_factory=lambda: {"200": "The answer"})
    is_binary: bool = False


@cache
def operations() -> Mapping[str, Operation]:
    """All operations, by their id."""
    return {
        **{name: _computing(call) for name, call in calls().items()},
        **dict(_of_graphs()),
        **{f"{name}{OF_GRAPH}": _on_registered(call) for name, call in calls().items()},
        "listOps": Operation("Catalogue", examples.READING),
        "getOp": Operation("OpInfo", (*examples.READING, *examples.GET_OP), parameters=(_NAME,)),
        "live": Operation("Health", examples.ANY),
        "ready": Operation("Health", (*examples.ANY, *examples.READY)),
    }


def _computing(call: AnyCall) -> Operation:
    failing, message = examples.failures(call), call.request.__name__
    answer = call.answer.__name__
    return Operation(answer, failing, message, call.examples, (_TIMEOUT,), call.name, is_binary=True)


def _on_registered(call: AnyCall) -> Operation:
    return Operation(
        call.answer.__name__,
        (*examples.failures_on_registered(call), examples.unknown_graph(f"/v1/graphs/{{graph_id}}/{call.name}")),
        without_graph(call.request).__name__,
        {name: examples.without_its_graph(body) for name, body in call.examples.items()},
        (_graph_id(), _TIMEOUT),
        call.name,
        registered=True,
        is_binary=True,
    )


def _of_graphs() -> Iterator[tuple[str, Operation]]:
    """What is done with registered graphs, beside calls."""
    kept = {"201": "The graph is kept", "200": "The graph was kept already"}
    failing, message = examples.registration_failures(), Registration.request.__name__
    whole, summary = RegisteredGraph.__name__, GraphSummary.__name__
    yield REGISTER, Operation(whole, failing, message, {"a graph": SHARED}, (_TIMEOUT,), REGISTER, statuses=kept)
    yield "listGraphs", Operation(GraphList.__name__, examples.READING)
    unknown = (*examples.READING, examples.unknown_graph("/v1/graphs/{graph_id}"))
    yield "getGraph", Operation(whole, unknown, parameters=(_graph_id(),))
    yield "deleteGraph", Operation(summary, unknown, parameters=(_graph_id(),))


@cache
def _graph_id() -> Json:
    shared = Translator(registry(), Limits()).program(SHARED["graph"], {})
    return {
        "name": "graph_id",
        "in": "path",
        "required": True,
        "description": "the id of a registered graph",
        "schema": {"type": "string"},
        "example": graph_id(shared),
    }
