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
from gradserve_client.registered import Registered
from gradserve_client.requests import Request
from gradserve_client.resident import Resident, ResidentTensor
from gradserve_client.retries import Deadline, Policy, Tries
from gradserve_client.tensors import ArrayLike, Form

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
    """One call: a request with all of its tries, under one deadline and one key."""

    def __init__(self, policy: Policy, request: Request, asked: Mapping[str, Any] | None = None) -> None:
        asked = asked or {}
        self._policy = policy
        self._deadline = Deadline(asked.get("timeout", policy.timeout), policy.surroundings.clock)
        self.has_key = request.keeps and asked.get("idempotency", policy.idempotency)
        self._request = request.with_header(_KEY, policy.surroundings.new_key()) if self.has_key else request
        self._tries = self._tries_of(request, may_repeat=self.has_key or not request.keeps)

    def _tries_of(self, request: Request, *, may_repeat: bool) -> Tries:
        return Tries(self._policy, self._deadline, may_repeat=may_repeat)

    def run(self) -> Flow[Response]:
        """Try until there is an answer. Raises the last error where there is none."""
        return (yield from self._repeated(self._request, self._tries))

    def before(self, request: Request) -> Flow[Response]:
        """Something that has to be done first, with tries of its own."""
        return (yield from self._repeated(request, self._tries_of(request, may_repeat=True)))

    def _repeated(self, request: Request, tries: Tries) -> Flow[Response]:
        while True:
            try:
                response = yield Send(request, self._deadline)
                assert response is not None, "what is sent is answered"
                return response.checked()
            except GradserveError as error:
                wait = tries.wait_after(error)
            yield Wait(wait)


def compute(policy: Policy, call: str, kind: type[A], graph: Graph | Registered, asked: Mapping[str, Any]) -> Flow[A]:
    """A call on a graph; on a registered one that the server has forgotten, once more when it knows it again."""
    registered = graph if isinstance(graph, Registered) else None
    stated = registered.graph if registered else graph
    assert isinstance(stated, Graph)
    request = requests.computing(call, stated, asked, registered.graph_id if registered else None)
    exchange = Exchange(policy, request, asked)
    try:
        try:
            response = yield from exchange.run()
        except NotFoundError as error:
            if registered is None or not _is_of_the_graph(error):
                raise
            yield from exchange.before(registered.registration)
            response = yield from exchange.run()
    except Refusal as error:
        _explain(error, stated, has_key=exchange.has_key)
        raise
    return kind.of(response, stated)


def _is_of_the_graph(error: NotFoundError) -> bool:
    """Whether it is the graph that is not found: a tensor is named by its node."""
    return error.code == "not_found" and error.node is None and error.pointer is None


def _explain(error: Refusal, graph: Graph, *, has_key: bool) -> None:
    """What the client knows beside the report: the line that wrote a node, and that it made a key."""
    if error.node is not None and 0 <= error.node < len(graph):
        error.add(f"node {error.node} was written at {graph.find(error.node).line}")
    if has_key and isinstance(error, GraphError) and error.code == "over_budget":
        error.add(
            "where it is the answer that is too long to be given again: the client made an Idempotency-Key, so that "
            "nothing is done twice, and makes none with idempotency=False"
        )


def register(policy: Policy, graph: Graph, description: str, form: Form | None) -> Flow[Registered]:
    """Have the server keep a graph."""
    request = requests.registration(graph, description, form)
    try:
        response = yield from Exchange(policy, request).run()
    except Refusal as error:
        _explain(error, graph, has_key=False)
        raise
    return read(lambda answer: Registered(graph, request, answer), response.json())


def registered(policy: Policy, graph_id: str) -> Flow[Registered]:
    """A graph that the server keeps already."""
    response = yield from Exchange(policy, requests.graph(graph_id)).run()
    return read(_registered, response.json())


def _registered(answer: dict[str, Any]) -> Registered:
    graph = Graph.from_wire(answer["graph"])
    return Registered(graph, requests.registration(graph, answer.get("description", ""), None), answer)


def put(policy: Policy, name: str, array: ArrayLike, asked: Mapping[str, Any]) -> Flow[Resident]:
    """Have the server keep a tensor."""
    response = yield from Exchange(policy, requests.put(name, array, **asked)).run()
    return read(Resident.from_wire, response.json())


def get(policy: Policy, name: str, asked: Mapping[str, Any]) -> Flow[ResidentTensor | None]:
    """A tensor that the server keeps; None where that is the one which `if_none_match` names."""
    response = yield from Exchange(policy, requests.get(name, **asked)).run()
    if response.status == 304:
        return None
    etag, array = response.tensor()
    return ResidentTensor(Resident(name, etag, array.dtype.name, array.shape, array.nbytes), array)


def answered(policy: Policy, request: Request, reader: Callable[[dict[str, Any]], T]) -> Flow[T]:
    """What is read in the answer to a request."""
    response = yield from Exchange(policy, request).run()
    return read(reader, response.json())


class Page(NamedTuple):
    """A part of a listing; `next` is what the one behind it begins after."""

    entries: list[dict[str, Any]]
    next: str | None


def page(policy: Policy, kind: str, limit: int | None, after: str | None) -> Flow[Page]:
    """A part of the listing of graphs or tensors."""
    request = requests.page(f"/v1/{kind}", limit, after)
    return (yield from answered(policy, request, lambda answer: Page(answer[kind], answer.get("next"))))
