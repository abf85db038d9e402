"""Paths between servers, in front of all others. Without the secret, they do not exist."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hmac import compare_digest
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.media import JSON
from service.cluster.owners import Owners
from service.cluster.protocol import (
    ADDRESS_HEADER,
    ALIVE,
    CALLER_HEADER,
    ELAPSED_HEADER,
    MISDIRECTED,
    PASSED,
    PROCESS_HEADER,
    PROTOCOL,
    PROTOCOL_HEADER,
    SECRET_HEADER,
    STORE_HEADER,
    Moved,
    caller_of,
    message_of,
    misdirected,
    read_message,
    record_of,
    row_of_record,
    row_of_refusal,
    row_of_version,
    speaks,
    stored_of,
)
from service.cluster.watch import Watch
from service.core.errors import Refusal, internal_error
from service.core.keys.caller import Caller, KeyScope
from service.core.prefix import CLUSTER_PREFIX, path_within
from service.observe.store import settling
from service.store.changes import ALWAYS, new_answer
from service.store.idempotency import Repetition
from service.store.writes import GraphWrite, TensorWrite, nbytes_of
from service.web.middleware import limit_body
from service.web.responses import slices_to_send
from service.web.routing import route_path
from service.workers.frames import INLINE
from service.workers.task import Reply, Task

_logger = logging.getLogger("gradserve.cluster")

#: seconds to write the pending changes of a shard that is released to another server
_LEAVE: Final = 10.0

#: response to a question: the head of a message, and the bytes after it
PeerResponse = tuple[Mapping[str, Any], Sequence[bytes | memoryview]]


class PeerQuestions:
    """Answers to questions of other servers, for the shards that this server owns."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        #: handlers of questions: head, bytes after it, deadline → response. They raise Moved, Refusal
        self.by_name: Mapping[str, Callable[[dict[str, Any], memoryview, float], Awaitable[PeerResponse]]] = {
            "versions": self._versions,
            "graph": self._graph,
            "answer": self._answer,
            "proposal": self._proposal,
            "release": self._release,
            "owner": self._owner,
        }

    async def _versions(self, question: dict[str, Any], _: memoryview, expires: float) -> PeerResponse:
        """Return the etags of all names at one moment, and the versions that the other server does not have."""
        namespace = question["namespace"]
        store = await self._owners.owned_store(namespace, expires)
        versions = await store.versions(namespace, question["names"], expires)
        missing = {version.etag: version for version in versions.values() if version.etag not in question["known"]}
        etags = {name: version.etag for name, version in versions.items()}
        known = {(TensorWrite, namespace, name) for name in versions}
        promised = store.commits.promise(known) if len(known) == len(question["names"]) else 0.0
        sent = [row_of_version(version) for version in missing.values()]
        head = {"versions": etags, "sent": sent, "promised": promised}
        return head, [version.memory.view for version in missing.values()]

    async def _graph(self, question: dict[str, Any], _: memoryview, expires: float) -> PeerResponse:
        """Return the key of a graph, and the graph unless the other server has it."""
        namespace = question["namespace"]
        store = await self._owners.owned_store(namespace, expires)
        graph = await store.graph(namespace, question["graph_id"], expires)
        if graph is None:
            return {"key": None}, ()
        promised = store.commits.promise({(GraphWrite, namespace, graph.graph_id)})
        return {"key": graph.key, "promised": promised}, () if graph.key == question["known"] else (graph.record,)

    async def _answer(self, question: dict[str, Any], _: memoryview, expires: float) -> PeerResponse:
        """Return the stored response of a call, if there is one."""
        repetition = Repetition(*question["asked"])
        store = await self._owners.owned_store(repetition.namespace, expires)
        await store.commits.fence.wait_until_current(expires)
        record = store.answers.look_up(repetition)
        return ({"record": None}, ()) if record is None else ({"record": row_of_record(record)}, (record.body,))

    async def _proposal(self, question: dict[str, Any], blobs: memoryview, expires: float) -> PeerResponse:
        """Store the results of another server's task."""
        namespace = question["namespace"]
        store = await self._owners.owned_store(namespace, expires)
        # The bytes of the message are those of all tensors in order, then those of all stored responses.
        stored = [stored_of(row) for row in question["stored"]]
        values, position = [], 0
        for tensor in stored:
            values.append(blobs[position : position + nbytes_of(tensor.dtype, tensor.shape)])
            position += len(values[-1])
        changes = []
        for row in question["records"]:
            changes.append(new_answer(store.answers, record_of(row, bytes(blobs[position : position + row["body"]]))))
            position += row["body"]
        task = Task("proposal", b"", question["request_id"], question["timeout"], expires, namespace=namespace)
        # The other server has checked that its caller may write.
        caller = Caller("", namespace, frozenset([KeyScope.WRITE]))
        reply = Reply(200, JSON, [b""], stored=stored, stored_data=values)
        result = await settling(store.settle, task, caller, reply, ALWAYS, changes)
        if result is reply:
            return {"kept": True}, ()
        return {"kept": False, "status": result.status, "headers": result.headers}, result.parts

    async def _release(self, question: dict[str, Any], _: memoryview, __: float) -> PeerResponse:
        """Hand a shard over to the other server if that one uses it much more than all others together."""
        shard, address = int(question["shard"]), question.get("address", "")
        hands_over = self._owners.should_hand_over(shard, int(question["asked"]), address)
        if hands_over:
            self._owners.hand_over(shard, address, _LEAVE)
        return {"released": hands_over}, ()

    async def _owner(self, question: dict[str, Any], _: memoryview, expires: float) -> PeerResponse:
        """Return the owner of a shard; take the shard over if that is the asking server, which is blind."""
        owner = await self._owners.owner_for(question["address"], int(question["shard"]), expires)
        return {"owner": owner}, ()


