"""One HTTP/1.1 connection: reads requests, dispatches each to a handler, and lingers before it closes.

A connection is a state machine. asyncio delivers received bytes through `get_buffer` and `buffer_updated`. The state
says what they are:

    HEAD     the head of the next request; parsed, or found in the cache of heads
    ANSWER   the body of the current request, until its framing says that it is complete;
             bytes after that are the next request, and wait (`pending_bytes`)
    LINGER   leftovers of a client that has its last response; dropped
    ENDED    nothing more is read

A complete head selects the handler, and `begin` of the handler returns a `BodySpec`: the framing, the sink and the
deadline of the body.

    POST /v1/gradients …   the call handler, one for all calls of the connection: straight to the worker pool
    GET /v1/ops …          an application handler, one for each request: the ASGI application

For example, a client pipelines two calls. The first read contains both heads and half of the second body. The first
call is submitted and the rest goes to `pending_bytes`. When the worker replies, the handler writes the response with
`write_bytes` (or `send` if it is large) and calls `finish_response`. The state is HEAD again, and `advance` parses the
pending bytes as the second request, whose `BodyReader` waits for the other half.

After an error in the middle of a body the client may still be sending. A close would make the kernel send a reset,
which can discard the response before the client has read it. So the connection shuts down its sending side and reads on
for a while: LINGER.

There are no timers per connection. `due` is when the client must have sent something, and the server's sweep compares
it with the clock. Slow senders and readers have a credit of seconds, which they lose as time passes and earn back with
the bytes that they transfer (`MinimumRate`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol, cast

from service.core.errors import Refusal, deadline_exceeded, internal_error, out_of_memory
from service.core.keys.authentication import Keyholder
from service.core.keys.caller import ANONYMOUS, tenant_of
from service.store.tables import Registered
from service.web.body_reader import BodyReader, BodySpec
from service.web.head import CONTINUE, HEALTH, ComputeCall, Head, is_hopeless, malformed, new_id, too_large
from service.web.observer import Finished
from service.web.responses import ResponseWriter, unsent_bytes
from service.web.server_state import ServerState
from service.workers.task import Reply

_logger = logging.getLogger("gradserve")

_HEAD_END: Final = b"\r\n\r\n"
#: bytes of a chunked body that are parsed in one turn of the event loop: they may be thousands of chunks
_CHUNKED_READ_BYTES: Final = 16 << 10
#: bytes of pipelined requests that are buffered; beyond that, reading pauses
_PIPELINE_BYTES: Final = 64 << 10
#: deadline of a connection that waits for nothing
NEVER: Final = float("inf")
#: seconds of silence after which a refused client is assumed to have stopped sending
QUIET_SECONDS: Final = 0.25


class ConnectionState(Enum):
    """State of a connection."""

    HEAD = auto()  # waits for a request, or for the rest of its head
    ANSWER = auto()  # a handler has the request; its body may be incomplete
    LINGER = auto()  # the last response is written; what still arrives is dropped
    ENDED = auto()


#: global names, since every request uses them: in Python 3.11 access to a member of an Enum takes ten times as long
_HEAD, _ANSWER, _LINGER, _ENDED = ConnectionState


class RequestHandler(Protocol):
    """Handler that answers a request."""

    @property
    def full(self) -> bool:
        """Whether the handler's buffer is full, so that the rest of the body should wait."""

    def body_received(self) -> None:
        """Handle more of the body, or the end of it if the connection has no body reader any more."""

    def body_failed(self, refusal: Refusal) -> None:
        """Handle a body that will not arrive, for this reason."""

    def stop(self, refusal: Refusal) -> None:
        """Give up the request because the server is stopping: answer with this refusal."""

    def half_closed(self) -> bool:
        """Handle the end of the client's side after its request; return whether to answer all the same."""

    def connection_lost(self) -> None:
        """Handle the loss of the connection."""

    def resume_writing(self) -> None:
        """Continue writing: the client has read what was written."""


class CallHandler(RequestHandler, Protocol):
    """Handler of computing calls, one after the other."""

    def begin(
        self, head: Head, call: ComputeCall, graph: Registered | None, is_recalled: bool, length: int, data: bytes
    ) -> BodySpec | None:
        """Begin an authorized call; return what to read of its body, of which `data` has arrived."""

    def deny(self, head: Head, refusal: Refusal, length: int, data: bytes) -> None:
        """Refuse a call because of its head. If its whole body has arrived, the connection stays open."""


