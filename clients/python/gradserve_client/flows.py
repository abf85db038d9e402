"""Calls as generators: they yield the requests to send and the waits, and return the result.

A driver, synchronous or asyncio, performs them and sends the responses back in. So all logic of a call, such as retries
and registration, is written once, and does no I/O.
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
from gradserve_client.retries import Attempts, Deadline, Policy
from gradserve_client.tensors import ArrayLike

T = TypeVar("T")
A = TypeVar("A", bound=Answer)


class Send(NamedTuple):
    """A request to send. The driver sends the response back into the flow."""

    request: Request
    deadline: Deadline


class Wait(NamedTuple):
    """A pause before the next attempt, in seconds."""

    seconds: float


Flow = Generator[Send | Wait, Response | None, T]
_KEY: Final = "Idempotency-Key"


class Exchange:
    """One request and all of its attempts until the deadline, under the same Idempotency-Key."""

    def __init__(self, policy: Policy, deadline: Deadline, request: Request, idempotency: bool | None = None) -> None:
        self.has_key = request.stores and (policy.idempotency if idempotency is None else idempotency)
        self.request = request.with_header(_KEY, policy.surroundings.new_key()) if self.has_key else request
        self._deadline = deadline
        self._attempts = Attempts(policy, deadline, may_retry=self.has_key or not request.stores)

    def run(self) -> Flow[Response]:
        """Retry until there is a response. Raises the last error if there is none."""
        while True:
            try:
                response = yield Send(self.request, self._deadline)
                assert response is not None, "what is sent is answered"
                return response.checked()
            except GradserveError as error:
                wait = self._attempts.wait_after(error)
            yield Wait(wait)


def compute(
    policy: Policy, call: str, answer_class: type[A], graph: Graph | Registered, options: Mapping[str, Any]
) -> Flow[A]:
    """Run a call on a graph or a registered graph, which is registered first if the server does not know it."""
    deadline = policy.deadline(options.get("timeout", policy.timeout))
    local_graph = graph.graph if isinstance(graph, Registered) else graph
    registered_nodes = graph.node_count if isinstance(graph, Registered) else None
    request = requests.call_request(call, local_graph, options, registered_nodes=registered_nodes)
    exchange = Exchange(policy, deadline, request, options.get("idempotency"))
    try:
        if isinstance(graph, Registered):
            response = yield from _on_registered(policy, deadline, graph, exchange)
        else:
            response = yield from exchange.run()
    except Refusal as error:
        _add_context(error, local_graph, has_key=exchange.has_key)
        raise
    return answer_class.of(response, local_graph)


def _on_registered(policy: Policy, deadline: Deadline, graph: Registered, exchange: Exchange) -> Flow[Response]:
    # The server may drop a graph at any time: a call that does not find it registers it again, once.
    if not graph.fields:
        yield from _register(policy, deadline, graph)
    exchange.request = exchange.request.on_graph(graph.graph_id)
    try:
        return (yield from exchange.run())
    except NotFoundError as error:
        if not _is_graph_missing(error):
            raise
    yield from _register(policy, deadline, graph)
    return (yield from exchange.run())


def _register(policy: Policy, deadline: Deadline, graph: Registered) -> Flow[None]:
    response = yield from Exchange(policy, deadline, graph.registration).run()
    graph.fields = read(lambda answer: answer | {"graph_id": str(answer["graph_id"])}, response.json())


def _is_graph_missing(error: NotFoundError) -> bool:
    """Return whether the error is about the graph itself. An error about a missing tensor names its node."""
    return error.code == "not_found" and error.node is None and error.pointer is None


def _add_context(error: Refusal, graph: Graph, *, has_key: bool) -> None:
    """Add the client's knowledge to the report: the lines that wrote the nodes, and that it made an Idempotency-Key."""
    if error.node is not None and 0 <= error.node < len(graph):
        error.add(f"node {error.node} was written at {graph.find(error.node).line}")
    if error.function is not None and 0 <= error.function < len(graph.functions):
        nodes = graph.functions[error.function].nodes
        if error.function_node is not None and 0 <= error.function_node < len(nodes):
            line = nodes.find(error.function_node).line
            error.add(f"node {error.function_node} of function {error.function} was written at {line}")
    if has_key and isinstance(error, GraphError) and error.code == "over_budget":
        error.add(
            "the client sent an Idempotency-Key, so that a retry does nothing twice; if the response is too long to be "
            "stored for the key, send none: idempotency=False"
        )


