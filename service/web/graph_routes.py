"""Routes of registered graphs, which are stored as the bytes that a worker has written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile, islice
from typing import Any, Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.api.media import JSON, SAFETENSORS
from service.core.errors import Refusal
from service.observe.store import StoreService
from service.store.changes import Change, graph_deletion, new_graph
from service.store.idempotency import Repetition
from service.store.tables import Registered
from service.web.head import page_of, parameters_of
from service.web.repetition import answer_changes, answer_once
from service.web.responses import from_reply
from service.web.routes import add_calls, commit_deletion
from service.web.state import state_of, store_of, wait_until_current
from service.web.tasks import make_upload_task, receive_body, tenant_of_request
from service.workers.pool import run_task
from service.workers.task import REGISTER, Reply, Task

GRAPHS: Final = "/v1/graphs"
#: suffix of the ids of operations on a registered graph
OF_GRAPH: Final = "OfGraph"

graph_router: Final = APIRouter()


@graph_router.post(GRAPHS, operation_id=REGISTER, tags=["graphs"])
async def register_graph(request: Request) -> Response:
    """Register a graph

    The server stores the graph under its hash, the `graph_id`. If the server stores its state on disk, the graph is on
    disk before the server responds.
    """
    if request.state.media.answer_type == SAFETENSORS:
        detail = f"the response is {JSON}, which Accept: {SAFETENSORS} excludes"
        raise Refusal("not_acceptable", detail, expected=JSON, got=SAFETENSORS)
    state, store = state_of(request), store_of(request)
    parameters_of(request.scope["query_string"])
    upload = await receive_body(request, state.pool, state.settings, tenant_of_request(request))
    task = make_upload_task(REGISTER, request, upload)

    async def run(repetition: Repetition | None) -> Response:
        reply = await run_task(state.pool, task)
        if reply.status == 200:
            reply = await _store_graph(store, task, reply, repetition)
        return from_reply(reply)

    return await answer_once(request, store, run, upload)


async def _store_graph(store: StoreService, task: Task, reply: Reply, repetition: Repetition | None) -> Reply:
    """Store the graph of this record, which a worker has written, and make the reply. Raises Refusal."""
    graph = Registered.parse(reply.body)
    reply.release()
    await store.commits.fence.wait_until_current(task.expires)
    key = (task.namespace, graph.graph_id)
    location = (("Location", f"{GRAPHS}/{graph.graph_id}"),)
    if (existing := store.graphs.find(key)) is not None:
        return Reply(200, JSON, [existing.record], location)
    change, response_reply = new_graph(store.graphs, key, graph), Reply(201, JSON, [graph.record], location)

    def complete(replaced: Sequence[Any]) -> Sequence[Change]:
        if (first := replaced[0]) is not None:
            response_reply.status, response_reply.parts = 200, [first.record]
        return [change, *answer_changes(store.answers, repetition, response_reply)]

    changes = [change, *answer_changes(store.answers, repetition, response_reply)]
    await store.commit(changes, task.expires, task.timeout, complete)
    return response_reply


@graph_router.get(GRAPHS, operation_id="listGraphs", tags=["graphs"])
async def list_graphs(request: Request) -> Response:
    """List registered graphs

    Returns a page of graphs without their nodes, in the order of registration. If there are more, pass the value of
    `next` as `after` to get the next page.
    """
    limit, after = page_of(request.scope["query_string"])
    await wait_until_current(request)
    namespace, graphs = request.state.caller.namespace, store_of(request).graphs
    graphs_after = iter(graphs.within(namespace).values())
    if after is not None:
        graphs.get(namespace, after)
        graphs_after = islice(dropwhile(lambda graph: graph.graph_id != after, graphs_after), 1, None)
    page = list(islice(graphs_after, limit + 1))
    next_field = b',"next":"%b"' % page[limit - 1].graph_id.encode() if len(page) > limit else b""
    return Response(
        b'{"graphs":[%b]%b}' % (b",".join(graph.summary for graph in page[:limit]), next_field), media_type=JSON
    )


@graph_router.get(GRAPHS + "/{graph_id}", operation_id="getGraph", tags=["graphs"])
async def get_graph(request: Request) -> Response:
    """Get a registered graph"""
    await wait_until_current(request)
    graph = store_of(request).graphs.get(request.state.caller.namespace, request.path_params["graph_id"])
    return Response(graph.record, media_type=JSON)


@graph_router.delete(GRAPHS + "/{graph_id}", operation_id="deleteGraph", tags=["graphs"])
async def delete_graph(request: Request) -> Response:
    """Delete a registered graph

    Calls that are using the graph continue. Returns the summary of the deleted graph.
    """
    store = store_of(request)
    key = request.state.caller.namespace, request.path_params["graph_id"]
    return await commit_deletion(
        request, graph_deletion(store.graphs, store.models, key), lambda deleted: deleted.summary
    )


add_calls(graph_router, GRAPHS + "/{graph_id}", OF_GRAPH, " (registered graph)")
