"""The client: calls that wait for their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, Unpack, cast

import httpx

from gradserve_client import answers, fields, flows, requests
from gradserve_client.errors import GradserveError
from gradserve_client.fields import Tensors, Types
from gradserve_client.graph import Graph, NodeLike
from gradserve_client.models import (
    NONE_BOUND,
    BoundTensors,
    ModelInputLike,
    ModelSummary,
    NamedGradients,
    NamedModel,
    NamedValues,
    definition,
)
from gradserve_client.registered import NOTHING, GraphSummary, Registered
from gradserve_client.resident import Resident, ResidentTensor, name_of
from gradserve_client.retries import Policy, Surroundings
from gradserve_client.tensors import ArrayLike, Form
from gradserve_client.transport import Transport

T = TypeVar("T")
P = ParamSpec("P")
#: bytes of the longest answer that is read, unless one says otherwise
MAX_RESPONSE_BYTES: Final = 256 << 20
NO_TENSORS: Final[Tensors] = {}
NO_TYPES: Final[Types] = {}
NO_INPUTS: Final[Mapping[str, ArrayLike | Resident]] = {}


class Client:
    """A connection to a server. Threads may share it.

    `api_key` is that of GRADSERVE_API_KEY unless given. `timeout`, in seconds, is for all tries of a call together;
    None: no end. `retries` is how often a call is repeated at most. `idempotency` says whether calls that keep
    something get an Idempotency-Key, without which they are not repeated. An answer longer than `max_response_bytes`
    is not read. `transport` is one of httpx; `surroundings` and `sleep` are for tests.

    Calls raise what `gradserve_client.errors` draws.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float | None = 60.0,
        retries: int = 2,
        idempotency: bool = True,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        transport: httpx.BaseTransport | None = None,
        surroundings: Surroundings | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._policy = Policy(timeout, retries, idempotency, surroundings or Surroundings())
        self._transport = Transport(url, api_key, max_response_bytes, transport)
        self._sleep = sleep

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(self, flow: flows.Flow[T]) -> T:
        """Do what a flow asks for, until it has its result."""
        try:
            step = next(flow)
            while True:
                try:
                    response = self._do(step)
                except GradserveError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(response)
        except StopIteration as end:
            return cast("T", end.value)

    def _do(self, step: flows.Send | flows.Wait) -> answers.Response | None:
        if isinstance(step, flows.Send):
            return self._transport.send(step.request, step.deadline)
        self._sleep(step.seconds)
        return None

    def _compute(self, call: str, kind: type[flows.A], graph: Graph | Registered, /, **asked: Any) -> flows.A:
        return self._run(flows.compute(self._policy, call, kind, graph, asked))

    def forward(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.RunFields]
    ) -> answers.Values:
        """Values of nodes, by default of the last one."""
        return self._compute("forward", answers.Values, graph, feeds=feeds, **asked)

    def gradients(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.GradientsFields]
    ) -> answers.Gradients:
        """Values, and the gradients of one node."""
        return self._compute("gradients", answers.Gradients, graph, feeds=feeds, **asked)

    def vjp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.VjpFields]
    ) -> answers.Gradients:
        """Cotangents of outputs times the Jacobian."""
        return self._compute("vjp", answers.Gradients, graph, feeds=feeds, **asked)

    def jvp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.JvpFields]
    ) -> answers.Tangents:
        """The Jacobian times tangents of leaves."""
        return self._compute("jvp", answers.Tangents, graph, feeds=feeds, **asked)

    def jacobian(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.JacobianFields]
    ) -> answers.Jacobian:
        """Whole Jacobians, a block for each output and node of `wrt`."""
        return self._compute("jacobian", answers.Jacobian, graph, feeds=feeds, **asked)

    def hvp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.HvpFields]
    ) -> answers.Hvp:
        """The Hessian times vectors, exactly."""
        return self._compute("hvp", answers.Hvp, graph, feeds=feeds, **asked)

    def hessian(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.HessianFields]
    ) -> answers.Hessian:
        """Whole Hessians, a block for each pair of nodes of `wrt`."""
        return self._compute("hessian", answers.Hessian, graph, feeds=feeds, **asked)

    def batch(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.BatchFields]
    ) -> answers.Batched:
        """One graph on many examples: values and gradients of each."""
        return self._compute("batch", answers.Batched, graph, feeds=feeds, **asked)

    def check(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.CheckFields]
    ) -> answers.Certificate:
        """Gradients compared with central differences."""
        return self._compute("check", answers.Certificate, graph, feeds=feeds, **asked)

    def plan(
        self, graph: Graph | Registered, types: Types = NO_TYPES, **asked: Unpack[fields.PlanFields]
    ) -> answers.Forecast:
        """What a call would take. Nothing is run."""
        return self._compute("plan", answers.Forecast, graph, types=types, **asked)

    def differentiate(
        self, graph: Graph | Registered, types: Types = NO_TYPES, **asked: Unpack[fields.DifferentiateFields]
    ) -> answers.Derivative:
        """The gradient as a graph. Nothing is run."""
        return self._compute("differentiate", answers.Derivative, graph, types=types, **asked)

    def register(
        self, graph: Graph, *, description: str = "", form: Form | None = None, at_once: bool = True
    ) -> RegisteredGraph:
        """Have the server keep a graph as it is now. `description` is for people.

        Where that is not to be done at once, the first call that needs it does it, within its own time.
        """
        made = RegisteredGraph(self, graph, requests.registration(graph, description, form))
        if at_once:
            self._run(flows.register(self._policy, made))
        return made

    def registered(self, graph_id: str) -> RegisteredGraph:
        """A graph that the server keeps already. Its nodes are found by their names and ids."""
        found = self._run(flows.registered(self._policy, graph_id))
        return RegisteredGraph(self, found.graph, found.registration, found.fields)

    def unregister(self, graph: Registered | str) -> GraphSummary:
        """Have the server forget a graph."""
        graph_id = graph.graph_id if isinstance(graph, Registered) else graph
        request = requests.delete_graph(graph_id)
        return self._run(flows.answered(self._policy, request, GraphSummary.from_wire))

    def graphs(self, *, limit: int | None = None) -> Iterator[GraphSummary]:
        """All graphs that the server keeps, in the order in which they came, asked for `limit` at a time."""
        return map(GraphSummary.from_wire, self._entries("graphs", limit))

    def put(
        self,
        name: str,
        array: ArrayLike,
        *,
        if_match: Resident | str | None = None,
        if_none_match: Resident | str | None = None,
        durable: bool | None = None,
        form: Form | None = None,
    ) -> Resident:
        """Have the server keep a tensor, which feeds may name from then on.

        `if_match` is the version that there has to be, "*" for any; `if_none_match="*"` demands that there is none.
        """
        conditions = {"if_match": if_match, "if_none_match": if_none_match}
        return self._run(flows.put(self._policy, name, array, {**conditions, "durable": durable, "form": form}))

    def get(
        self, tensor: Resident | str, *, if_match: Resident | str | None = None, form: Form | None = None
    ) -> ResidentTensor:
        """A tensor that the server keeps, as it is now."""
        found = self._run(flows.get(self._policy, name_of(tensor), {"if_match": if_match, "form": form}))
        assert found is not None, "only if_none_match is answered without a tensor"
        return found

    def get_if_changed(self, tensor: Resident, *, form: Form | None = None) -> ResidentTensor | None:
        """The tensor, where it is another version by now than this one; else None."""
        return self._run(flows.get(self._policy, tensor.name, {"if_none_match": tensor, "form": form}))

    def delete(self, tensor: Resident | str, *, if_match: Resident | str | None = None) -> Resident:
        """Have the server keep a tensor no more. The answer is what there was."""
        request = requests.delete(name_of(tensor), if_match=if_match)
        return self._run(flows.answered(self._policy, request, Resident.from_wire))

    def tensors(self, *, limit: int | None = None) -> Iterator[Resident]:
        """All tensors that the server keeps, by name, asked for `limit` at a time."""
        return map(Resident.from_wire, self._entries("tensors", limit))

    def put_model(
        self,
        name: str,
        graph: Registered | str,
        *,
        inputs: Mapping[str, ModelInputLike],
        outputs: Mapping[str, NodeLike],
        bound: BoundTensors = NONE_BOUND,
        description: str = "",
        if_match: NamedModel | str | None = None,
        if_none_match: NamedModel | str | None = None,
    ) -> Model:
        """Have the server keep a model: names for leaves and outputs of a registered graph, or of one by its id.

        An input is a leaf that declares dtype and shape, or a node with both, where -1 is a free extent. `bound` has
        the resident tensors of all other leaves that outputs need. `description` is for people. Conditions are those of
        `put`.
        """
        stated = definition(graph, inputs, outputs, bound, description)
        conditions = {"if_match": if_match, "if_none_match": if_none_match}
        made = self._run(flows.put_model(self._policy, name, graph, stated, conditions))
        return Model(self, made, graph if isinstance(graph, Registered) else None)

    def model(self, name: str) -> Model:
        """A model that the server keeps, as it is now."""
        found = self._run(flows.answered(self._policy, requests.model(name), ModelSummary.from_wire))
        return Model(self, found)

    def delete_model(self, model: NamedModel | str, *, if_match: NamedModel | str | None = None) -> ModelSummary:
        """Have the server keep a model no more; its graph and tensors stay. The answer is what there was."""
        name = model.name if isinstance(model, NamedModel) else model
        request = requests.delete_model(name, if_match=if_match)
        return self._run(flows.answered(self._policy, request, ModelSummary.from_wire))

    def models(self, *, limit: int | None = None) -> Iterator[Model]:
        """All models that the server keeps, by name, asked for `limit` at a time."""
        return (Model(self, ModelSummary.from_wire(entry)) for entry in self._entries("models", limit))

    def ops(self) -> dict[str, Any]:
        """The server's catalogue: `opset`, and `ops` with their operands, attributes, gradients and dtypes."""
        return self._run(flows.answered(self._policy, requests.catalogue(), dict))

    def _entries(self, kind: str, limit: int | None) -> Iterator[dict[str, Any]]:
        after = None
        while True:
            page = self._run(flows.page(self._policy, kind, limit, after))
            yield from page.entries
            if page.next is None:
                return
            after = page.next