def register(policy: Policy, graph: Registered) -> Flow[None]:
    """Register a graph on the server."""
    try:
        yield from _register(policy, policy.deadline(policy.timeout), graph)
    except Refusal as error:
        _add_context(error, graph.graph, has_key=False)
        raise


def registered(policy: Policy, graph_id: str) -> Flow[Registered]:
    """Fetch a registered graph."""
    return (yield from send_and_read(policy, requests.graph(graph_id), _read_registered))


def _read_registered(answer: dict[str, Any]) -> Registered:
    graph = Graph.from_wire(answer["graph"])
    return Registered(graph, requests.registration(graph, answer.get("description", ""), None), answer)


def _exchange(policy: Policy, request: Request) -> Flow[Response]:
    """Run a request that is a call by itself."""
    return (yield from Exchange(policy, policy.deadline(policy.timeout), request).run())


def put(policy: Policy, name: str, array: ArrayLike, options: Mapping[str, Any]) -> Flow[Resident]:
    """Store a tensor on the server."""
    response = yield from _exchange(policy, requests.put(name, array, **options))
    return read(Resident.from_wire, response.json())


def get(policy: Policy, name: str, options: Mapping[str, Any]) -> Flow[ResidentTensor | None]:
    """Download a tensor; None if it is still the version that `if_none_match` names."""
    response = yield from _exchange(policy, requests.get(name, **options))
    if response.status == 304:
        return None
    etag, array = response.tensor()
    return ResidentTensor(Resident(name, etag, array.dtype.name, array.shape, array.nbytes), array)


def put_model(
    policy: Policy, name: str, graph: Registered | str, model_fields: Mapping[str, Any], conditions: Mapping[str, Any]
) -> Flow[ModelSummary]:
    """Store a model of a registered graph, or of a graph id."""
    deadline = policy.deadline(policy.timeout)
    if isinstance(graph, str):
        request = requests.put_model(name, {"graph_id": graph, **model_fields}, **conditions)
        response = yield from Exchange(policy, deadline, request).run()
    else:
        response = yield from _put_on_registered(policy, deadline, name, graph, model_fields, conditions)
    return read(ModelSummary.from_wire, response.json())


def _put_on_registered(
    policy: Policy,
    deadline: Deadline,
    name: str,
    graph: Registered,
    model_fields: Mapping[str, Any],
    conditions: Mapping[str, Any],
) -> Flow[Response]:
    """Store a model of a registered graph, which is registered first if the server does not know it."""
    try:
        if not graph.fields:
            yield from _register(policy, deadline, graph)
        request = requests.put_model(name, {"graph_id": graph.graph_id, **model_fields}, **conditions)
        exchange = Exchange(policy, deadline, request)
        try:
            return (yield from exchange.run())
        except NotFoundError as error:
            if error.pointer != "/graph_id":
                raise
        yield from _register(policy, deadline, graph)
        return (yield from exchange.run())
    except Refusal as error:
        _add_context(error, graph.graph, has_key=False)
        raise


def send_and_read(policy: Policy, request: Request, reader: Callable[[dict[str, Any]], T]) -> Flow[T]:
    """Run a request and apply a reader to the JSON of its response."""
    response = yield from _exchange(policy, request)
    return read(reader, response.json())


class Page(NamedTuple):
    """One page of a listing. `next` is the cursor of the next page, or None."""

    entries: list[dict[str, Any]]
    next: str | None


def page(policy: Policy, kind: str, limit: int | None, after: str | None) -> Flow[Page]:
    """Fetch one page of the listing of graphs, tensors or models."""
    request = requests.page(f"/v1/{kind}", limit, after)
    return (yield from send_and_read(policy, request, lambda answer: Page(answer[kind], answer.get("next"))))
