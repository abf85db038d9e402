"""The synchronous client."""

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
#: default limit on the length of a response, in bytes
MAX_RESPONSE_BYTES: Final = 256 << 20
NO_TENSORS: Final[Tensors] = {}
NO_TYPES: Final[Types] = {}
NO_INPUTS: Final[Mapping[str, ArrayLike | Resident]] = {}


class Client:
    """A client of one server. Threads may share it.

    `url` is the address of the server. `api_key` defaults to the environment variable GRADSERVE_API_KEY. `timeout` is
    the time limit in seconds for all attempts of a call together; None means no limit. `retries` is the maximum number
    of retries of a call. `idempotency` determines whether calls that store something send an Idempotency-Key; without
    one they are not retried. Responses longer than `max_response_bytes` are not read. `transport` replaces the
    transport of httpx; `surroundings` and `sleep` are for tests.

    Calls take a graph or a registered graph, `feeds` that map leaves to arrays, resident tensors or rows of these, and
    the fields of the call as keyword arguments (`gradserve_client.fields`). Nodes are given as node objects, names or
    ids.

    See `gradserve_client.errors` for the exceptions that calls raise.
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
        """Drive a flow to its result: perform each request and wait that it yields."""
        try:
            step = next(flow)
            while True:
                try:
                    response = self._perform(step)
                except GradserveError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(response)
        except StopIteration as end:
            return cast("T", end.value)

    def _perform(self, step: flows.Send | flows.Wait) -> answers.Response | None:
        if isinstance(step, flows.Send):
            return self._transport.send(step.request, step.deadline)
        self._sleep(step.seconds)
        return None

    def _compute(self, call: str, kind: type[flows.A], graph: Graph | Registered, /, **options: Any) -> flows.A:
        return self._run(flows.compute(self._policy, call, kind, graph, options))

    def forward(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.RunFields]
    ) -> answers.Values:
        """Compute the values of nodes.

        `outputs` defaults to the last node. A value has the shape and dtype of its node. Keyword arguments:
        `RunFields`.
        """
        return self._compute("forward", answers.Values, graph, feeds=feeds, **options)

    def gradients(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.GradientsFields]
    ) -> answers.Gradients:
        """Compute values, and the gradients of one node.

        Differentiates `of` (default: the last node) with respect to each node of `wrt` (default: every `parameter`). A
        gradient has the shape and dtype of its node. If `of` does not have exactly one element, `cotangent` is
        required: the weights of its elements, an array of its shape. Keyword arguments: `GradientsFields`.
        """
        return self._compute("gradients", answers.Gradients, graph, feeds=feeds, **options)

    def vjp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.VjpFields]
    ) -> answers.Gradients:
        """Compute vector-Jacobian products.

        `cotangents` maps each output to an array of its shape. A gradient has the shape and dtype of its node. With
        `batched=True` every cotangent has a leading axis K, and so has every gradient. Keyword arguments: `VjpFields`.
        """
        return self._compute("vjp", answers.Gradients, graph, feeds=feeds, **options)

    def jvp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.JvpFields]
    ) -> answers.Tangents:
        """Compute Jacobian-vector products.

        `tangents` maps leaves to arrays of their shape; leaves without a tangent are held constant. The result has a
        tangent of the output's shape for each output. Keyword arguments: `JvpFields`.
        """
        return self._compute("jvp", answers.Tangents, graph, feeds=feeds, **options)

    def jacobian(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.JacobianFields]
    ) -> answers.Jacobian:
        """Compute full Jacobians, one block for each pair of an output and a node of `wrt`.

        A block has the shape of the output followed by the shape of the node. Keyword arguments: `JacobianFields`.
        """
        return self._compute("jacobian", answers.Jacobian, graph, feeds=feeds, **options)

    def hvp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.HvpFields]
    ) -> answers.Hvp:
        """Compute exact Hessian-vector products.

        `of` must have one element. `vectors` maps each node of `wrt` to an array of its shape; each product has that
        shape. Values and gradients are returned as well. Keyword arguments: `HvpFields`.
        """
        return self._compute("hvp", answers.Hvp, graph, feeds=feeds, **options)

    def hessian(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.HessianFields]
    ) -> answers.Hessian:
        """Compute exact, full Hessians, one block for each pair of nodes of `wrt`, or one matrix.

        `of` must have one element. A block has the shape of the row's node followed by the shape of the column's. With
        `layout="matrix"`, the answer has one square matrix over all nodes of `wrt` instead of blocks. Keyword
        arguments: `HessianFields`.
        """
        return self._compute("hessian", answers.Hessian, graph, feeds=feeds, **options)

    def batch(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.BatchFields]
    ) -> answers.Batched:
        """Run one graph on many examples: compute the values and gradients of each.

        The graph is written for one example. Feeds of the leaves in `mapped` have a leading axis N, and so have all
        results, unless `reduce` is "sum" or "mean". Keyword arguments: `BatchFields`.
        """
        return self._compute("batch", answers.Batched, graph, feeds=feeds, **options)

    def check(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.CheckFields]
    ) -> answers.Certificate:
        """Compare gradients with central differences, in float64 on the server.

        `of` must have one element. Keyword arguments: `CheckFields`.
        """
        return self._compute("check", answers.Certificate, graph, feeds=feeds, **options)

    def plan(
        self, graph: Graph | Registered, types: Types = NO_TYPES, **options: Unpack[fields.PlanFields]
    ) -> answers.Forecast:
        """Estimate the cost of a call (a dry run): shapes, FLOPs, bytes, and whether the server admits it.

        `types` maps leaves to `(dtype, shape)`, or to an array that has both. Keyword arguments: `PlanFields`.
        """
        return self._compute("plan", answers.Forecast, graph, types=types, **options)

    def differentiate(
        self, graph: Graph | Registered, types: Types = NO_TYPES, **options: Unpack[fields.DifferentiateFields]
    ) -> answers.Derivative:
        """Return the gradient of one node as a graph, without running anything.

        `of` must have one element. `types` maps leaves to `(dtype, shape)`, or to an array that has both; the new graph
        is specialised to them. Keyword arguments: `DifferentiateFields`.
        """
        return self._compute("differentiate", answers.Derivative, graph, types=types, **options)

    def register(
        self, graph: Graph, *, description: str = "", form: Form | None = None, at_once: bool = True
    ) -> RegisteredGraph:
        """Register the graph on the server as it is now, and return a handle for calls on it.

        `description` is free text of at most 1000 characters. `form` is the wire format of the graph's constants. With
        `at_once=False`, registration is deferred to the first call that uses the graph, and counts against that call's
        timeout.
        """
        registered_graph = RegisteredGraph(self, graph, requests.registration(graph, description, form))
        if at_once:
            self._run(flows.register(self._policy, registered_graph))
        return registered_graph

    def registered(self, graph_id: str) -> RegisteredGraph:
        """Fetch a registered graph by its id. Look up its nodes by name or id.

        Raises NotFoundError if the server does not have the graph.
        """
        registered = self._run(flows.registered(self._policy, graph_id))
        return RegisteredGraph(self, registered.graph, registered.registration, registered.fields)

    def unregister(self, graph: Registered | str) -> GraphSummary:
        """Delete a registered graph from the server, and return its summary."""
        graph_id = graph.graph_id if isinstance(graph, Registered) else graph
        request = requests.delete_graph(graph_id)
        return self._run(flows.send_and_read(self._policy, request, GraphSummary.from_wire))

    def graphs(self, *, limit: int | None = None) -> Iterator[GraphSummary]:
        """Iterate over all registered graphs in order of registration, `limit` per page."""
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
        """Store a tensor on the server and return a handle that feeds accept in place of an array.

        `if_match` is the version that the stored tensor must have ("*": any version); `if_none_match="*"` requires that
        the name is unused. `durable=False` lets the server respond before the tensor is on disk.

        Raises InputError for an unsupported dtype, ConditionError if a condition does not hold, and StoreFullError if
        the server has no room.
        """
        conditions = {"if_match": if_match, "if_none_match": if_none_match}
        return self._run(flows.put(self._policy, name, array, {**conditions, "durable": durable, "form": form}))

    def get(
        self, tensor: Resident | str, *, if_match: Resident | str | None = None, form: Form | None = None
    ) -> ResidentTensor:
        """Download the current version of a tensor.

        Raises NotFoundError if there is no such tensor, and ConditionError if it is not the version `if_match`.
        """
        resident = self._run(flows.get(self._policy, name_of(tensor), {"if_match": if_match, "form": form}))
        assert resident is not None, "only if_none_match is answered without a tensor"
        return resident

    def get_if_changed(self, tensor: Resident, *, form: Form | None = None) -> ResidentTensor | None:
        """Download a tensor if its version differs from this handle's; otherwise return None."""
        return self._run(flows.get(self._policy, tensor.name, {"if_none_match": tensor, "form": form}))

    def delete(self, tensor: Resident | str, *, if_match: Resident | str | None = None) -> Resident:
        """Delete a tensor from the server, and return the metadata of the deleted version."""
        request = requests.delete(name_of(tensor), if_match=if_match)
        return self._run(flows.send_and_read(self._policy, request, Resident.from_wire))

    def tensors(self, *, limit: int | None = None) -> Iterator[Resident]:
        """Iterate over all resident tensors by name, `limit` per page."""
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
        """Store a model: a registered graph, or the id of one, with names for its inputs and outputs.

        `inputs` maps names to leaves that declare dtype and shape, or to `(node, dtype, shape)`; an extent of -1 is
        free, so that calls may use any size. `outputs` maps names to nodes. `bound` maps each remaining leaf that the
        outputs need to a resident tensor. `description` is free text. `if_match` and `if_none_match` are conditions as
        in `put`.

        Raises InputError if an input has no dtype and shape, or a node is not in the graph.
        """
        model_fields = definition(graph, inputs, outputs, bound, description)
        conditions = {"if_match": if_match, "if_none_match": if_none_match}
        summary = self._run(flows.put_model(self._policy, name, graph, model_fields, conditions))
        return Model(self, summary, graph if isinstance(graph, Registered) else None)

    def model(self, name: str) -> Model:
        """Fetch the current version of a model. Raises NotFoundError if the server does not have it."""
        summary = self._run(flows.send_and_read(self._policy, requests.model(name), ModelSummary.from_wire))
        return Model(self, summary)

    def delete_model(self, model: NamedModel | str, *, if_match: NamedModel | str | None = None) -> ModelSummary:
        """Delete a model, and return the summary of the deleted version. Its graph and tensors stay."""
        name = model.name if isinstance(model, NamedModel) else model
        request = requests.delete_model(name, if_match=if_match)
        return self._run(flows.send_and_read(self._policy, request, ModelSummary.from_wire))

    def models(self, *, limit: int | None = None) -> Iterator[Model]:
        """Iterate over all models by name, `limit` per page."""
        return (Model(self, ModelSummary.from_wire(entry)) for entry in self._entries("models", limit))

    def ops(self) -> dict[str, Any]:
        """Return the server's op catalogue: `opset`, and `ops` with operands, attributes, gradients and dtypes."""
        return self._run(flows.send_and_read(self._policy, requests.catalogue(), dict))

    def _entries(self, kind: str, limit: int | None) -> Iterator[dict[str, Any]]:
        after = None
        while True:
            page = self._run(flows.page(self._policy, kind, limit, after))
            yield from page.entries
            if page.next is None:
                return
            after = page.next


