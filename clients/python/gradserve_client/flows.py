"""Calls from their beginning to their end, as generators that ask for what is I/O: requests to be sent, and waits.

What drives them, with or without asyncio, does these and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from gradserve_client import requests
from gradserve_client.answers import Answer, Response, read
from gradserve_client.errors import GradserveError, GraphError, NotFoundError, Refusal
from gradserve_client.graph import Graph
from gradserve_client.models import ModelSummary
from gradserve_client.registered import Registered
from gradserve_client.requests import Request
from gradserve_client.resident import Resident, ResidentTensor
from gradserve_client.retries import Deadline, Policy, Tries
from gradserve_client.tensors import ArrayLike

T = TypeVar("T")
A = TypeVar("A", bound=Answer)


class Send(NamedTuple):
    """A request is to be sent; what comes back is the response."""

    request: Request
    deadline: Deadline


class Wait(NamedTuple):
    """Time is to pass."""

    seconds: float


Flow = Generator[Send | Wait, Response | None, T]
_KEY: Final = "Idempotency-Key"


class Exchange:
    """A request with all of its tries, under one key, until the deadline."""

    def __init__(self, policy: Policy, deadline: Deadline, request: Request, idempotency: bool | None = None) -> None:
        self.has_key = request.keeps and (policy.idempotency if idempotency is None else idempotency)
        self.request = request.with_header(_KEY, policy.surroundings.new_key()) if self.has_key else request
        self._deadline = deadline
        self._tries = Tries(policy, deadline, may_repeat=self.has_key or not request.keeps)

    def run(self) -> Flow[Response]:
        """Try until there is an answer. Raises the last error where there is none."""
        while True:
            try:
                response = yield Send(self.request, self._deadline)
                assert response is not None, "what is sent is answered"
                return response.checked()
            except GradserveError as error:
                wait = self._tries.wait_after(error)
            yield Wait(wait)


def compute(policy: Policy, call: str, kind: type[A], graph: Graph | Registered, asked: Mapping[str, Any]) -> Flow[A]:
    """A call on a graph, or on one that is registered: that is done first where the server does not know it."""
    deadline = policy.deadline(asked.get("timeout", policy.timeout))
    stated = graph.graph if isinstance(graph, Registered) else graph
    registered_nodes = graph.node_count if isinstance(graph, Registered) else None
    request = requests.computing(call, stated, asked, registered_nodes=registered_nodes)
    exchange = Exchange(policy, deadline, request, asked.get("idempotency"))
    try:
        if isinstance(graph, Registered):
            response = yield from _on_registered(policy, deadline, graph, exchange)
        else:
            response = yield from exchange.run()
    except Refusal as error:
        _explain(error, stated, has_key=exchange.has_key)
        raise
    return kind.of(response, stated)


def _on_registered(policy: Policy, deadline: Deadline, graph: Registered, exchange: Exchange) -> Flow[Response]:
    if not graph.fields:
        yield from _register(policy, deadline, graph)
    exchange.request = exchange.request.on_graph(graph.graph_id)
    try:
        return (yield from exchange.run())
    except NotFoundError as error:
        if not _is_of_the_graph(error):
            raise
    yield from _register(policy, deadline, graph)
    return (yield from exchange.run())


def _register(policy: Policy, deadline: Deadline, graph: Registered) -> Flow[None]:
    response = yield from Exchange(policy, deadline, graph.registration).run()
    graph.fields = read(lambda answer: answer | {"graph_id": str(answer["graph_id"])}, response.json())


def _is_of_the_graph(error: NotFoundError) -> bool:
    """Whether it is the graph that is not found: a tensor is named by its node."""
    return error.code == "not_found" and error.node is None and error.pointer is None


def _explain(error: Refusal, graph: Graph, *, has_key: bool) -> None:
    """What the client knows beside the report: the lines that wrote nodes, and that it made a key."""
    if error.node is not None and 0 <= error.node < len(graph):
        error.add(f"node {error.node} was written at {graph.find(error.node).line}")
    if error.function is not None and 0 <= error.function < len(graph.functions):
        nodes = graph.functions[error.function].nodes
        if error.function_node is not None and 0 <= error.function_node < len(nodes):
            line = nodes.find(error.function_node).line
            error.add(f"node {error.function_node} of function {error.function} was written at {line}")
    if has_key and isinstance(error, GraphError) and error.code == "over_budget":
        error.add(
            "where it is the answer that is too long to be given again: the client made an Idempotency-Key, so that "
            "nothing is done twice, and makes none with idempotency=False"
        )


def register(policy: Policy, graph: Registered) -> Flow[None]:
    """Have the server keep a graph."""
    try:
        yield from _register(policy, policy.deadline(policy.timeout), graph)
    except Refusal as error:
        _explain(error, graph.graph, has_key=False)
        raise


def registered(policy: Policy, graph_id: str) -> Flow[Registered]:
    """A graph that the server keeps already."""
    return (yield from answered(policy, requests.graph(graph_id), _registered))


def _registered(answer: dict[str, Any]) -> Registered:
    graph = Graph.from_wire(answer["graph"])
    return Registered(graph, requests.registration(graph, answer.get("description", ""), None), answer)


def _once(policy: Policy, request: Request) -> Flow[Response]:
    """The answer to a request that is a call by itself."""
    return (yield from Exchange(policy, policy.deadline(policy.timeout), request).run())


def put(policy: Policy, name: str, array: ArrayLike, asked: Mapping[str, Any]) -> Flow[Resident]:
    """Have the server keep a tensor."""
    response = yield from _once(policy, requests.put(name, array, **asked))
    return read(Resident.from_wire, response.json())


def get(policy: Policy, name: str, asked: Mapping[str, Any]) -> Flow[ResidentTensor | None]:
    """A tensor that the server keeps; None where that is the one which `if_none_match` names."""
    response = yield from _once(policy, requests.get(name, **asked))
    if response.status == 304:
        return None
    etag, array = response.tensor()
    return ResidentTensor(Resident(name, etag, array.dtype.name, array.shape, array.nbytes), array)


def put_model(
    policy: Policy, name: str, graph: Registered | str, stated: Mapping[str, Any], conditions: Mapping[str, Any]
) -> Flow[ModelSummary]:
    """Have the server keep a model of a graph, or of one by its id."""
    deadline = policy.deadline(policy.timeout)
    if isinstance(graph, str):
        request = requests.put_model(name, {"graph_id": graph, **stated}, **conditions)
        response = yield from Exchange(policy, deadline, request).run()
    else:
        response = yield from _put_of_registered(policy, deadline, name, graph, stated, conditions)
    return read(ModelSummary.from_wire, response.json())


def _put_of_registered(
    policy: Policy,
    deadline: Deadline,
    name: str,
    graph: Registered,
    stated: Mapping[str, Any],
    conditions: Mapping[str, Any],
) -> Flow[Response]:
    """The same, of a graph that is registered first where the server does not know it."""
    try:
        if not graph.fields:
            yield from _register(policy, deadline, graph)
        request = requests.put_model(name, {"graph_id": graph.graph_id, **stated}, **conditions)
        exchange = Exchange(policy, deadline, request)
        try:
            return (yield from exchange.run())
        except NotFoundError as error:
            if error.pointer != "/graph_id":
                raise
        yield from _register(policy, deadline, graph)
        return (yield from exchange.run())
    except Refusal as error:
        _explain(error, graph.graph, has_key=False)
        raise


def answered(policy: Policy, request: Request, reader: Callable[[dict[str, Any]], T]) -> Flow[T]:
    """What is read in the answer to a request."""
    response = yield from _once(policy, request)
    return read(reader, response.json())


class Page(NamedTuple):
    """A part of a listing; `next` is what the one behind it begins after."""

    entries: list[dict[str, Any]]
    next: str | None


def page(policy: Policy, kind: str, limit: int | None, after: str | None) -> Flow[Page]:
    """A part of the listing of graphs, tensors or models."""
    request = requests.page(f"/v1/{kind}", limit, after)
    return (yield from answered(policy, request, lambda answer: Page(answer[kind], answer.get("next"))))