class OnGraph(Generic[P, T]):
    """A call of a client as a call of a graph that is registered with it."""

    def __init__(self, call: Callable[Concatenate[Client, Graph | Registered, P], T]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(self, graph: RegisteredGraph, owner: type[RegisteredGraph]) -> Callable[P, T]:
        """The call on this graph."""
        return partial(self._call, graph.client, graph)


class RegisteredGraph(Registered):
    """A graph that the server keeps, with all calls on it: each takes what the client's call takes but the graph."""

    def __init__(
        self, client: Client, graph: Graph, registration: requests.Request, fields: Mapping[str, Any] = NOTHING
    ) -> None:
        super().__init__(graph, registration, fields)
        self.client = client

    forward = OnGraph(Client.forward)
    gradients = OnGraph(Client.gradients)
    vjp = OnGraph(Client.vjp)
    jvp = OnGraph(Client.jvp)
    jacobian = OnGraph(Client.jacobian)
    hvp = OnGraph(Client.hvp)
    hessian = OnGraph(Client.hessian)
    batch = OnGraph(Client.batch)
    check = OnGraph(Client.check)
    plan = OnGraph(Client.plan)
    differentiate = OnGraph(Client.differentiate)


class Model(NamedModel):
    """A model that the server keeps, called by the names of its inputs, with results by those of its outputs."""

    def __init__(self, client: Client, summary: ModelSummary, graph: Registered | None = None) -> None:
        super().__init__(summary, graph)
        self.client = client

    def forward(
        self,
        inputs: Mapping[str, ArrayLike | Resident] = NO_INPUTS,
        *,
        outputs: Sequence[str] | None = None,
        **asked: Unpack[fields.CallFields],
    ) -> NamedValues:
        """Values of outputs, of all of them unless some are named."""
        feeds, nodes = self.feeds(inputs), self.nodes_of(outputs)
        answer = self.client.forward(self._registered(), feeds, outputs=nodes, **asked)
        return NamedValues(answer, self)

    def gradients(
        self,
        inputs: Mapping[str, ArrayLike | Resident] = NO_INPUTS,
        *,
        of: str | None = None,
        wrt: Sequence[str] | None = None,
        **asked: Unpack[fields.CallFields],
    ) -> NamedGradients:
        """The value of one output, by default the only one, and its gradients, by default by all inputs of floats."""
        feeds, node, leaves = self.feeds(inputs), self.node_of(of), self.leaves_of(wrt)
        answer = self.client.gradients(self._registered(), feeds, of=node, wrt=leaves, **asked)
        return NamedGradients(answer, self)

    def delete(self) -> ModelSummary:
        """Have the server keep it no more, whatever version is there. The answer is what there was."""
        return self.client.delete_model(self)

    def _registered(self) -> Registered:
        if self._graph is None:
            self._graph = self.client.registered(self.graph_id)
        return self._graph
