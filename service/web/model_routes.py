"""Routes of models. Workers read and check their contents; here they are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.api.media import JSON
from service.core.errors import Refusal
from service.store.changes import Change, Condition, model_deletion, new_model
from service.store.idempotency import Repetition
from service.store.tables import StoredModel, graph_of_request, require_name
from service.web.head import Media, names_of_page, page_of, parameters_of
from service.web.repetition import answer_changes, answer_once
from service.web.responses import etag_header, from_reply, not_modified
from service.web.routes import commit_deletion
from service.web.state import condition_of, state_of, store_of, wait_until_current
from service.web.tasks import Requester, make_task, make_upload_task, receive_body, tenant_of_request
from service.workers.pool import run_task
from service.workers.task import PUT_MODEL, READ_MODEL, Reply, Task

MODELS: Final = "/v1/models"
_MODEL: Final = MODELS + "/{name}"

model_router: Final = APIRouter()


@model_router.put(_MODEL, operation_id=PUT_MODEL, tags=["models"])
async def put_model(request: Request) -> Response:
    """Store a model

    Stores the model under this name and replaces the previous version, if any. A model is a registered graph with names
    for its inputs and outputs, and with resident tensors for its bound leaves. The server reports all errors of the
    request at once. If the server stores its state on disk, the model is on disk before the server responds.
    """
    state, name, condition = state_of(request), _name(request), condition_of(request)
    store = store_of(request)
    if request.state.media.body_type != JSON:
        got = request.state.media.body_type
        raise Refusal("unsupported_media_type", f"a model must be sent as {JSON}, not {got}", expected=JSON, got=got)
    parameters_of(request.scope["query_string"])
    upload = await receive_body(request, state.pool, state.settings, tenant_of_request(request))
    read = make_upload_task(READ_MODEL, request, upload, subject=name)

    async def run(repetition: Repetition | None) -> Response:
        reply = await run_task(state.pool, read)
        if reply.status == 200:
            task = _check_task(request, read, reply)
            reply = await run_task(state.pool, task)
            if reply.status == 200:
                reply = await _store_model(request, task, reply, condition, repetition)
        return from_reply(reply)

    return await answer_once(request, store, run, upload)


def _check_task(request: Request, read: Task, reply: Reply) -> Task:
    """Make the task that checks a model against its graph, if that is registered."""
    body, requester = reply.body, cast("Requester", request.state)
    reply.release()
    graph = store_of(request).graphs.find((read.namespace, graph_of_request(body)))
    media, tenant = Media(JSON, JSON), tenant_of_request(request)
    return make_task(PUT_MODEL, requester, tenant, read.timeout, media, body, graph=graph, subject=read.subject)


async def _store_model(
    request: Request, task: Task, reply: Reply, condition: Condition, repetition: Repetition | None
) -> Reply:
    """Store the model of this record, which a worker has written, and make the reply. Raises Refusal."""
    store, model, key = store_of(request), StoredModel.parse(reply.body), (task.namespace, task.subject or "")
    reply.release()
    await store.commits.fence.wait_until_current(task.expires)
    response_reply = Reply(201, JSON, [model.record], tuple(etag_header(model.etag).items()))
    change = new_model(store.models, store.graphs, key, model, condition)

    def complete(replaced: Sequence[Any]) -> Sequence[Change]:
        response_reply.status = 201 if replaced[0] is None else 200
        return [change, *answer_changes(store.answers, repetition, response_reply)]

    changes = [change, *answer_changes(store.answers, repetition, response_reply)]
    await store.commit(changes, task.expires, task.timeout, complete)
    return response_reply


@model_router.get(_MODEL, operation_id="getModel", tags=["models"])
async def get_model(request: Request) -> Response:
    """Get a model"""
    name, condition = _name(request), condition_of(request)
    parameters_of(request.scope["query_string"])
    await wait_until_current(request)
    model = store_of(request).models.get(request.state.caller.namespace, name)
    unmodified = not_modified(condition, name, model.etag, "model")
    return unmodified or Response(model.record, headers=etag_header(model.etag), media_type=JSON)


@model_router.delete(_MODEL, operation_id="deleteModel", tags=["models"])
async def delete_model(request: Request) -> Response:
    """Delete a model

    Its graph and its bound tensors stay. Calls that are using the model continue. Returns the deleted model.
    """
    key = request.state.caller.namespace, _name(request)
    parameters_of(request.scope["query_string"])
    change = model_deletion(store_of(request).models, key, condition_of(request))
    return await commit_deletion(request, change, lambda deleted: deleted.record)


@model_router.get(MODELS, operation_id="listModels", tags=["models"])
async def list_models(request: Request) -> Response:
    """List models

    Returns a page of models, by name. If there are more, pass the value of `next` as `after` to get the next page.
    """
    limit, after = page_of(request.scope["query_string"])
    await wait_until_current(request)
    models = store_of(request).models.within(request.state.caller.namespace)
    names, next_name = names_of_page(models, limit, after)
    next_field = b"" if next_name is None else b',"next":"%b"' % next_name.encode()
    records = b",".join(models[name].record for name in names)
    return Response(b'{"models":[%b]%b}' % (records, next_field), media_type=JSON)


def _name(request: Request) -> str:
    """Return the name in the path. Raises Refusal: invalid_field."""
    return require_name(request.path_params["name"], "the name of a model")
