"""Idempotency keys: a repeated call gets the response of the first one, and does nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from service.core.errors import Refusal
from service.core.keys.caller import KeyScope
from service.core.prefix import path_within
from service.observe.store import StateStore, outcome
from service.store.changes import Change, new_answer
from service.store.idempotency import KEY_HEADER, AnswerTable, Repetition, check_key
from service.store.writes import AnswerRecord
from service.web.head import without_time
from service.web.tasks import BodyBuffer
from service.workers.memory import offload
from service.workers.task import Reply

#: status if another call has changed the same thing
CONFLICT: Final = 409
#: header of a stored response
REPLAYED: Final = "Idempotency-Replayed"
#: longest body that is searched for fields that are null: under 10 ms for the one with the most strings
_SEARCHED_BYTES: Final = 64 << 10
_NULL: Final = re.compile(rb":\s*null")
#: a string; if it is the name of a field that is null, the whole field, with the comma before it, or else after it
_FIELD: Final = re.compile(rb'(,\s*)?"[^"\\]*(?:\\.[^"\\]*)*"(\s*:\s*null(?=[\s,}])(?(1)|(?:\s*,\s*)?))?', re.DOTALL)


async def answer_once(
    request: Request,
    store: StateStore,
    answer: Callable[[Repetition | None], Awaitable[Response]],
    upload: BodyBuffer | None = None,
) -> Response:
    """Answer a request, with the stored response if its Idempotency-Key has been answered before.

    Keys of callers without the write scope are ignored: stored responses are about writes.

    Raises Refusal: invalid_field, conflict, not_ready. The body is freed unless `answer` is called.
    """
    caller = request.state.caller
    keys = request.headers.getlist(KEY_HEADER) if KeyScope.WRITE in caller.scopes else []
    if not keys:
        return await answer(None)
    try:
        key = check_key(", ".join(keys))
        repetition = Repetition(caller.namespace, key, await _fingerprint(request, upload))
        record = await store.begin(repetition, request.state.expires)
    except BaseException:
        _release(upload)
        raise
    if record is not None:
        _release(upload)
        return _replayed(record)
    refusal: Refusal | None = None
    try:
        response = await answer(repetition)
    except Refusal as raised:
        refusal, response = raised, Response(status_code=raised.status)
    finally:
        store.end(repetition)
    if response.status_code == CONFLICT:  # another server may have received the call too, and stored its response first
        record = await store.begin(repetition, request.state.expires)
        store.end(repetition)
        if record is not None:
            return _replayed(record)
    if refusal is not None:
        raise refusal
    return response


def _replayed(record: AnswerRecord) -> Response:
    return Response(record.body, record.status, {**dict(record.headers), REPLAYED: "true"}, record.media_type)


def answer_changes(answers: AnswerTable, repetition: Repetition | None, reply: Reply) -> Sequence[Change]:
    """Return the change that stores a response for its Idempotency-Key; none without a key.

    Raises Refusal: over_budget.
    """
    if repetition is None:
        return ()
    record = answers.record(repetition, reply.status, reply.media_type, reply.parts, reply.headers)
    return (new_answer(answers, record),)


def _release(upload: BodyBuffer | None) -> None:
    if upload is not None:
        upload.release()


async def _fingerprint(request: Request, upload: BodyBuffer | None) -> str:
    """Return a digest of everything that a request asks for: equal for equal requests.

    The timeout is left out, since a retry has less time left, and so are fields that are null, which mean absent ones.
    """
    digest = blake2b(digest_size=32)
    for part in (request.method, path_within(request.scope), without_time(request.scope["query_string"])):
        digest.update(f"{len(part)}:{part}".encode())
    body = b"" if upload is None else upload.body
    hashing = offload(asyncio.get_running_loop(), len(body), lambda: digest.update(_without_null_fields(body)))
    if hashing is not None:
        await outcome(hashing)
    return digest.hexdigest()


def _without_null_fields(body: bytes | memoryview) -> bytes | memoryview:
    """Cut the fields that are null out of a short JSON text; other bodies stay as they are."""
    if len(body) > _SEARCHED_BYTES or bytes(body[:1]) != b"{" or not _NULL.search(body):
        return body
    return _FIELD.sub(lambda field: field[0] if field[2] is None else b"", body)
