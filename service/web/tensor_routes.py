"""Routes of resident tensors. Workers read and write their elements; here they are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.api.media import JSON
from service.store.changes import Change, tensor_deletion
from service.store.idempotency import Repetition
from service.store.tables import TensorVersion, require_name
from service.store.writes import Stored, TensorWrite
from service.web.head import Media, choice_in, names_of_page, page_of, parameters_of
from service.web.repetition import answer_changes, answer_once
from service.web.responses import etag_header, from_reply, json_response, not_modified
from service.web.routes import commit_deletion
from service.web.state import condition_of, state_of, store_of, wait_until_current
from service.web.tasks import Requester, make_task, make_upload_task, receive_body, tenant_of_request
from service.workers.pool import run_task
from service.workers.task import GET_TENSOR, PUT_TENSOR

TENSORS: Final = "/v1/tensors"
_TENSOR: Final = TENSORS + "/{name}"

tensor_router: Final = APIRouter()


@tensor_router.put(_TENSOR, operation_id=PUT_TENSOR, tags=["tensors"])
async def put_tensor(request: Request) -> Response:
    """Store a tensor

    Stores the tensor under this name and replaces the previous version, if any. The body is a tensor in JSON, or a
    safetensors file that contains one tensor. The server responds after the tensor is on disk. With `durable=false` it
    responds at once, and the tensor is on disk within `written_within_ms` milliseconds.
    """
    state, store, name = state_of(request), store_of(request), _name(request)
    parameters = parameters_of(request.scope["query_string"], "durable")
    durable = choice_in(parameters, "durable", ("true", "false")) == "true"
    condition = condition_of(request)
    upload = await receive_body(request, state.pool, state.settings, tenant_of_request(request))
    task = make_upload_task(PUT_TENSOR, request, upload, subject=name)

    async def run(repetition: Repetition | None) -> Response:
        reply = await run_task(state.pool, task)
        if not reply.stored:
            return from_reply(reply)
        stored = replace(reply.stored[0], durable=durable)
        reply.stored = [stored]
        reply.headers = tuple(etag_header(stored.etag).items())
        reply.parts = [orjson.dumps(stored.summary(None if durable else state.settings.write_behind_ms))]

        def complete(replaced: Sequence[Any]) -> Sequence[Change]:
            reply.status = 201 if replaced[0] is None else 200
            return answer_changes(store.answers, repetition, reply)

        changes = answer_changes(store.answers, repetition, reply)
        return from_reply(await store.settle_and_wait(task, request.state.caller, reply, condition, changes, complete))

    return await answer_once(request, store, run, upload)


@tensor_router.get(_TENSOR, operation_id=GET_TENSOR, tags=["tensors"])
async def get_tensor(request: Request) -> Response:
    """Get a tensor"""
    state, name = state_of(request), _name(request)
    parameters = parameters_of(request.scope["query_string"], "encoding")
    body = orjson.dumps({"tensor_id": name, "encoding": choice_in(parameters, "encoding", ("json", "base64"))})
    await wait_until_current(request)
    version, condition = store_of(request).tensors.get(request.state.caller.namespace, name), condition_of(request)
    if (unmodified := not_modified(condition, name, version.etag)) is not None:
        return unmodified
    requester, media = cast("Requester", request.state), Media(JSON, request.state.media.answer_type)
    timeout, tenant = request.state.timeout, tenant_of_request(request)
    task = make_task(GET_TENSOR, requester, tenant, timeout, media, body, subject=name)
    return from_reply(await run_task(state.pool, task))


@tensor_router.delete(_TENSOR, operation_id="deleteTensor", tags=["tensors"])
async def delete_tensor(request: Request) -> Response:
    """Delete a tensor

    Calls that are using the tensor continue. Returns the deleted tensor without its elements.
    """
    key = request.state.caller.namespace, _name(request)
    parameters_of(request.scope["query_string"])
    change = tensor_deletion(store_of(request).tensors, key, condition_of(request))
    return await commit_deletion(
        request, change, lambda deleted: orjson.dumps(_stored(key[1], deleted, durable=True).summary())
    )


@tensor_router.get(TENSORS, operation_id="listTensors", tags=["tensors"])
async def list_tensors(request: Request) -> Response:
    """List resident tensors

    Returns a page of tensors without their elements, by name. If there are more, pass the value of `next` as `after` to
    get the next page.
    """
    limit, after = page_of(request.scope["query_string"])
    store, settings = store_of(request), state_of(request).settings
    namespace = request.state.caller.namespace
    await wait_until_current(request)
    versions = store.tensors.within(namespace)
    names, next_name = names_of_page(versions, limit, after)
    summaries = []
    for name in names:
        durable = not store.commits.is_behind((TensorWrite, namespace, name))
        stored = _stored(name, versions[name], durable=durable)
        summaries.append(stored.summary(None if durable else settings.write_behind_ms))
    return json_response({"tensors": summaries} | ({} if next_name is None else {"next": next_name}))


def _name(request: Request) -> str:
    """Return the name in the path. Raises Refusal: invalid_field."""
    return require_name(request.path_params["name"], "the name of a tensor")


def _stored(name: str, version: TensorVersion, *, durable: bool) -> Stored:
    return Stored(name, version.etag, version.dtype, version.shape, durable=durable)