class PeerApplication:
    """Application that answers other servers. Forwarded requests go to `forwarded`, everything else to `app`."""

    def __init__(
        self,
        app: ASGIApp,
        forwarded: ASGIApp,
        routes: Sequence[BaseRoute],
        questions: PeerQuestions,
        secret: str,
        max_bytes: int,
        watch: Watch,
    ) -> None:
        """Questions have at most `max_bytes` bytes; `watch` is told who asks."""
        self._app, self._forwarded, self._routes = app, forwarded, routes
        self._questions, self._secret, self._max_bytes = questions, secret.encode(), max_bytes
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = path_within(scope) if scope["type"] == "http" else ""
        headers = Headers(scope=scope) if path.startswith(CLUSTER_PREFIX) else None
        # A wrong secret falls through to the routes, which answer 404: outsiders cannot tell that the paths exist.
        if headers is None or not compare_digest(headers.get(SECRET_HEADER, "").encode(), self._secret):
            await self._app(scope, receive, send)
        elif not speaks(version := headers.get(PROTOCOL_HEADER, "")):
            _logger.error(
                "another server uses version %r of the protocol between servers, but this server uses version %d",
                version,
                PROTOCOL,
            )
            await _respond(send, 409, [b""])
        elif path.startswith(f"{PASSED}/"):
            self._watch.meet(headers.get(ADDRESS_HEADER))
            await self._serve_forwarded(scope, receive, send, headers)
        elif path == CLUSTER_PREFIX + ALIVE:
            self._watch.meet(headers.get(ADDRESS_HEADER))
            fields = {PROCESS_HEADER: self._watch.process}
            if self._watch.reaches_store:
                fields[STORE_HEADER] = "1"
            await _respond(send, 200, [b""], [(k.lower().encode(), v.encode()) for k, v in fields.items()])
        else:
            self._watch.meet(headers.get(ADDRESS_HEADER))
            await self._answer(path.removeprefix(CLUSTER_PREFIX), scope, receive, send)

    async def _answer(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        status = 200
        try:
            question, blobs = read_message(await Request(scope, limit_body(receive, self._max_bytes)).body())
            answer = self._questions.by_name[name]
            parts = message_of(*await answer(question, blobs, time.monotonic() + float(question["left"])))
        except ClientDisconnect:
            return
        except Moved as moved:
            await respond_misdirected(send, moved)
            return
        except Refusal as refusal:
            # As a message, so that the other server raises the same refusal to its client.
            status, parts = refusal.status, message_of({"refused": row_of_refusal(refusal)})
        except Exception:
            _logger.exception("cannot answer a query of another server: %s", name)
            status, parts = 500, message_of({"refused": row_of_refusal(internal_error())})
        await _respond(send, status, parts)

    async def _serve_forwarded(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """Serve a request that another server has authenticated, for the caller that it states."""
        inner: dict[str, Any] = {**scope, "path": path_within(scope).removeprefix(PASSED), "root_path": ""}
        inner["raw_path"] = scope["raw_path"][scope["raw_path"].index(PASSED.encode()) + len(PASSED) :]
        caller = caller_of(headers[CALLER_HEADER])
        state = {"arrived": time.monotonic(), **scope.get("state", {})}
        state["arrived"] -= float(headers.get(ELAPSED_HEADER, "0"))
        inner["state"] = {**state, "caller": caller, "prefix": "", "passed": True}
        inner["state"]["route_path"] = route_path(inner, self._routes)

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[PROTOCOL_HEADER] = str(PROTOCOL)
            await send(message)

        await self._forwarded(inner, receive, marked)


async def respond_misdirected(send: Send, moved: Moved) -> None:
    """Answer another server that this one is not the owner."""
    fields, body = misdirected(moved)
    await send({"type": "http.response.start", "status": MISDIRECTED, "headers": fields})
    await send({"type": "http.response.body", "body": body})


async def _respond(
    send: Send, status: int, parts: Sequence[bytes | memoryview], more: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    nbytes = sum(map(len, parts))
    version = (PROTOCOL_HEADER.lower().encode(), str(PROTOCOL).encode())
    fields = [version, (b"content-type", b"application/octet-stream"), (b"content-length", b"%d" % nbytes), *more]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    if nbytes <= INLINE:  # in one write, since each wakes the other server
        await send({"type": "http.response.body", "body": b"".join(parts)})
        return
    for part in slices_to_send(parts):
        await send({"type": "http.response.body", "body": bytes(part), "more_body": True})
    await send({"type": "http.response.body", "body": b""})