class ApplicationHandler(RequestHandler, Protocol):
    """Handler that passes one request to an ASGI application."""

    def begin(self, length: int, data: bytes) -> BodySpec | None:
        """Start the application; return what to read of the body, of which `data` has arrived."""


class HandlerFactory(NamedTuple):
    """Factories of a connection's handlers: one for all of its calls, and one for each other request."""

    calls: Callable[[Connection], CallHandler]
    application: Callable[[Connection, Head], ApplicationHandler]


class Connection(asyncio.BufferedProtocol):
    """A transport and its current request. Handlers write the responses."""

    def __init__(self, server_state: ServerState, handlers: HandlerFactory) -> None:
        self.server_state = server_state
        self._handlers = handlers
        self._call_handler = handlers.calls(self)
        self.due = NEVER
        self.client = ""
        self.address = tenant_of(ANONYMOUS, "")
        self.since = 0.0
        self.secure = False
        self.limit_refusal: Refusal | None = None
        self.state = _HEAD
        self.handler: RequestHandler | None = None
        self.head: Head | None = None
        self.request_id = ""
        self.caller = ANONYMOUS
        self._holder: Keyholder | None = None  # the key that the current request counts against
        self.arrived = 0.0
        self.body_reader: BodyReader | None = None
        self.received = 0  # bytes of the body
        self.unread = False  # whether a part of the body will never be read
        self.expires = NEVER  # when the body must be complete, or lingering ends
        self.response_started = False
        self.sending: ResponseWriter | None = None
        self.pending_bytes = b""  # received, but not part of the current request: a partial head, or pipelined requests
        self.paused = False  # writing is paused
        self.reading_paused = False
        self.ended_by_client = False
        self.drain_remaining = 0
        self._held_bytes = 0  # memory of a large response
        self._unsent_bytes = 0
        self._late_at = NEVER
        self._resumed_at = 0.0
        self._in_place = self._advancing = False

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register a new connection."""
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.client = str(peer[0]) if isinstance(peer, tuple) else ""
        self.address = tenant_of(ANONYMOUS, self.client)
        self.secure = transport.get_extra_info("sslcontext") is not None
        self.limit_refusal = self.server_state.register(self)
        self.since = time.monotonic()
        self.due = self.since + (
            QUIET_SECONDS if self.server_state.draining else self.server_state.settings.header_timeout
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that the connection holds."""
        self.state, self.due, self.body_reader = _ENDED, NEVER, None
        self.server_state.unregister(self)
        self._release_caller()
        self.sending = None
        if self.handler is not None:
            self.handler.connection_lost()
            self.handler = None

    def get_buffer(self, sizehint: int) -> memoryview:
        """Choose where to receive: directly into the memory of a large body, or into the shared receive buffer."""
        if self.body_reader is not None:
            buffer = self.body_reader.get_buffer()
            self._in_place = buffer is not None
            if buffer is not None:
                return buffer
            if self.head is not None and self.head.chunked:
                return self.server_state.receive_buffer[:_CHUNKED_READ_BYTES]
        return self.server_state.receive_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Handle received bytes. They leave the shared buffer before this returns."""
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
        """Handle the end of the client's side; return whether ours stays open."""
        self.ended_by_client = True
        if self.state is not _ANSWER:
            self.close()
        elif self.body_reader is not None:
            self._abort_body(Refusal("bad_request_framing", "the connection was closed before the body was complete"))
        elif self.sending is None and self.handler is not None and not self.handler.half_closed():
            self.abort()
        return self.state is _ANSWER and not self.secure

    def pause_writing(self) -> None:
        """Note that the client reads more slowly than the server writes."""
        self.paused = True
        if self.sending is not None:
            self.sending.pause()
        self._unsent_bytes = unsent_bytes(self.transport)
        now = time.monotonic()
        # The remaining credit is for the whole response: otherwise each part would begin with a full one.
        self._late_at = (
            now + self.server_state.send_rate.credit
            if self._late_at == NEVER
            else self._late_at + now - self._resumed_at
        )
        self.server_state.blocked.add(self)

    def resume_writing(self) -> None:
        """Continue: the client has read enough."""
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

    # The interface of the server: `server_state.Client`.

    @property
    def idle(self) -> bool:
        """Whether no request has begun."""
        return self.state is _HEAD

    @property
    def has_key(self) -> bool:
        """Whether the last request came with a key."""
        return self.caller is not ANONYMOUS

    def check_writes(self, now: float) -> None:
        """Abort if the client reads the response too slowly."""
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
        """Handle a deadline that has passed."""
        if self.state is _ENDED:
            if not self.paused:  # otherwise `check_writes` decides: the client may still be reading
                self.abort()
        elif self.state is _ANSWER:
            self._abort_body(self._timeout_refusal(now))
        elif self.state is _HEAD and self.pending_bytes:
            seconds = self.server_state.settings.header_timeout
            self.begin_request()
            self.refuse(Refusal("request_timeout", f"the request line and headers did not arrive within {seconds:g} s"))
        else:
            self.close()

    def drain(self) -> None:
        """Close soon if no request has begun: the server is stopping.

        Not at once: a request on its way would be lost, and the client would not know whether it had been executed.
        """
        if self.state is _HEAD and not self.pending_bytes:
            self.due = min(self.due, time.monotonic() + QUIET_SECONDS)

    def give_up(self) -> None:
        """Refuse the current request: the server's grace period is over."""
        if self.state is _ANSWER and self.handler is not None and not self.response_started:
            self.handler.stop(Refusal("shutting_down", "the server shut down before the request was finished"))
        elif self.state is _HEAD:
            self.close()

    def abort(self) -> None:
        """Close at once, and drop unsent bytes."""
        self.state, self.due = _ENDED, NEVER
        self.transport.abort()

    # Heads.

    def _take_bytes(self, data: bytes) -> None:
        if self.state is _HEAD:
            is_new_head = not self.pending_bytes
            self.pending_bytes = data if is_new_head else self.pending_bytes + data
            self.advance()
            # Only the first bytes of a head set its deadline: a slow client must not extend it with each further byte.
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
        """Dispatch the requests that have arrived, one at a time: the next one waits until this one is answered."""
        if self._advancing:  # called by a handler that answered at once: the loop below goes on
            return
        self._advancing = True
        while self.state is _HEAD and self.pending_bytes and not self.paused and self._next_request():
            pass
        self._advancing = False
        if self.state is _HEAD and not self.paused:
            self.close() if self.ended_by_client else self.resume_reading()

    def _next_request(self) -> bool:
        """Dispatch the next request; return False if its head is incomplete."""
        rest, limit = self.pending_bytes, self.server_state.settings.max_header_bytes
        end = rest.find(_HEAD_END) + 4  # 3 if the head is incomplete
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
        """Dispatch a computing call, if its caller may make it."""
        try:
            self.authenticate(head)
        except Refusal as refusal:
            self.handler = self._call_handler
            self._call_handler.deny(head, refusal, length, data)
            return
        graph, is_recalled = None, False
        if call.graph is not None:
            store, key = self.server_state.store, (self.caller.namespace, call.graph)
            graph = store.known_graph(*key)
            if graph is None:
                graph = store.recalled_graph(*key)
                is_recalled = graph is not None
        if call.graph is not None and graph is None:
            # The application can wait for the graph's owner or the store, and reports an unknown graph.
            self._to_application(head, length, data)
        else:
            self.handler = self._call_handler
            self._begin_body(self._call_handler.begin(head, call, graph, is_recalled, length, data), data)

    def _to_application(self, head: Head, length: int, data: bytes) -> None:
        self.handler = handler = self._handlers.application(self, head)
        self._begin_body(handler.begin(length, data), data)

    # Bodies.

    def _begin_body(self, spec: BodySpec | None, data: bytes) -> None:
        """Begin to receive a body. `data` is the beginning of it, or all of it and more."""
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
                # Yield to other connections: thousands of chunks may arrive at once, and the transport would read
                # again and again in the same turn of the loop.
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
            return deadline_exceeded(self.expires - self.arrived)
        settings = self.server_state.settings
        rate = f"fewer than {settings.min_rate} bytes per second"
        return Refusal(
            "request_timeout", f"the body arrived too slowly: no byte for {settings.body_timeout:g} s, or {rate}"
        )

    # The interface of the handlers.

    @property
    def closes(self) -> bool:
        """Whether the connection ends with this response."""
        head = self.head
        ended = self.unread or self.limit_refusal is not None or (self.ended_by_client and not self.pending_bytes)
        return (
            ended or self.body_reader is not None or self.server_state.draining or head is None or not head.keep_alive
        )

    def send_continue(self) -> None:
        """Send 100 Continue to a client that waits for it before it sends the body."""
        if (
            self.head is not None
            and self.head.expects_continue
            and self.body_reader is not None
            and not self.body_reader.received
        ):
            self.transport.write(CONTINUE)

    def write_bytes(self, data: bytes) -> None:
        """Write a part of the response that may be copied."""
        self.response_started = True
        self.transport.write(data)

    def note_held_bytes(self, nbytes: int) -> None:
        """Record how many bytes of memory the next response holds until the client has read it."""
        self._held_bytes = nbytes

    @property
    def revocable(self) -> bool:
        """Whether the response is being sent, so that its memory can be taken back."""
        return self.sending is not None

    def revoke(self, refusal: Refusal) -> None:
        """Abort the response because its memory is needed elsewhere; the client sees that it is cut off."""
        self.abort()

    def send(self, parts: Sequence[bytes | memoryview], on_sent: Callable[[], None]) -> None:
        """Write a large response from the memory that it lies in; call `on_sent` when all of it is written."""
        self.response_started = True
        self.note_held_bytes(sum(map(len, parts)))

        def done() -> None:
            self.sending = None
            on_sent()

        self.sending = ResponseWriter(self.transport, parts, done, secure=self.secure)
        self.sending.begin()

    def finish_response(
        self, status: int, sent: int, *, closes: bool, reply: Reply | None = None, route: str = ""
    ) -> None:
        """Finish a request whose response has been written."""
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
        """Answer with a refusal and close; linger if a part of the request is `unread`."""
        reply = self.server_state.refusal_reply(self.head, refusal, self.request_id)
        body = reply.body
        self.write_bytes(
            self.server_state.head_writer.reply_head(reply, len(body), self.request_id, closes=True) + body
        )
        self.unread = unread
        self.finish_response(refusal.status, len(body), closes=True)

    def fail_request(self, refusal: Refusal) -> None:
        """Answer with this refusal, or abort if a response has begun."""
        if self.response_started or self.state is not _ANSWER:
            self.abort()
        else:
            self.refuse(refusal)

    def fail(self) -> None:
        """Answer an unexpected exception with a fault, so that no client is left without a response."""
        if self.state is _HEAD:
            self.begin_request()
        if self.handler is not None:
            self.handler.connection_lost()
        self.fail_request(internal_error())

    def pause_reading(self) -> None:
        """Stop reading, so that TCP holds the client back."""
        if not self.reading_paused:
            self.reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading."""
        if self.reading_paused and self.state is not _ENDED:
            self.reading_paused = False
            self.transport.resume_reading()

    @property
    def tenant(self) -> str:
        """Tenant whose share the current request counts against."""
        return self.address if self.caller is ANONYMOUS else tenant_of(self.caller, self.client)

    @property
    def is_authenticated(self) -> bool:
        """Whether the caller of the request is known."""
        return self._holder is not None

    def authenticate(self, head: Head) -> None:
        """Identify the caller and count the request. Raises Refusal if the key is not valid for it."""
        self._holder = holder = self.server_state.gate.enter(head.access)
        self.caller = holder.caller

    def _release_caller(self) -> None:
        if self._holder is not None:
            self._holder.leave()
            self._holder = None

    # Beginning and end.

    def begin_request(self) -> None:
        """Reset the state for a new request."""
        self.arrived = time.monotonic()
        self.head, self.request_id, self.caller = None, new_id(), ANONYMOUS
        self.state, self.due, self.response_started, self.unread, self.received = _ANSWER, NEVER, False, False, 0
        self._late_at, self._held_bytes = NEVER, 0

    def disconnect(self, *, linger: bool) -> None:
        """Close; with `linger`, drain the client's bytes first, since a reset would discard the response."""
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
        """Close once the client has read what was written."""
        self.state, self.due = _ENDED, time.monotonic() + self.server_state.settings.send_timeout
        self.pending_bytes = b""
        self.transport.close()
