"""Routes of computing calls, the catalogue, health and metrics. They pass raw bytes on, without parsing them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from engine import printable
from service.api.calls import calls
from service.api.media import JSON
from service.core.errors import Refusal
from service.observe.store import StateStore
from service.store.changes import Change
from service.store.idempotency import KEY_HEADER, Repetition
from service.store.tables import no_graph
from service.web.head import parameters_of
from service.web.repetition import answer_changes, answer_once
from service.web.responses import from_reply, json_response
from service.web.state import state_of, store_of
from service.web.tasks import make_upload_task, receive_body, tenant_of_request
from service.workers.pool import run_task
from service.workers.task import Reply, Task

router: Final = APIRouter()
#: routes that are on the metrics listener, too
health_router: Final = APIRouter()
#: routes that are on the metrics listener, or beside all others if there is none
metrics_router: Final = APIRouter()


def add_calls(router: APIRouter, prefix: str, suffix: str = "", note: str = "") -> None:
    """Add a route for each call. If `prefix` contains `{graph_id}`, it is for registered graphs.

    `note` is appended to the summary of each operation.
    """
    for call in calls().values():
        summary, _, rest = inspect.cleandoc(call.__doc__ or "").partition("\n")
        router.add_api_route(
            f"{prefix}/{call.name}",
            _endpoint(call.name),
            methods=["POST"],
            operation_id=f"{call.name}{suffix}",
            tags=[call.tag],
            description=f"{summary}{note}\n{rest}",
        )


def _endpoint(call: str) -> Callable[[Request], Awaitable[Response]]:
    """Make the endpoint of a computing call, on its own graph or on a registered one."""

    async def endpoint(request: Request) -> Response:
        state, graph_id = state_of(request), request.path_params.get("graph_id")
        parameters_of(request.scope["query_string"])
        graph = None
        if graph_id is not None:
            graph = await state.store.graph(request.state.caller.namespace, graph_id, request.state.expires)
        unknown = None if graph_id is None or graph is not None else no_graph(graph_id)
        if unknown is not None and KEY_HEADER not in request.headers:
            raise unknown
        upload = await receive_body(request, state.pool, state.settings, tenant_of_request(request))
        task = make_upload_task(call, request, upload, graph=graph)

        async def run(repetition: Repetition | None) -> Response:
            if unknown is not None:  # now; the graph may have existed when the call came for the first time
                upload.release()
                raise unknown
            request.state.reply = reply = await run_task(state.pool, task)
            return from_reply(await settle_reply(request, state.store, task, reply, repetition))

        return await answer_once(request, state.store, run, upload)

    return endpoint


async def settle_reply(
    request: Request, store: StateStore, task: Task, reply: Reply, repetition: Repetition | None
) -> Reply:
    """Return the reply once `store` has committed its results, or the refusal that replaces it."""
    try:
        changes = answer_changes(store.answers, repetition, reply) if reply.stored else ()
    except BaseException:
        reply.release()
        raise
    return await store.settle_and_wait(task, request.state.caller, reply, more=changes)


async def commit_deletion(request: Request, change: Change, write_body: Callable[[Any], bytes]) -> Response:
    """Commit a deletion, and answer with the body that `write_body` makes of the deleted value.

    Calls that are using the value go on. Raises the exceptions of `change.check` and of a commit.
    """
    store = store_of(request)

    async def run(repetition: Repetition | None) -> Response:
        reply = Reply(200, JSON, [])

        def complete(replaced: Sequence[Any]) -> Sequence[Change]:
            reply.parts = [write_body(replaced[0])]
            return [change, *answer_changes(store.answers, repetition, reply)]

        changes = [change, *answer_changes(store.answers, repetition, reply)]
        await store.commit(changes, request.state.expires, request.state.timeout, complete)
        return from_reply(reply)

    return await answer_once(request, store, run)


add_calls(router, "/v1")


@router.get("/v1/ops", operation_id="listOps", tags=["catalogue"])
async def list_ops(request: Request) -> Response:
    """List all ops

    Returns the operands, attributes and dtypes of each op, the formula of its gradient, and its names in other systems.
    """
    return json_response(state_of(request).catalogue.content)


@router.get("/v1/ops/{name}", operation_id="getOp", tags=["catalogue"])
async def get_op(request: Request) -> Response:
    """Get an op

    Accepts the name of the op or any alias. Case does not matter.
    """
    name, catalogue = request.path_params["name"], state_of(request).catalogue
    op = catalogue.find(name)
    if op is None:
        raise no_such_op(name, catalogue.hint(name))
    return json_response(op)


def no_such_op(name: str, hint: str | None) -> Refusal:
    """Return the refusal of an unknown op, with a suggestion if there is one."""
    shown_name, advice = printable(name), hint or "GET /v1/ops lists all ops"
    return Refusal("not_found", f"there is no op called “{shown_name}”; {advice}", expected="an op", got=shown_name)


@health_router.get("/health/live", operation_id="live", tags=["health"])
async def live() -> Response:
    """Check whether the process is alive

    Restart a server that fails this check. A server that passes it may still be unable to accept work.
    """
    return json_response({"status": "live"})


@health_router.get("/health/ready", operation_id="ready", tags=["health"])
async def ready(request: Request) -> Response:
    """Check whether the server accepts work

    200 means that a worker has computed something on the device within the last second and that the server owns its
    state. 503 means that the server is shutting down, that its workers do not respond, or that another server owns the
    state.
    """
    state = state_of(request)
    await state.readiness.check()
    return json_response({"status": "ready", "device": state.pool.device})


@metrics_router.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Return the metrics for Prometheus."""
    text, media_type = state_of(request).metrics.text(request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": media_type})
