"""Routes of other protocols. A route finds the model that its path names, if any, and passes the body on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from engine import printable
from service.core.errors import Refusal
from service.facades.protocols import Facade, FacadeRoute, Listing
from service.observe.store import StoreService
from service.store.tables import no_graph
from service.web.head import parameters_of
from service.web.responses import from_reply, json_response
from service.web.state import state_of, store_of, wait_until_current
from service.web.tasks import make_upload_task, receive_body, tenant_of_request
from service.workers.pool import run_task
from service.workers.task import FindModel, ModelOfGraph, Task

_Endpoint = Callable[[Request], Awaitable[Response]]


def facade_router(facades: Iterable[Facade]) -> APIRouter:
    """Return the routes of these protocols, which are not in our OpenAPI document."""
    router = APIRouter()
    for facade in facades:
        for route in facade.routes:
            router.add_api_route(route.path, _call(route), methods=[route.method], include_in_schema=False)
        for listing in facade.listings:
            router.add_api_route(listing.path, _list(listing), methods=["GET"], include_in_schema=False)
        for path, status in facade.health.items():
            router.add_api_route(path, _health(status), methods=["GET"], include_in_schema=False)
    return router


def _call(route: FacadeRoute) -> _Endpoint:
    async def endpoint(request: Request) -> Response:
        state = state_of(request)
        parameters_of(request.scope["query_string"], *route.ignored)
        find = _finder(store_of(request), request.state.caller.namespace)
        upload = await receive_body(request, state.pool, state.settings, tenant_of_request(request))
        task = make_upload_task(route.call, request, upload, subject=route.read_head(request.headers.get))
        task.find_model = find
        if (name := request.path_params.get("name")) is not None:
            try:
                await wait_until_current(request)
                task.set_model(name)
                _check_version(request, name, task)
            except BaseException:
                upload.release()
                raise
        reply = await run_task(state.pool, task)
        request.state.reply = reply = await store_of(request).settle_and_wait(task, request.state.caller, reply)
        return from_reply(reply)

    return endpoint


def _check_version(request: Request, name: str, task: Task) -> None:
    """Raise Refusal (not_found) if the path names another version of a model than the existing one."""
    version = request.path_params.get("version")
    if version is None:
        return
    graph_id = store_of(request).models.get(task.namespace, name).graph_id
    if version != graph_id:
        shown_version = printable(version)
        detail = f"the model “{name}” has no version “{shown_version}”; its version is {graph_id}"
        raise Refusal("not_found", detail, expected=graph_id, got=shown_version)


def _list(listing: Listing) -> _Endpoint:
    async def endpoint(request: Request) -> Response:
        await wait_until_current(request)
        names = store_of(request).models.within(request.state.caller.namespace)
        return json_response(listing.write_answer(sorted(names)))

    return endpoint


def _health(status: str) -> _Endpoint:
    async def endpoint(request: Request) -> Response:
        if status == "ready":
            await state_of(request).readiness.check()
        return json_response({status: True})

    return endpoint


def _finder(store: StoreService, namespace: str) -> FindModel:
    def find(name: str) -> ModelOfGraph:
        model = store.models.get(namespace, name)
        graph = store.graphs.find((namespace, model.graph_id))
        if graph is None:  # the server prevents that, but a state may have been restored in part
            raise no_graph(model.graph_id)
        return ModelOfGraph(model.record, graph.key, graph.record)

    return find
