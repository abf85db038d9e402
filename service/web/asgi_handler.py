"""Slow path of all other requests: an ASGI scope, a task of the application, and its response."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import Final

from starlette.types import Message, Scope

from service.core.errors import Refusal, internal_error
from service.core.keys.caller import ANONYMOUS
from service.web.body_reader import BodySpec, framing_of
from service.web.connection import Connection
from service.web.head import Head, timeout_of
from service.web.routing import route_of

_logger = logging.getLogger("gradserve")

#: bytes of a body that wait for the application; beyond that, reading pauses
_MAX_WAITING_BYTES: Final = 256 << 10
_NO_BODY_STATUSES: Final = (204, 304)
_READ_METHODS: Final = ("GET", "HEAD")


class AsgiHandler:
    """Handler of one request: a task of the application, with its `receive` and `send`."""

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection, self._head = connection, head
        self._parts: deque[bytes] = deque()
        self._waiting = 0
        self._body_sent = self._disconnected = self._response_sent = self._body_asked_for = False
        self._failure: Refusal | None = None
        self._event = asyncio.Event()
        self._status, self._sent = 0, 0
        self._response_fields: list[tuple[bytes, bytes]] | None = None
        self._closes = False
        self._task: asyncio.Task[None] | None = None
        self._scope: Scope = {}

    def begin(self, length: int, data: bytes) -> BodySpec | None:
        """Start the application; `data` are the bytes after the head. Return how to read the body, if there is one."""
        connection = self._connection
        tasks = connection.server_state.tasks
        self._scope = self._scope_of(length)
        self._task = asyncio.get_running_loop().create_task(self._run_application())
        tasks.add(self._task)
        self._task.add_done_callback(tasks.discard)
        if not length and not self._head.chunked:
            connection.pending_bytes = data
            return None
        settings = connection.server_state.settings
        try:
            framing = framing_of(self._head, length, settings.max_chunks)
        except Refusal as refusal:
            self._failure, connection.unread = refusal, True
            return None
        timeout = settings.timeout_ms / 1000
        with suppress(Refusal):  # the application reports it
            timeout = timeout_of(self._head.query, settings.timeout_ms)
        return BodySpec(framing, self, timeout)

    # The body.

    @property
    def full(self) -> bool:
        """Whether the rest of the body should wait."""
        return self._waiting > _MAX_WAITING_BYTES

    def put(self, part: bytes) -> None:
        """Append a part of the body."""
        self._parts.append(part)
        self._waiting += len(part)

    def get_buffer(self, size: int) -> None:
        """Return None: parts come through `put`."""

    def buffer_updated(self, nbytes: int) -> None:
        """Do nothing."""

    def body_received(self) -> None:
        """Wake the application."""
        if self.full:
            self._connection.pause_reading()
        self._event.set()

    def body_failed(self, refusal: Refusal) -> None:
        """Wake the application, which answers with this refusal."""
        self._failure = refusal
        self._event.set()

    # The end.

    def stop(self, refusal: Refusal) -> None:
        """Cancel the application; its outermost middleware answers."""
        if self._task is not None:
            self._task.cancel()

    def half_closed(self) -> bool:
        """Return whether the request only reads: it is answered. For others, the client is assumed to have left."""
        return self._head.method in _READ_METHODS

    def connection_lost(self) -> None:
        """Cancel the application."""
        self._disconnected = True
        self._event.set()
        if self._task is not None:
            self._task.cancel()

    def resume_writing(self) -> None:
        """Continue writing."""
        self._event.set()

    async def _run_application(self) -> None:
        try:
            await self._connection.server_state.app(self._scope, self._receive, self._send)
        except Exception:
            _logger.exception(
                "request %s failed", self._connection.request_id, extra={"request_id": self._connection.request_id}
            )
        finally:
            if not self._response_sent and not self._disconnected:
                self._connection.fail_request(internal_error())

    def _scope_of(self, length: int) -> Scope:
        connection, head = self._connection, self._head
        state = {"request_id": connection.request_id, "arrived": connection.arrived}
        if connection.is_authenticated:
            state["caller"] = connection.caller
        fields = [*head.fields]
        if length:
            fields.append((b"content-length", b"%d" % length))
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": head.version,
            "method": head.method,
            "scheme": "https" if connection.secure else "http",
            "path": head.path,
            "raw_path": head.raw_path,
            "query_string": head.query,
            "root_path": "",
            "headers": fields,
            "client": connection.transport.get_extra_info("peername"),
            "server": connection.transport.get_extra_info("sockname"),
            "state": state,
        }

    async def _receive(self) -> Message:
        """Wait for the next part of the body. Raises the refusal of a body that failed."""
        while True:
            self._event.clear()
            if self._disconnected or self._response_sent:
                return {"type": "http.disconnect"}
            if self._parts:
                return self._next_part()
            if self._failure is not None:
                raise self._failure
            if self._connection.body_reader is None and not self._body_sent:
                self._body_sent = True
                return {"type": "http.request", "body": b"", "more_body": False}
            if not self._body_asked_for:
                self._body_asked_for = True
                self._connection.send_continue()
            await self._event.wait()

    def _next_part(self) -> Message:
        part = self._parts.popleft()
        self._waiting -= len(part)
        if not self.full:
            self._connection.resume_reading()
        has_more = bool(self._parts) or self._connection.body_reader is not None or self._failure is not None
        self._body_sent = not has_more
        return {"type": "http.request", "body": part, "more_body": has_more}

    async def _send(self, message: Message) -> None:
        """Write a part of the response, and wait while the client is behind."""
        if self._disconnected or self._response_sent:
            return
        if message["type"] == "http.response.start":
            self._status, self._response_fields = message["status"], list(message["headers"])
            return
        connection, body = self._connection, message.get("body", b"")
        if self._head.method == "HEAD" or self._status in _NO_BODY_STATUSES:
            body = b""
        self._sent += len(body)
        connection.write_bytes(self._response_head() + bytes(body))
        if not message.get("more_body", False):
            self._response_sent = True
            state = self._scope["state"]
            connection.caller = state.get("caller", ANONYMOUS)
            route, reply = route_of(self._scope), state.get("reply")
            connection.finish_response(self._status, self._sent, closes=self._closes, reply=reply, route=route)
        elif connection.paused:
            self._event.clear()
            await self._event.wait()

    def _response_head(self) -> bytes:
        """Return the head if it is not written yet. A response of unknown length ends with the connection."""
        if self._response_fields is None:
            return b""
        fields, self._response_fields = self._response_fields, None
        lengths = [int(value) for name, value in fields if name == b"content-length"]
        self._connection.note_held_bytes(sum(lengths))
        has_known_length = bool(lengths) or self._status in _NO_BODY_STATUSES
        self._closes = self._connection.closes or not has_known_length
        return self._connection.server_state.head_writer.head(self._status, fields, closes=self._closes)
