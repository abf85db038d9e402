"""One connection: bytes in, requests out of them one after another, each handed to its door; answers, and its end.

asyncio hands over the bytes that came (`buffer_updated`). In the state HEAD they belong to the head of a request, which
is found in the cache of heads or parsed. The head decides which door answers, and the door says what it wants of the
body:

    POST /v1/gradients …   the call door, one for all calls of the connection: straight to the pool
    GET /v1/ops …          an application door, one for each request: the ASGI application

In the state ANSWER the bytes are the body's, until its framing says that it is over; what comes behind it waits for
the answer. The door writes that with `write_bytes` or `send`, and ends with `answered`. Then the next request begins,
in HEAD again, or the connection ends: in the state LINGER it drops what the client still sends, since a reset would
hide the answer from it.

Whatever the connection waits for is `due` at some time, which the sweep of the server looks at: there is no timer for
each connection. A client that is slow to send or to take is late once its credit is spent (`MinimumRate`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol, cast

from service.core.errors import Refusal, fault, late, out_of_memory
from service.core.keys.authentication import Keyholder
from service.core.keys.caller import ANYONE, tenant_of
from service.store.tables import Registered
from service.web.body_reader import BodyReader, BodySpec
from service.web.head import CONTINUE, HEALTH, ComputeCall, Head, is_hopeless, malformed, new_id, too_large
from service.web.observer import Finished
from service.web.responses import ResponseWriter, unsent_bytes
from service.web.server_state import ServerState
from service.workers.task import Reply

_logger = logging.getLogger("gradserve")

_HEAD_END: Final = b"\r\n\r\n"
#: bytes of a chunked body that are looked at without a pause: they may be thousands of chunks
_CHUNKED_READ_BYTES: Final = 16 << 10
#: bytes of further requests that wait for the one at hand; more stay with the client
_PIPELINE_BYTES: Final = 64 << 10
#: when nothing is due
NEVER: Final = float("inf")
#: seconds of silence after which a client that was refused has stopped sending
QUIET_SECONDS: Final = 0.25


class ConnectionState(Enum):
    """State of a connection."""

    HEAD = auto()  # waits for a request, or for the rest of its head
    ANSWER = auto()  # a door has the request, of which the body may still be coming
    LINGER = auto()  # an answer has ended the connection; what still comes is dropped
    ENDED = auto()


#: every request meets them: in Python 3.11 a member of an enumeration takes ten times as long to find as a name
_HEAD, _ANSWER, _LINGER, _ENDED = ConnectionState


class RequestHandler(Protocol):
    """Handler that answers a request."""

    @property
    def full(self) -> bool:
        """Whether more of the body should wait."""

    def body_received(self) -> None:
        """More of the body is there; or all of it, where nothing is incoming any more."""

    def body_failed(self, refusal: Refusal) -> None:
        """The body is not coming, and why."""

    def stop(self, refusal: Refusal) -> None:
        """The server gives up on the request: answer with this."""

    def half_closed(self) -> bool:
        """Note that the client has ended its side after its request; returns whether it is answered all the same."""

    def connection_lost(self) -> None:
        """Nobody is there any more."""

    def resume_writing(self) -> None:
        """The client has taken what was written."""


class CallHandler(RequestHandler, Protocol):
    """Handler that answers computing calls, one after the other."""

    def begin(
        self, head: Head, call: ComputeCall, graph: Registered | None, length: int, data: bytes
    ) -> BodySpec | None:
        """Take up a call that its caller may make; returns what is wanted of its body, of which `data` is there."""

    def deny(self, head: Head, refusal: Refusal, length: int, data: bytes) -> None:
        """Refuse a call by its head; where its body is all there, the connection goes on."""


class ApplicationHandler(RequestHandler, Protocol):
    """Handler that has an application answer one request."""

    def begin(self, length: int, data: bytes) -> BodySpec | None:
        """Hand it over: what is wanted of its body, of which `data` is there."""


class HandlerFactory(NamedTuple):
    """Maker of the doors of a connection: one for all of its calls, and one for each other request."""

    calls: Callable[[Connection], CallHandler]
    application: Callable[[Connection, Head], ApplicationHandler]


class Connection(asyncio.BufferedProtocol):
    """A transport, and the request that is at hand. What is answered is the doors' business."""

    def __init__(self, server_state: ServerState, handlers: HandlerFactory) -> None:
        self.server_state = server_state
        self._handlers = handlers
        self._call_handler = handlers.calls(self)
        self.due = NEVER
        self.client = ""
        self.address = tenant_of(ANYONE, "")
        self.since = 0.0
        self.secure = False
        self.limit_refusal: Refusal | None = None
        self.state = _HEAD
        self.handler: RequestHandler | None = None
        self.head: Head | None = None
        self.request_id = ""
        self.caller = ANYONE
        self._holder: Keyholder | None = None  # whose request is counted
        self.arrived = 0.0
        self.body_reader: BodyReader | None = None
        self.received = 0  # bytes of the body
        self.unread = False  # whether a part of the body will never be looked at
        self.expires = NEVER  # when the body has to be complete, or lingering ends
        self.response_started = False  # the answer
        self.sending: ResponseWriter | None = None
        self.pending_bytes = b""  # what came after the request at hand, or the part of a head
        self.paused = False  # writing
        self.reading_paused = False  # reading is paused
        self.ended_by_client = False
        self.drain_remaining = 0
        self._held_bytes = 0  # bytes of the answer at hand, where it is large
        self._unsent_bytes = 0
        self._late_at = NEVER
        self._resumed_at = 0.0
        self._in_place = self._advancing = False

    # What the transport says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.client = str(peer[0]) if isinstance(peer, tuple) else ""
        self.address = tenant_of(ANYONE, self.client)
        self.secure = transport.get_extra_info("sslcontext") is not None
        self.limit_refusal = self.server_state.register(self)
        self.since = time.monotonic()
        self.due = self.since + (
            QUIET_SECONDS if self.server_state.draining else self.server_state.settings.header_timeout
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self.state, self.due, self.body_reader = _ENDED, NEVER, None
        self.server_state.unregister(self)
        self._release_caller()
        self.sending = None
        if self.handler is not None:
            self.handler.connection_lost()
            self.handler = None

    def get_buffer(self, sizehint: int) -> memoryview:
        """Choose where to receive: straight into a large body's place, or into memory that all connections share."""
        if self.body_reader is not None:
            buffer = self.body_reader.get_buffer()
            self._in_place = buffer is not None
            if buffer is not None:
                return buffer
            if self.head is not None and self.head.chunked:
                return self.server_state.receive_buffer[:_CHUNKED_READ_BYTES]
        return self.server_state.receive_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that are there. The shared memory is let go of before this returns."""
        try:
            if self.body_reader is None:
                self._take_bytes(bytes(self.server_state.receive_buffer[:nbytes]))
            elif self._in_place:
                self.body_reader.buffer_updated(nbytes, time.monotonic())
                self._body_received(self.body_reader)
            else:
                self._feed_body(self.body_reader, bytes(self.server_state.receive_buffer[:nbytes]))
        except Exception:
            _logger.exception("request %s failed", self.request_id, extra={"request_id": self.request_id})
            self.fail()

    def eof_received(self) -> bool:
        """Note that the client has ended its side; returns whether ours stays open."""
        self.ended_by_client = True
        if self.state is not _ANSWER:
            self.close()
        elif self.body_reader is not None:
            self._abort_body(Refusal("bad_request_framing", "the connection was closed before the body was complete"))
        elif self.sending is None and self.handler is not None and not self.handler.half_closed():
            self.abort()
        return self.state is _ANSWER and not self.secure

    def pause_writing(self) -> None:
        """The client is behind."""
        self.paused = True
        if self.sending is not None:
            self.sending.pause()
        self._unsent_bytes = unsent_bytes(self.transport)
        now = time.monotonic()
        # What it has left of its credit is for the whole answer: else each part of it would be a new beginning.
        self._late_at = (
            now + self.server_state.send_rate.credit
            if self._late_at == NEVER
            else self._late_at + now - self._resumed_at
        )
        self.server_state.blocked.add(self)

    def resume_writing(self) -> None:
        """The client has taken enough."""
        self.paused = False
        self.server_state.blocked.discard(self)
        self._resumed_at = time.monotonic()
        self._update_progress(self._resumed_at)
        if self.sending is not None:
            self.sending.resume()
        elif self.handler is not None:
            self.handler.resume_writing()
        else:
            self.advance()

    # What the server asks and says.

    @property
    def idle(self) -> bool:
        """Whether it asks for nothing, or has not said yet for what."""
        return self.state is _HEAD

    @property
    def has_key(self) -> bool:
        """Whether its last request came with a key."""
        return self.caller is not ANYONE

    def check_writes(self, now: float) -> None:
        """See whether the client takes what is written to it."""
        self._update_progress(now)
        if now > self._late_at:
            self.abort()

    def _update_progress(self, now: float) -> None:
        unsent = unsent_bytes(self.transport)
        self._late_at = self.server_state.send_rate.after(
            self._late_at, now, self._unsent_bytes - unsent, self._held_bytes
        )
        self._unsent_bytes = unsent

    def handle_timeout(self, now: float) -> None:
        """Handle lateness: something that was due has not come."""
        if self.state is _ENDED:
            if not self.paused:  # else `look` decides: the client may be taking what was written
                self.abort()
        elif self.state is _ANSWER:
            self._abort_body(self._timeout_refusal(now))
        elif self.state is _HEAD and self.pending_bytes:
            seconds = self.server_state.settings.header_timeout
            self.begin_request()
            self.refuse(Refusal("request_timeout", f"the head of the request was not complete within {seconds:g} s"))
        else:
            self.close()

    def drain(self) -> None:
        """The server stops: end soon, where nothing has begun.

        Not at once: a request that is on its way would be lost without a word, and nobody knew whether it was done.
        """
        if self.state is _HEAD and not self.pending_bytes:
            self.due = min(self.due, time.monotonic() + QUIET_SECONDS)

    def give_up(self) -> None:
        """The server's patience is over."""
        if self.state is _ANSWER and self.handler is not None and not self.response_started:
            self.handler.stop(Refusal("shutting_down", "the server stopped before this was done"))
        elif self.state is _HEAD:
            self.close()

    def abort(self) -> None:
        """End at once; what is not sent is dropped."""
        self.state, self.due = _ENDED, NEVER
        self.transport.abort()

    # Heads.

    def _take_bytes(self, data: bytes) -> None:
        if self.state is _HEAD:
            is_new_head = not self.pending_bytes
            self.pending_bytes = data if is_new_head else self.pending_bytes + data
            self.advance()
            if is_new_head and self.pending_bytes and self.handler is None:
                self.due = time.monotonic() + self.server_state.settings.header_timeout
        elif self.state is _ANSWER:
            self.pending_bytes += data
            if len(self.pending_bytes) > _PIPELINE_BYTES:
                self.pause_reading()
        elif self.state is _LINGER:
            self.drain_remaining -= len(data)
            self.due = min(time.monotonic() + QUIET_SECONDS, self.expires)
            if self.drain_remaining < 0:
                self.close()

    def advance(self) -> None:
        """Hand out the requests that are there; while one is answered, the others wait."""
        if self._advancing:
            return
        self._advancing = True
        while self.state is _HEAD and self.pending_bytes and not self.paused and self._next_request():
            pass
        self._advancing = False
        if self.state is _HEAD and not self.paused:
            self.close() if self.ended_by_client else self.resume_reading()

    def _next_request(self) -> bool:
        """Hand out the next request; False where its head is not complete."""
        rest, limit = self.pending_bytes, self.server_state.settings.max_header_bytes
        end = rest.find(_HEAD_END) + 4
        if end == 3 and len(rest) <= limit and not is_hopeless(rest):
            return False
        self.begin_request()
        if end == 3 or end > limit:
            self.refuse(too_large(limit) if len(rest) > limit else malformed())
            return True
        try:
            head, length = self.server_state.head_cache.find(rest[:end])
        except Refusal as refusal:
            self.refuse(refusal)
            return True
        self.pending_bytes = b""
        self._dispatch(head, length, rest[end:])
        return True

    def _dispatch(self, head: Head, length: int, data: bytes) -> None:
        self.head = head
        if head.client_id is not None:
            self.request_id = head.client_id
        if self.limit_refusal is not None and not head.path.startswith(HEALTH):
            self.refuse(self.limit_refusal)
        elif head.call is None or not head.direct:
            self._to_application(head, length, data)
        else:
            self._dispatch_call(head, head.call, length, data)

    def _dispatch_call(self, head: Head, call: ComputeCall, length: int, data: bytes) -> None:
        """Hand out a computing call, once its caller may make it."""
        try:
            self.authenticate(head)
        except Refusal as refusal:
            self.handler = self._call_handler
            self._call_handler.deny(head, refusal, length, data)
            return
        graph = None
        if call.graph is not None:
            graph = self.server_state.store.known_graph(self.caller.namespace, call.graph)
        if call.graph is not None and graph is None:
            self._to_application(head, length, data)
        else:
            self.handler = self._call_handler
            self._begin_body(self._call_handler.begin(head, call, graph, length, data), data)

    def _to_application(self, head: Head, length: int, data: bytes) -> None:
        self.handler = handler = self._handlers.application(self, head)
        self._begin_body(handler.begin(length, data), data)

    # Bodies.

    def _begin_body(self, spec: BodySpec | None, data: bytes) -> None:
        """A body is coming, of which `data` is the beginning, or more than all."""
        if spec is None:
            return
        self.body_reader = BodyReader(spec.framing, spec.sink, self.server_state.receive_rate, time.monotonic())
        self.expires = self.arrived + spec.timeout
        self.due = min(self.body_reader.due, self.expires)
        if data:
            self._feed_body(self.body_reader, data)
        elif self.handler is self._call_handler:
            self.send_continue()

    def _feed_body(self, reader: BodyReader, data: bytes) -> None:
        try:
            self.pending_bytes = reader.receive(data, time.monotonic())
        except Refusal as refusal:
            self._abort_body(refusal)
        except MemoryError:
            self._abort_body(out_of_memory())
        else:
            self._body_received(reader)

    def _body_received(self, reader: BodyReader) -> None:
        self.received = reader.received
        if reader.complete:
            self.body_reader, self.due = None, NEVER
        else:
            self.due = min(reader.due, self.expires)
            if self.head is not None and self.head.chunked:
                # Let others go on: thousands of chunks may come at once, and the transport would read many times.
                self.pause_reading()
                asyncio.get_running_loop().call_soon(self._resume_after_turn)
        if self.handler is not None:
            self.handler.body_received()

    def _resume_after_turn(self) -> None:
        if self.handler is None or not self.handler.full:
            self.resume_reading()

    def _abort_body(self, refusal: Refusal) -> None:
        self.body_reader, self.unread, self.due, self.pending_bytes = None, True, NEVER, b""
        if self.handler is not None:
            self.handler.body_failed(refusal)

    def _timeout_refusal(self, now: float) -> Refusal:
        if now >= self.expires:
            return late(self.expires - self.arrived)
        settings = self.server_state.settings
        rate = f"less than {settings.min_rate} a second"
        return Refusal("request_timeout", f"no byte of the body came for {settings.body_timeout:g} s, or {rate}")

    # What the doors say.

    @property
    def closes(self) -> bool:
        """Whether the answer ends the connection."""
        head = self.head
        ended = self.unread or self.limit_refusal is not None or (self.ended_by_client and not self.pending_bytes)
        return (
            ended or self.body_reader is not None or self.server_state.draining or head is None or not head.keep_alive
        )

    def send_continue(self) -> None:
        """Tell a client that waits for it to send its body."""
        if (
            self.head is not None
            and self.head.expects_continue
            and self.body_reader is not None
            and not self.body_reader.received
        ):
            self.transport.write(CONTINUE)

    def write_bytes(self, data: bytes) -> None:
        """Write a part of the answer that may be copied."""
        self.response_started = True
        self.transport.write(data)

    def note_held_bytes(self, nbytes: int) -> None:
        """Note that so many bytes are held for the answer that is about to be written."""
        self._held_bytes = nbytes

    @property
    def revocable(self) -> bool:
        """Whether what is held for the answer may be taken back, which is on its way."""
        return self.sending is not None

    def revoke(self, refusal: Refusal) -> None:
        """End the answer, since others wait for what is held for it: the client can only see that it ends."""
        self.abort()

    def send(self, parts: Sequence[bytes | memoryview], on_sent: Callable[[], None]) -> None:
        """Write a large answer from where it lies; `ended` is called when it is out."""
        self.response_started = True
        self.note_held_bytes(sum(map(len, parts)))

        def done() -> None:
            self.sending = None
            on_sent()

        self.sending = ResponseWriter(self.transport, parts, done, secure=self.secure)
        self.sending.begin()

    def answered(self, status: int, sent: int, *, closes: bool, reply: Reply | None = None, route: str = "") -> None:
        """The answer is written."""
        self._release_caller()
        now = time.monotonic()
        seconds = now - self.arrived
        self.server_state.observe(
            Finished(self.request_id, self.head, status, self.received, sent, seconds, reply, route, self.caller.name)
        )
        self.handler = None
        if closes:
            self.disconnect(linger=self.unread or self.body_reader is not None or bool(self.pending_bytes))
            return
        self.state, self.response_started, self.since = _HEAD, False, now
        settings = self.server_state.settings
        self.due = now + (settings.header_timeout if self.pending_bytes else settings.keep_alive)
        if self.pending_bytes or self.reading_paused:
            self.advance()

    def refuse(self, refusal: Refusal, *, unread: bool = True) -> None:
        """Answer with a refusal, and end; not at once, where a part of the request is `unread`."""
        reply = self.server_state.report(self.head, refusal, self.request_id)
        body = reply.body
        self.write_bytes(
            self.server_state.head_writer.reply_head(reply, len(body), self.request_id, closes=True) + body
        )
        self.unread = unread
        self.answered(refusal.status, len(body), closes=True)

    def fail_request(self, refusal: Refusal) -> None:
        """Answer with this and nothing else, where that is still possible."""
        if self.response_started or self.state is not _ANSWER:
            self.abort()
        else:
            self.refuse(refusal)

    def fail(self) -> None:
        """Answer as the last resort: no client is left without an answer."""
        if self.state is _HEAD:
            self.begin_request()
        if self.handler is not None:
            self.handler.connection_lost()
        self.fail_request(fault())

    def pause_reading(self) -> None:
        """Leave what comes with the client."""
        if not self.reading_paused:
            self.reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self.reading_paused and self.state is not _ENDED:
            self.reading_paused = False
            self.transport.resume_reading()

    @property
    def tenant(self) -> str:
        """Return the tenant whose share the current request comes out of."""
        return self.address if self.caller is ANYONE else tenant_of(self.caller, self.client)

    @property
    def is_authenticated(self) -> bool:
        """Whether it is known who makes the request."""
        return self._holder is not None

    def authenticate(self, head: Head) -> None:
        """Learn who makes the request of this head, and count it. Raises Refusal: they may not."""
        self._holder = holder = self.server_state.gate.enter(head.access)
        self.caller = holder.caller

    def _release_caller(self) -> None:
        if self._holder is not None:
            self._holder.leave()
            self._holder = None

    # Beginning and end.

    def begin_request(self) -> None:
        """Something that wants an answer is there."""
        self.arrived = time.monotonic()
        self.head, self.request_id, self.caller = None, new_id(), ANYONE
        self.state, self.due, self.response_started, self.unread, self.received = _ANSWER, NEVER, False, False, 0
        self._late_at, self._held_bytes = NEVER, 0

    def disconnect(self, *, linger: bool) -> None:
        """Close; where the client may still be writing, not before it has seen why: a reset would hide the answer."""
        waits = self.head is not None and self.head.expects_continue and not self.received
        if not linger or waits or self.ended_by_client:
            self.close()
            return
        settings, now = self.server_state.settings, time.monotonic()
        self.state, self.body_reader, self.pending_bytes = _LINGER, None, b""
        self.drain_remaining, self.expires = settings.drain_bytes, now + settings.body_timeout
        self.due = now + QUIET_SECONDS
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.resume_reading()

    def close(self) -> None:
        """End once what is written has been taken."""
        self.state, self.due = _ENDED, time.monotonic() + self.server_state.settings.send_timeout
        self.pending_bytes = b""
        self.transport.close()
