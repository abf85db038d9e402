"""The client for asyncio: the same calls, awaited."""

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
    """A connection to a server, for the tasks of one event loop. What it is made with is that of `Client`."""

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
        """Do what a flow asks for, until it has its result."""
        try:
            step = next(flow)
            while True:
                try:
                    response = await self._do(step)
                except GradserveError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(response)
        except StopIteration as end:
            return cast("T", end.value)

    async def _do(self, step: flows.Send | flows.Wait) -> answers.Response | None:
        if isinstance(step, flows.Send):
            return await self._transport.send(step.request, step.deadline)
        await self._sleep(step.seconds)
        return None

    async def _compute(self, call: str, kind: type[flows.A], graph: Graph | Registered, /, **asked: Any) -> flows.A:
        return await self._run(flows.compute(self._policy, call, kind, graph, asked))

    async def forward(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.RunFields]
    ) -> answers.Values:
        """Values of nodes, by default of the last one."""
        return await self._compute("forward", answers.Values, graph, feeds=feeds, **asked)

    async def gradients(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.GradientsFields]
    ) -> answers.Gradients:
        """Values, and the gradients of one node."""
        return await self._compute("gradients", answers.Gradients, graph, feeds=feeds, **asked)

    async def vjp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.VjpFields]
    ) -> answers.Gradients:
        """Cotangents of outputs times the Jacobian."""
        return await self._compute("vjp", answers.Gradients, graph, feeds=feeds, **asked)

    async def jvp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.JvpFields]
    ) -> answers.Tangents:
        """The Jacobian times tangents of leaves."""
        return await self._compute("jvp", answers.Tangents, graph, feeds=feeds, **asked)

    async def jacobian(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.JacobianFields]
    ) -> answers.Jacobian:
        """Whole Jacobians, a block for each output and node of `wrt`."""
        return await self._compute("jacobian", answers.Jacobian, graph, feeds=feeds, **asked)

    async def hvp(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.HvpFields]
    ) -> answers.Hvp:
        """The Hessian times vectors, exactly."""
        return await self._compute("hvp", answers.Hvp, graph, feeds=feeds, **asked)

    async def hessian(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.HessianFields]
    ) -> answers.Hessian:
        """Whole Hessians, a block for each pair of nodes of `wrt`."""
        return await self._compute("hessian", answers.Hessian, graph, feeds=feeds, **asked)

    async def batch(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.BatchFields]
    ) -> answers.Batched:
        """One graph on many examples: values and gradients of each."""
        return await self._compute("batch", answers.Batched, graph, feeds=feeds, **asked)

    async def check(
        self, graph: Graph | Registered, feeds: Tensors = NO_TENSORS, **asked: Unpack[fields.CheckFields]
    ) -> answers.Certificate:
        """Gradients compared with central differences."""
        return await self._compute("check", answers.Certificate, graph, feeds=feeds, **asked)

    async def plan(
        self, graph: Graph | Registered, types: Types = NO_TYPES, **asked: Unpack[fields.PlanFields]
    ) -> answers.Forecast:
        """What a call would take. Nothing is run."""
        return await self._compute("plan", answers.Forecast, graph, types=types, **asked)

    async def differentiate(
        self, graph: Graph | Registered, types: Types = NO_TYPES, **asked: Unpack[fields.DifferentiateFields]
    ) -> answers.Derivative:
        """The gradient as a graph. Nothing is run."""
        return await self._compute("differentiate", answers.Derivative, graph, types=types, **asked)

    async def register(
        self, graph: Graph, *, description: str = "", form: Form | None = None, at_once: bool = True
    ) -> AsyncRegisteredGraph:
        """Have the server keep a graph as it is now. `description` is for people.

        Where that is not to be done at once, the first call that needs it does it, within its own time.
        """
        made = AsyncRegisteredGraph(self, graph, requests.registration(graph, description, form))
        if at_once:
            await self._run(flows.register(self._policy, made))
        return made

    async def registered(self, graph_id: str) -> AsyncRegisteredGraph:
        """A graph that the server keeps already. Its nodes are found by their names and ids."""
        found = await self._run(flows.registered(self._policy, graph_id))
        return AsyncRegisteredGraph(self, found.graph, found.registration, found.fields)

    async def unregister(self, graph: Registered | str) -> GraphSummary:
        """Have the server forget a graph."""
        graph_id = graph.graph_id if isinstance(graph, Registered) else graph
        request = requests.delete_graph(graph_id)
        return await self._run(flows.answered(self._policy, request, GraphSummary.from_wire))

    async def graphs(self, *, limit: int | None = None) -> AsyncIterator[GraphSummary]:
        """All graphs that the server keeps, in the order in which they came, asked for `limit` at a time."""
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
        """Have the server keep a tensor, which feeds may name from then on.

        `if_match` is the version that there has to be, "*" for any; `if_none_match="*"` demands that there is none.
        """
        conditions = {"if_match": if_match, "if_none_match": if_none_match}
        return await self._run(flows.put(self._policy, name, array, {**conditions, "durable": durable, "form": form}))

    async def get(
        self, tensor: Resident | str, *, if_match: Resident | str | None = None, form: Form | None = None
    ) -> ResidentTensor:
        """A tensor that the server keeps, as it is now."""
        found = await self._run(flows.get(self._policy, name_of(tensor), {"if_match": if_match, "form": form}))
        assert found is not None, "only if_none_match is answered without a tensor"
        return found

    async def get_if_changed(self, tensor: Resident, *, form: Form | None = None) -> ResidentTensor | None:
        """The tensor, where it is another version by now than this one; else None."""
        return await self._run(flows.get(self._policy, tensor.name, {"if_none_match": tensor, "form": form}))

    async def delete(self, tensor: Resident | str, *, if_match: Resident | str | None = None) -> Resident:
        """Have the server keep a tensor no more. The answer is what there was."""
        request = requests.delete(name_of(tensor), if_match=if_match)
        return await self._run(flows.answered(self._policy, request, Resident.from_wire))

    async def tensors(self, *, limit: int | None = None) -> AsyncIterator[Resident]:
        """All tensors that the server keeps, by name, asked for `limit` at a time."""
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
        """Have the server keep a model: names for leaves and outputs of a registered graph, or of one by its id.

        An input is a leaf that declares dtype and shape, or a node with both, where -1 is a free extent. `bound` has
        the resident tensors of all other leaves that outputs need. `description` is for people. Conditions are those of
        `put`.
        """
        stated = definition(graph, inputs, outputs, bound, description)
        conditions = {"if_match": if_match, "if_none_match": if_none_match}
        made = await self._run(flows.put_model(self._policy, name, graph, stated, conditions))
        return AsyncModel(self, made, graph if isinstance(graph, Registered) else None)

    async def model(self, name: str) -> AsyncModel:
        """A model that the server keeps, as it is now."""
        found = await self._run(flows.answered(self._policy, requests.model(name), ModelSummary.from_wire))
        return AsyncModel(self, found)

    async def delete_model(self, model: NamedModel | str, *, if_match: NamedModel | str | None = None) -> ModelSummary:
        """Have the server keep a model no more; its graph and tensors stay. The answer is what there was."""
        name = model.name if isinstance(model, NamedModel) else model
        request = requests.delete_model(name, if_match=if_match)
        return await self._run(flows.answered(self._policy, request, ModelSummary.from_wire))

    async def models(self, *, limit: int | None = None) -> AsyncIterator[AsyncModel]:
        """All models that the server keeps, by name, asked for `limit` at a time."""
        async for entry in self._entries("models", limit):
            yield AsyncModel(self, ModelSummary.from_wire(entry))

    async def ops(self) -> dict[str, Any]:
        """The server's catalogue: `opset`, and `ops` with their operands, attributes, gradients and dtypes."""
        return await self._run(flows.answered(self._policy, requests.catalogue(), dict))

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
    """A call of a client as a call of a graph that is registered with it."""

    def __init__(self, call: Callable[Concatenate[AsyncClient, Graph | Registered, P], Awaited[T]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(self, graph: AsyncRegisteredGraph, owner: type[AsyncRegisteredGraph]) -> Callable[P, Awaited[T]]:
        """The call on this graph."""
        return partial(self._call, graph.client, graph)


class AsyncRegisteredGraph(Registered):
    """A graph that the server keeps, with all calls on it: each takes what the client's call takes but the graph."""

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
    """A model that the server keeps, called by the names of its inputs, with results by those of its outputs."""

    def __init__(self, client: AsyncClient, summary: ModelSummary, graph: Registered | None = None) -> None:
        super().__init__(summary, graph)
        self.client = client

    async def forward(
        self,
        inputs: Mapping[str, ArrayLike | Resident] = NO_INPUTS,
        *,
        outputs: Sequence[str] | None = None,
        **asked: Unpack[fields.CallFields],
    ) -> NamedValues:
        """Values of outputs, of all of them unless some are named."""
        feeds, nodes = self.feeds(inputs), self.nodes_of(outputs)
        answer = await self.client.forward(await self._registered(), feeds, outputs=nodes, **asked)
        return NamedValues(answer, self)

    async def gradients(
        self,
        inputs: Mapping[str, ArrayLike | Resident] = NO_INPUTS,
        *,
        of: str | None = None,
        wrt: Sequence[str] | None = None,
        **asked: Unpack[fields.CallFields],
    ) -> NamedGradients:
        """The value of one output, by default the only one, and its gradients, by default by all inputs of floats."""
        feeds, node, leaves = self.feeds(inputs), self.node_of(of), self.leaves_of(wrt)
        answer = await self.client.gradients(await self._registered(), feeds, of=node, wrt=leaves, **asked)
        return NamedGradients(answer, self)

    async def delete(self) -> ModelSummary:
        """Have the server keep it no more, whatever version is there. The answer is what there was."""
        return await self.client.delete_model(self)

    async def _registered(self) -> Registered:
        if self._graph is None:
            self._graph = await self.client.registered(self.graph_id)
        return self._graph