class OnGraph(Generic[P, T]):
    """A descriptor that binds a call of the client to a registered graph."""

    def __init__(self, call: Callable[Concatenate[Client, Graph | Registered, P], T]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(self, graph: RegisteredGraph, owner: type[RegisteredGraph]) -> Callable[P, T]:
        """Return the call bound to this graph."""
        return partial(self._call, graph.client, graph)


class RegisteredGraph(Registered):
    """A graph that is stored on the server, with the client's calls as methods.

    Each method takes the arguments of the client's call except the graph.
    """

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
    """A model that is stored on the server. Calls take inputs and return results by name."""

    def __init__(self, client: Client, summary: ModelSummary, graph: Registered | None = None) -> None:
        super().__init__(summary, graph)
        self.client = client

    def forward(
        self,
        inputs: Mapping[str, ArrayLike | Resident] = NO_INPUTS,
        *,
        outputs: Sequence[str] | None = None,
        **options: Unpack[fields.CallFields],
    ) -> NamedValues:
        """Compute the named outputs, by default all of them.

        `inputs` maps the names of all inputs to arrays or resident tensors. Keyword arguments: `CallFields`. Raises
        InputError for missing or unknown names.
        """
        feeds, nodes = self.feeds(inputs), self.nodes_of(outputs)
        answer = self.client.forward(self._registered(), feeds, outputs=nodes, **options)
        return NamedValues(answer, self)

    def gradients(
        self,
        inputs: Mapping[str, ArrayLike | Resident] = NO_INPUTS,
        *,
        of: str | None = None,
        wrt: Sequence[str] | None = None,
        **options: Unpack[fields.CallFields],
    ) -> NamedGradients:
        """Compute one output and its gradients with respect to inputs.

        `of` is the name of an output with one element, by default the only output. `wrt` are names of inputs, by
        default all inputs with a float dtype. A gradient has the shape and dtype of its input. Keyword arguments:
        `CallFields`. Raises InputError for missing or unknown names.
        """
        feeds, node, leaves = self.feeds(inputs), self.node_of(of), self.leaves_of(wrt)
        answer = self.client.gradients(self._registered(), feeds, of=node, wrt=leaves, **options)
        return NamedGradients(answer, self)

    def delete(self) -> ModelSummary:
        """Delete the model, whichever version is stored, and return the summary of the deleted version."""
        return self.client.delete_model(self)

    def _registered(self) -> Registered:
        if self._graph is None:
            self._graph = self.client.registered(self.graph_id)
        return self._graph
