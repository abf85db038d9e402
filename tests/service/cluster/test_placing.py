"""Requests forwarded to owners: interruptions are reported with their cause, and writes are not repeated."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from service.cluster.http_peers import HttpPeers
from service.cluster.owner_routing import OwnerRouting
from service.cluster.owners import Owner
from service.cluster.peer_routes import PeerApplication
from service.cluster.protocol import CALLER_HEADER, ELAPSED_HEADER, PROTOCOL_HEADER, SECRET_HEADER, row_of_caller
from service.core.errors import Refusal
from service.core.keys.authentication import Gate
from service.core.keys.caller import ANONYMOUS
from service.core.settings import Settings
from service.web.middleware import Guard

PATH = "/v1/tensors/{name}"


def route_request(method: str, *messages: object) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Route a request with these messages to an owner that closes each connection; return the answer and the heads.

    Of its timeout of 20 s, 5 s are over.
    """
    arrived = time.monotonic() - 5.0
    sent: list[dict[str, Any]] = []
    heads: list[bytes] = []
    coming = iter(messages or [{"type": "http.request"}])

    async def receive() -> Any:
        message = next(coming)
        if isinstance(message, Exception):
            raise message
        return message

    async def send(message: Any) -> None:
        sent.append(message)

    async def owner(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):  # the head is sent with the first part of the body
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            await reader.read(int(b"content-length: 9" in heads[-1].lower()))
        writer.close()

    async def run() -> None:
        peers: Any = HttpPeers("secret", "http://a:1")
        server = await asyncio.start_server(owner, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def handle_failure(*_: object, repeats: bool) -> None:
            raise Refusal("unconfirmed", f"repeats: {repeats}")

        async def locate(_: str, expires: float) -> Owner:
            assert expires == arrived + 20.0
            return Owner(f"http://127.0.0.1:{port}", 0.0)

        owners: Any = SimpleNamespace(locate=locate, handle_failure=handle_failure)
        store: Any = SimpleNamespace(forwarded={"request": 0})
        app: Any = None
        state = {"route_path": PATH, "caller": ANONYMOUS, "arrived": arrived, "request_id": "r", "prefix": ""}
        fields = [(b"content-length", b"9")] if messages else []
        scope = {"type": "http", "method": method, "path": "/v1/tensors/w", "headers": fields}
        scope["query_string"] = b"timeout_ms=20000"
        try:
            routing = OwnerRouting(app, owners, peers, store, frozenset([PATH]))
            placing = Guard(routing, Settings(), Gate())
            await placing({**scope, "raw_path": b"/v1/tensors/w", "state": state}, receive, send)
        finally:
            await peers.close()
            server.close()
            await asyncio.sleep(0)

    asyncio.run(run())
    return sent, heads


def status(sent: list[dict[str, Any]]) -> int:
    return int(sent[0]["status"])


def part(body: bytes) -> dict[str, object]:
    return {"type": "http.request", "body": body, "more_body": True}


def test_refused_body_is_reported() -> None:
    sent, _ = route_request("PUT", part(b"1"), Refusal("body_too_large", "the body is too long"))
    assert status(sent) == 413
    assert b"the body is too long" in sent[1]["body"]


@pytest.mark.parametrize("leaving", [{"type": "http.disconnect"}, ClientDisconnect()])
def test_disconnected_client_gets_no_answer(leaving: object) -> None:
    assert route_request("PUT", part(b"1"), leaving)[0] == []


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_write_without_an_answer_is_not_repeated(method: str) -> None:
    sent, heads = route_request(method)
    assert (status(sent), len(heads)) == (503, 1)
    assert b"repeats: False" in sent[1]["body"]
    assert heads[0].startswith(method.encode())
    assert b"content-length: 0" in heads[0].lower()


def test_read_without_an_answer_may_be_repeated() -> None:
    sent, heads = route_request("GET")
    assert b"repeats: True" in sent[1]["body"]
    assert b"content-length" not in heads[0].lower()


def test_owner_is_told_how_much_of_the_timeout_is_over() -> None:
    _, heads = route_request("GET")
    request_line, *lines = heads[0].decode().splitlines()
    assert request_line == "GET /cluster/passed/v1/tensors/w?timeout_ms=20000 HTTP/1.1"
    fields = dict(line.lower().split(": ") for line in lines if line)
    elapsed = float(fields[ELAPSED_HEADER.lower()])
    assert 5.0 < elapsed < 20.0

    states: list[dict[str, Any]] = []

    async def forwarded(scope: Any, *_: object) -> None:
        states.append(scope["state"])

    app: Any = None
    questions: Any = None
    watch: Any = SimpleNamespace(meet=lambda address: None)
    peer = PeerApplication(app, forwarded, [], questions, "secret", 0, watch)
    headers = {SECRET_HEADER: "secret", PROTOCOL_HEADER: "1", CALLER_HEADER: row_of_caller(ANONYMOUS)}
    path = "/cluster/passed/v1/tensors/w"
    for more in ({ELAPSED_HEADER: "5.5"}, {}):
        raw = [(name.lower().encode(), value.encode()) for name, value in {**headers, **more}.items()]
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": raw}
        asyncio.run(peer({**scope, "state": {"arrived": 100.0}}, app, app))
    assert [state["arrived"] for state in states] == [94.5, 100.0]
