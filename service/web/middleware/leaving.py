"""A client that leaves: nobody needs its answer any more, so the work stops.

A connection of our own tells that by itself. Another server tells it to whoever asks for more of the request.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Leaving:
    """Middleware that ends the application where the client has left, once it has all of the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = _Client(receive, send, asyncio.current_task())
        watching = asyncio.ensure_future(client.watch())
        try:
            await self._app(scope, client.receive, client.send)
        finally:
            watching.cancel()
            client.forget()


class _Client:
    """Client who asked, and the task that answers."""

    def __init__(self, receive: Receive, send: Send, task: asyncio.Task[object] | None) -> None:
        self._receive, self._send = receive, send
        self._task = task
        self._heard = asyncio.Event()
        self._gone = False

    async def receive(self) -> Message:
        """The next part of the request."""
        message = await self._receive()
        if not message.get("more_body", False):
            self._heard.set()
        return message

    async def send(self, message: Message) -> None:
        """A part of the answer, as long as anybody is there."""
        if not self._gone:
            await self._send(message)

    async def watch(self) -> None:
        """End the task when the client leaves."""
        await self._heard.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        if self._task is not None:
            self._task.cancel()

    def forget(self) -> None:
        """The application has dealt with its end: the task goes on as if it had not been cancelled."""
        if self._gone and self._task is not None:
            self._task.uncancel()
