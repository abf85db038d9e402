"""Routing of requests about stored state: answered here if this server owns the shard, otherwise forwarded.

Graphs, tensors and models belong to a shard, whose owner alone may read and write it (see `owners`). Clients do not
know owners, and send a request to any server. `OwnerRouting` is the middleware that makes this work, for the routes in
`paths`. For a PUT that reaches B while A owns the shard of the caller's namespace:

    client → B   PUT /v1/tensors/w                     B authenticates the caller, and locates the owner: A
    B → A        PUT /cluster/passed/v1/tensors/w      with the caller's name, namespace and scopes in a header, and the
                                                       cluster's secret in another, instead of the client's key; a
                                                       third one has the seconds of the timeout that are over
    A            serves it with its store of the shard, through the same routes
    A → B → client                                     status, fields and body as they come

If A does not own the shard any more, it answers 421 with the address of the new owner, and B sends the request there.
To send it again, B keeps up to 1 MiB of the body (`_ReplayableBody`); after more than that the client gets `not_ready`
and has to repeat the request.

If A fails after it may have received the request, only GET and HEAD are sent again. For other methods the client gets
`unconfirmed`: A may have executed the request before it failed.

Computing calls are not forwarded. The server that receives one computes, and `shared_store` asks owners for the graphs
and tensors that it reads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import aiohttp
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.cluster.http_peers import HttpPeers, seconds_for_peer
from service.cluster.owners import Owner, Owners
from service.cluster.peer_routes import respond_misdirected
from service.cluster.protocol import (
    ADDRESS_HEADER,
    CALLER_HEADER,
    ELAPSED_HEADER,
    PASSED,
    PROTOCOL_HEADER,
    SECRET_HEADER,
    Moved,
    Silent,
    Slow,
    Unreachable,
    row_of_caller,
)
from service.cluster.shared_store import SharedStore
from service.core.errors import Refusal
from service.observe.store import StoreService
from service.web.head import REQUEST_ID_HEADER
from service.web.responses import problem_response

#: most bytes of a body that are kept until the owner has answered; a request with a longer one is sent once
_MAX_REPLAYED_BYTES: Final = 1 << 20
_READ_METHODS: Final = ("GET", "HEAD")
#: header fields of one connection, and fields that are written anew
_HOP_HEADERS: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "host", "date", "server", "expect"}
    | {
        name.lower()
        for name in (SECRET_HEADER, PROTOCOL_HEADER, ADDRESS_HEADER, CALLER_HEADER, ELAPSED_HEADER, REQUEST_ID_HEADER)
    }
)


class OwnerRouting:
    """Middleware for requests to `paths`: answers with the store of the namespace, or forwards to the owner."""

    def __init__(
        self,
        app: ASGIApp,
        owners: Owners,
        peers: HttpPeers,
        store: SharedStore,
        paths: frozenset[str],
    ) -> None:
        self._app, self._paths = app, paths
        self._owners, self._peers, self._store = owners, peers, store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["state"].get("route_path") not in self._paths:
            await self._app(scope, receive, send)
            return
        try:
            await self._route(scope, receive, send)
        except ClientDisconnect:
            return
        except Moved as moved:
            await respond_misdirected(send, moved)
        except Refusal as refusal:
            await problem_response(Request(scope), refusal)(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]
        namespace, expires = state["caller"].namespace, state["expires"]
        if state.get("passed"):
            # Forwarded once already: answer or raise Moved. Servers that disagree on the owner must not form a loop.
            await self._serve(await self._owners.owned_store(namespace, expires), scope, receive, send)
            return
        body = _ReplayableBody(receive)
        while True:
            location = await self._owners.locate(namespace, expires)
            if not isinstance(location, Owner):
                if await self._owners.still_owns(location, expires):
                    await self._serve(location, scope, body.receive, send)
                    return
                continue
            try:
                answer = await self._forward(location, scope, body, expires)
            except (Moved, Unreachable, Silent, Slow) as error:
                if body.failed is not None:  # the client's fault: to the owner, the request was cut off
                    raise body.failed from None
                repeats = scope["method"] in _READ_METHODS
                await self._owners.handle_failure(namespace, location, error, expires, repeats=repeats)
                if not body.is_whole:
                    detail = "this part of the state has moved to another server; send the request again"
                    raise Refusal("not_ready", detail, retry_after=1) from None
                continue
            await _relay(answer, send)
            return

    async def _serve(self, store: StoreService, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["store"] = store
        await self._app(scope, receive, send)

    async def _forward(
        self, owner: Owner, scope: Scope, body: _ReplayableBody, expires: float
    ) -> aiohttp.ClientResponse:
        """Forward a request to the owner; return the beginning of the response."""
        self._store.forwarded["request"] += 1
        query = f"?{scope['query_string'].decode('ascii')}" if scope["query_string"] else ""
        raw = scope.get("raw_path") or scope["path"].encode()
        path = f"{PASSED}{raw.decode('ascii')}{query}"
        request_headers = [(_text(name), _text(value)) for name, value in scope["headers"]]
        headers = [
            (name, value) for name, value in request_headers if name not in _HOP_HEADERS and name != "authorization"
        ]
        headers += [
            (CALLER_HEADER, row_of_caller(scope["state"]["caller"])),
            (ELAPSED_HEADER, str(scope["state"]["timeout"] - seconds_for_peer(expires))),
            (REQUEST_ID_HEADER, scope["state"]["request_id"]),
        ]
        content = None
        if scope["method"] not in _READ_METHODS:
            # An iterator even if it is empty: aiohttp sends a DELETE without one again after a lost connection, and the
            # second one would find nothing to delete.
            content = body.parts()
            if not any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"]):
                headers.append(("content-length", "0"))
        return await self._peers.forward(owner.address, scope["method"], path, headers, content, expires)


class _ReplayableBody:
    """Body of a request, which can be read again as long as it is short."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._parts: list[bytes] = []
        self._nbytes = 0
        self._received_all = False
        self.is_whole = True
        #: why the rest of the body is missing
        self.failed: Exception | None = None

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body from the start; it ends early if `failed` is set."""
        for part in [*self._parts]:
            yield part
        while not self._received_all:
            message = await self._received()
            part = message.get("body", b"")
            self._received_all = not message.get("more_body", False)
            self._nbytes += len(part)
            self.is_whole = self._nbytes <= _MAX_REPLAYED_BYTES
            self._parts = [*self._parts, part] if self.is_whole else []
            if part:
                yield part

    async def _received(self) -> Message:
        """Receive the next message of the body. Raises ClientDisconnect, and the refusal of the body."""
        try:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
        except Exception as error:
            self.failed = error  # aiohttp, which reads `parts`, reports only that the body ended
            raise
        return message

    async def receive(self) -> dict[str, object]:
        # This server has become the owner after it forwarded the request: replay what it has read.
        if self._parts:
            has_more = len(self._parts) > 1 or not self._received_all
            return {"type": "http.request", "body": self._parts.pop(0), "more_body": has_more}
        return dict(await self._receive())


async def _relay(answer: aiohttp.ClientResponse, send: Send) -> None:
    """Send a response on to the client as it arrives."""
    try:
        headers = [
            (name.lower(), value) for name, value in answer.raw_headers if name.lower().decode() not in _HOP_HEADERS
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        async for part in answer.content.iter_any():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        answer.close()


def _text(field: bytes) -> str:
    """Decode UTF-8, or other bytes as Latin-1, so that different bytes stay different."""
    try:
        return field.decode()
    except UnicodeDecodeError:
        return field.decode("latin-1")
