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
from service.web.head import Media, names_of_page, page_of, parameters_of, timeout_of
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
    """Keep a model.

    Under this name, in place of the one before: a registered graph, with names for what goes in and what comes out,
    and resident tensors for the leaves that are bound. All that is wrong with it is said at once. It is on disk before
    the answer, where the server has one for its state.
    """
    state, name, condition = state_of(request), _name(request), condition_of(request)
    store = store_of(request)
    if request.state.media.body_type != JSON:
        got = request.state.media.body_type
        raise Refusal("unsupported_media_type", f"a model is sent as {JSON}, not {got}", expected=JSON, got=got)
    timeout = timeout_of(request.scope["query_string"], state.settings.timeout_ms)
    upload = await receive_body(request, state.pool, state.settings, tenant_of_request(request))
    read = make_upload_task(READ_MODEL, request, timeout, upload, subject=name)

    async def run(repetition: Repetition | None) -> Response:
        reply = await run_task(state.pool, read)
        if reply.status == 200:
            task = _check_task(request, read, reply)
            reply = await run_task(state.pool, task)
            if reply.status == 200:
                reply = await _store_model(request, task, reply, condition, repetition)
        return from_reply(reply)

    return await answer_once(request, store, run, upload, timeout)


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
    """A model that is kept."""
    name, condition = _name(request), condition_of(request)
    parameters_of(request.scope["query_string"], ())
    await wait_until_current(request)
    model = store_of(request).models.get(request.state.caller.namespace, name)
    unmodified = not_modified(condition, name, model.etag, "model")
    return unmodified or Response(model.record, headers=etag_header(model.etag), media_type=JSON)


# HEAD: the same without the body of the response.
model_router.add_api_route(_MODEL, get_model, methods=["HEAD"], include_in_schema=False)


@model_router.delete(_MODEL, operation_id="deleteModel", tags=["models"])
async def delete_model(request: Request) -> Response:
    """Keep a model no more.

    Its graph and the tensors that are bound stay. What computes with it at the time goes on. The answer is what there
    was.
    """
    key = request.state.caller.namespace, _name(request)
    parameters_of(request.scope["query_string"], ())
    change = model_deletion(store_of(request).models, key, condition_of(request))
    return await commit_deletion(request, change, lambda deleted: deleted.record)


@model_router.get(MODELS, operation_id="listModels", tags=["models"])
async def list_models(request: Request) -> Response:
    """The models that are kept.

    By name, and page by page: where there are more, `next` says what to state as `after`.
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
