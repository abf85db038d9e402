"""The paths of registered graphs. They are kept as the bytes that a worker has made of them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.calls import calls
from service.compute.registration import REGISTER
from service.errors import Refusal
from service.graphs import Registered
from service.pages.operations import OF_GRAPH
from service.web.responses import from_reply
from service.web.routes import reply_to, state_of
from service.wire.media import JSON, SAFETENSORS

GRAPHS: Final = "/v1/graphs"

graph_router: Final = APIRouter()


@graph_router.post(GRAPHS, operation_id=REGISTER, tags=["graphs"])
async def register_graph(request: Request) -> Response:
    """Keep a graph."""
    if request.state.media.accepted == SAFETENSORS:
        detail = f"the answer is {JSON}, which Accept: {SAFETENSORS} rules out"
        raise Refusal("not_acceptable", detail, expected=JSON, got=SAFETENSORS)
    reply = await reply_to(REGISTER, request)
    if reply.status != 200:
        return from_reply(reply)
    record = reply.body
    reply.release()
    graph, is_new = state_of(request).graphs.put(Registered.of(record))
    location = {"Location": f"{GRAPHS}/{graph.graph_id}"}
    return Response(graph.record, 201 if is_new else 200, location, media_type=JSON)


@graph_router.get(GRAPHS, operation_id="listGraphs", tags=["graphs"])
async def list_graphs(request: Request) -> Response:
    """All graphs that are kept.

    Without their nodes, in the order in which they came.
    """
    listed = b",".join(graph.summary for graph in state_of(request).graphs)
    return Response(b'{"graphs":[' + listed + b"]}", media_type=JSON)


@graph_router.get(GRAPHS + "/{graph_id}", operation_id="getGraph", tags=["graphs"])
async def get_graph(request: Request) -> Response:
    """One graph, whole."""
    return Response(_named(request).record, media_type=JSON)


@graph_router.delete(GRAPHS + "/{graph_id}", operation_id="deleteGraph", tags=["graphs"])
async def delete_graph(request: Request) -> Response:
    """Forget a graph.

    What computes with it at the time goes on. The answer is what was forgotten.
    """
    gone = state_of(request).graphs.delete(request.path_params["graph_id"])
    return Response(gone.summary, media_type=JSON)


def add_calls_of_graphs(to: APIRouter) -> None:
    """A path for each call, on a graph that is named."""
    for call in calls().values():
        to.add_api_route(
            f"{GRAPHS}/{{graph_id}}/{call.name}",
            _endpoint(call.name),
            methods=["POST"],
            operation_id=f"{call.name}{OF_GRAPH}",
            tags=[call.tag],
            description=f"{inspect.cleandoc(call.__doc__ or '')} Of a registered graph.",
        )


def _endpoint(call: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return from_reply(await reply_to(call, request, request.path_params["graph_id"]))

    return endpoint


def _named(request: Request) -> Registered:
    """The graph that the path names. Raises Refusal: not_found."""
    return state_of(request).graphs.get(request.path_params["graph_id"])


add_calls_of_graphs(graph_router)
