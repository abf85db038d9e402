"""The asyncio client: the calls of `Client` as coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack, cast

import httpx

from gradserve_client import answers, fields, flows, requests
from gradserve_client.async_transport import AsyncTransport
from gradserve_client.client import MAX_RESPONSE_BYTES, NO_INPUTS, NO_TENSORS, NO_TYPES
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

T = TypeVar("T")
P = ParamSpec("P")
Awaited = Coroutine[Any, Any, T]


class AsyncClient:
    """An asyncio client of one server, for the tasks of one event loop.

    The constructor takes the arguments of `Client`. Methods that `Client` returns iterators from are async iterators.
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
        transport: httpx.AsyncBaseTransport | None = None,
        surroundings: Surroundings | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._policy = Policy(timeout, retries, idempotency, surroundings or Surroundings())
        self._transport = AsyncTransport(url, api_key, max_response_bytes, transport)
        self._sleep = sleep

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def _run(self, flow: flows.Flow[T]) -> T:
        """Drive a flow to its result: perform each request and wait that it yields."""
        try:
            step = next(flow)
            while True:
                try:
                    response = await self._perform(step)
                except GradserveError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(response)
        except StopIteration as end:
            return cast("T", end.value)

    async def _perform(self, step: flows.Send | flows.Wait) -> answers.Response | None:
        if isinstance(step, flows.Send):
            return await self._transport.send(step.request, step.deadline)
        await self._sleep(step.seconds)
        return None

    async def _compute(self, call: str, kind: type[flows.A], graph: Graph | Registered, /, **options: Any) -> flows.A:
        return await self._run(flows.compute(self._policy, call, kind, graph, options))

    async def forward(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.RunFields]
    ) -> answers.Values:
        """Compute the values of nodes.

        `outputs` defaults to the last node. A value has the shape and dtype of its node. Keyword arguments:
        `RunFields`.
        """
        return await self._compute("forward", answers.Values, graph, feeds=feeds, **options)

    async def gradients(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.GradientsFields]
    ) -> answers.Gradients:
        """Compute values, and the gradients of one node.

        Differentiates `of` (default: the last node) with respect to each node of `wrt` (default: every `parameter`). A
        gradient has the shape and dtype of its node. If `of` does not have exactly one element, `cotangent` is
        required: the weights of its elements, an array of its shape. Keyword arguments: `GradientsFields`.
        """
        return await self._compute("gradients", answers.Gradients, graph, feeds=feeds, **options)

    async def vjp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.VjpFields]
    ) -> answers.Gradients:
        """Compute vector-Jacobian products.

        `cotangents` maps each output to an array of its shape. A gradient has the shape and dtype of its node. With
        `batched=True` every cotangent has a leading axis K, and so has every gradient. Keyword arguments: `VjpFields`.
        """
        return await self._compute("vjp", answers.Gradients, graph, feeds=feeds, **options)

    async def jvp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.JvpFields]
    ) -> answers.Tangents:
        """Compute Jacobian-vector products.

        `tangents` maps leaves to arrays of their shape; leaves without a tangent are held constant. The result has a
        tangent of the output's shape for each output. Keyword arguments: `JvpFields`.
        """
        return await self._compute("jvp", answers.Tangents, graph, feeds=feeds, **options)

    async def jacobian(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.JacobianFields]
    ) -> answers.Jacobian:
        """Compute full Jacobians, one block for each pair of an output and a node of `wrt`.

        A block has the shape of the output followed by the shape of the node. Keyword arguments: `JacobianFields`.
        """
        return await self._compute("jacobian", answers.Jacobian, graph, feeds=feeds, **options)

    async def hvp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.HvpFields]
    ) -> answers.Hvp:
        """Compute exact Hessian-vector products.

        `of` must have one element. `vectors` maps each node of `wrt` to an array of its shape; each product has that
        shape. Values and gradients are returned as well. Keyword arguments: `HvpFields`.
        """
        return await self._compute("hvp", answers.Hvp, graph, feeds=feeds, **options)

    async def hessian(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.HessianFields]
    ) -> answers.Hessian:
        """Compute exact, full Hessians, one block for each pair of nodes of `wrt`, or one matrix.

        `of` must have one element. A block has the shape of the row's node followed by the shape of the column's. With
        `layout="matrix"`, the answer has one square matrix over all nodes of `wrt` instead of blocks. Keyword
        arguments: `HessianFields`.
        """
        return await self._compute("hessian", answers.Hessian, graph, feeds=feeds, **options)

    async def batch(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.BatchFields]
    ) -> answers.Batched:
        """Run one graph on many examples: compute the values and gradients of each.

        The graph is written for one example. Feeds of the leaves in `mapped` have a leading axis N, and so have all
        results, unless `reduce` is "sum" or "mean". Keyword arguments: `BatchFields`.
        """
        return await self._compute("batch", answers.Batched, graph, feeds=feeds, **options)

    async def check(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **options: Unpack[fields.CheckFields]
    ) -> answers.Certificate:
        """Compare gradients with central differences, in float64 on the server.

        `of` must have one element. Keyword arguments: `CheckFields`.
        """
        return await self._compute("check", answers.Certificate, graph, feeds=feeds, **options)

    async def plan(
        self, graph: Graph | Registered, types: Types = NO_TYPES, **options: Unpack[fields.PlanFields]
    ) -> answers.Forecast:
        """Estimate the cost of a call (a dry run): shapes, FLOPs, bytes, and whether the server admits it.

        `types` maps leaves to `(dtype, shape)`, or to an array that has both. Keyword arguments: `PlanFields`.
        """
        return await self._compute("plan", answers.Forecast, graph, types=types, **options)

    async def differentiate(
        self, graph: Graph | Registered, types: Types = NO_TYPES, **options: Unpack[fields.DifferentiateFields]
    ) -> answers.Derivative:
        """Return the gradient of one node as a graph, without running anything.

        `of` must have one element. `types` maps leaves to `(dtype, shape)`, or to an array that has both; the new graph
        is specialised to them. Keyword arguments: `DifferentiateFields`.
        """
        return await self._compute("differentiate", answers.Derivative, graph, types=types, **options)

    async def register(
        self, graph: Graph, *, description: str = "", form: Form | None = None, at_once: bool = True
    ) -> AsyncRegisteredGraph:
        """Register the graph on the server as it is now, and return a handle for calls on it.

        `description` is free text of at most 1000 characters. `form` is the wire format of the graph's constants. With
        `at_once=False`, registration is deferred to the first call that uses the graph, and counts against that call's
        timeout.
        """
        registered_graph = AsyncRegisteredGraph(self, graph, requests.registration(graph, description, form))
        if at_once:
            await self._run(flows.register(self._policy, registered_graph))
        return registered_graph

    async def registered(self, graph_id: str) -> AsyncRegisteredGraph:
        """Fetch a registered graph by its id. Look up its nodes by name or id.

        Raises NotFoundError if the server does not have the graph.
        """
        registered = await self._run(flows.registered(self._policy, graph_id))
        return AsyncRegisteredGraph(self, registered.graph, registered.registration, registered.fields)

    async def unregister(self, graph: Registered | str) -> GraphSummary:
        """Delete a registered graph from the server, and return its summary."""
        graph_id = graph.graph_id if isinstance(graph, Registered) else graph
        request = requests.delete_graph(graph_id)
        return await self._run(flows.send_and_read(self._policy, request, GraphSummary.from_wire))

    async def graphs(self, *, limit: int | None = None) -> AsyncIterator[GraphSummary]:
        """Iterate over all registered graphs in order of registration, `limit` per page."""
        async for entry in self._entries("graphs", limit):
            yield GraphSummary.from_wire(entry)

    async def put(
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
        return await self._run(flows.put(self._policy, name, array, {**conditions, "durable": durable, "form": form}))

    async def get(
        self, tensor: Resident | str, *, if_match: Resident | str | None = None, form: Form | None = None
    ) -> ResidentTensor:
        """Download the current version of a tensor.

        Raises NotFoundError if there is no such tensor, and ConditionError if it is not the version `if_match`.
        """
        resident = await self._run(flows.get(self._policy, name_of(tensor), {"if_match": if_match, "form": form}))
        assert resident is not None, "only if_none_match is answered without a tensor"
        return resident

    async def get_if_changed(self, tensor: Resident, *, form: Form | None = None) -> ResidentTensor | None:
        """Download a tensor if its version differs from this handle's; otherwise return None."""
        return await self._run(flows.get(self._policy, tensor.name, {"if_none_match": tensor, "form": form}))

    async def delete(self, tensor: Resident | str, *, if_match: Resident | str | None = None) -> Resident:
        """Delete a tensor from the server, and return the metadata of the deleted version."""
        request = requests.delete(name_of(tensor), if_match=if_match)
        return await self._run(flows.send_and_read(self._policy, request, Resident.from_wire))

    async def tensors(self, *, limit: int | None = None) -> AsyncIterator[Resident]:
        """Iterate over all resident tensors by name, `limit` per page."""
        async for entry in self._entries("tensors", limit):
            yield Resident.from_wire(entry)

    async def put_model(
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
    ) -> AsyncModel:
        """Store a model: a registered graph, or the id of one, with names for its inputs and outputs.

        `inputs` maps names to leaves that declare dtype and shape, or to `(node, dtype, shape)`; an extent of -1 is
        free, so that calls may use any size. `outputs` maps names to nodes. `bound` maps each remaining leaf that the
        outputs need to a resident tensor. `description` is free text. `if_match` and `if_none_match` are conditions as
        in `put`.

        Raises InputError if an input has no dtype and shape, or a node is not in the graph.
        """
        model_fields = definition(graph, inputs, outputs, bound, description)
        conditions = {"if_match": if_match, "if_none_match": if_none_match}
        summary = await self._run(flows.put_model(self._policy, name, graph, model_fields, conditions))
        return AsyncModel(self, summary, graph if isinstance(graph, Registered) else None)

    async def model(self, name: str) -> AsyncModel:
        """Fetch the current version of a model. Raises NotFoundError if the server does not have it."""
        summary = await self._run(flows.send_and_read(self._policy, requests.model(name), ModelSummary.from_wire))
        return AsyncModel(self, summary)

    async def delete_model(self, model: NamedModel | str, *, if_match: NamedModel | str | None = None) -> ModelSummary:
        """Delete a model, and return the summary of the deleted version. Its graph and tensors stay."""
        name = model.name if isinstance(model, NamedModel) else model
        request = requests.delete_model(name, if_match=if_match)
        return await self._run(flows.send_and_read(self._policy, request, ModelSummary.from_wire))

    async def models(self, *, limit: int | None = None) -> AsyncIterator[AsyncModel]:
        """Iterate over all models by name, `limit` per page."""
        async for entry in self._entries("models", limit):
            yield AsyncModel(self, ModelSummary.from_wire(entry))

    async def ops(self) -> dict[str, Any]:
        """Return the server's op catalogue: `opset`, and `ops` with operands, attributes, gradients and dtypes."""
        return await self._run(flows.send_and_read(self._policy, requests.catalogue(), dict))

    async def _entries(self, kind: str, limit: int | None) -> AsyncIterator[dict[str, Any]]:
        after = None
        while True:
            page = await self._run(flows.page(self._policy, kind, limit, after))
            for entry in page.entries:
                yield entry
            if page.next is None:
                return
            after = page.next


class AsyncOnGraph(Generic[P, T]):
    """A descriptor that binds a call of the client to a registered graph."""

    def __init__(self, call: Callable[Concatenate[AsyncClient, Graph | Registered, P], Awaited[T]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(self, graph: AsyncRegisteredGraph, owner: type[AsyncRegisteredGraph]) -> Callable[P, Awaited[T]]:
        """Return the call bound to this graph."""
        return partial(self._call, graph.client, graph)


class AsyncRegisteredGraph(Registered):
    """A graph that is stored on the server, with the client's calls as methods.

    Each method takes the arguments of the client's call except the graph.
    """

    def __init__(
        self, client: AsyncClient, graph: Graph, registration: requests.Request, fields: Mapping[str, Any] = NOTHING
    ) -> None:
        super().__init__(graph, registration, fields)
        self.client = client

    forward = AsyncOnGraph(AsyncClient.forward)
    gradients = AsyncOnGraph(AsyncClient.gradients)
    vjp = AsyncOnGraph(AsyncClient.vjp)
    jvp = AsyncOnGraph(AsyncClient.jvp)
    jacobian = AsyncOnGraph(AsyncClient.jacobian)
    hvp = AsyncOnGraph(AsyncClient.hvp)
    hessian = AsyncOnGraph(AsyncClient.hessian)
    batch = AsyncOnGraph(AsyncClient.batch)
    check = AsyncOnGraph(AsyncClient.check)
    plan = AsyncOnGraph(AsyncClient.plan)
    differentiate = AsyncOnGraph(AsyncClient.differentiate)


class AsyncModel(NamedModel):
    """A model that is stored on the server. Calls take inputs and return results by name."""

    def __init__(self, client: AsyncClient, summary: ModelSummary, graph: Registered | None = None) -> None:
        super().__init__(summary, graph)
        self.client = client

    async def forward(
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
        answer = await self.client.forward(await self._registered(), feeds, outputs=nodes, **options)
        return NamedValues(answer, self)

    async def gradients(
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
        answer = await self.client.gradients(await self._registered(), feeds, of=node, wrt=leaves, **options)
        return NamedGradients(answer, self)

    async def delete(self) -> ModelSummary:
        """Delete the model, whichever version is stored, and return the summary of the deleted version."""
        return await self.client.delete_model(self)

    async def _registered(self) -> Registered:
        if self._graph is None:
            self._graph = await self.client.registered(self.graph_id)
        return self._graph
