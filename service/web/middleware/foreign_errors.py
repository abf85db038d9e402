"""Errors of paths that belong to other protocols: in the form that these have, since their clients know no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.facades.facade import Facade
from service.facades.known import owner_of
from service.prefix import path_within
from service.wire.media import PROBLEM

#: what a head says of a body, which becomes another
_OF_THE_BODY: Final = (b"content-type", b"content-length")


class ForeignErrors:
    """Writer of problem reports anew, whoever has made them."""

    def __init__(self, app: ASGIApp, facades: Sequence[Facade]) -> None:
        self._app = app
        self._facades = facades

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        facade = owner_of(path_within(scope), self._facades) if scope["type"] == "http" else None
        await self._app(scope, receive, send if facade is None else _Rewriting(facade, send))


class _Rewriting:
    """Sender of what is no report as it comes, which holds a report back until it is whole."""

    def __init__(self, facade: Facade, send: Send) -> None:
        self._facade = facade
        self._send = send
        self._start: Message | None = None
        self._report = b""

    async def __call__(self, message: Message) -> None:
        """The next part of an answer."""
        if message["type"] == "http.response.start" and _is_report(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._report += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_error(self._start)

    async def _send_error(self, start: Message) -> None:
        status, answer = self._facade.write_error(orjson.loads(self._report))
        body = b"".join(answer.parts)
        kept = [pair for pair in start["headers"] if pair[0].lower() not in _OF_THE_BODY]
        told = [(b"content-type", answer.media_type.encode()), (b"content-length", b"%d" % len(body))]
        await self._send({**start, "status": status, "headers": kept + told})
        await self._send({"type": "http.response.body", "body": body})


def _is_report(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type", "").startswith(PROBLEM)
