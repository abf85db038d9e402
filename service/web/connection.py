"""One connection: bytes in, requests out of them one after another, each handed to its door."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from service.errors import Refusal, late, out_of_memory
from service.web.asgi_door import AsgiDoor
from service.web.fast_door import FastDoor
from service.web.front import Front
from service.web.head import Order, malformed, too_large
from service.web.incoming import Incoming, Wanted
from service.web.line import FOREVER, SILENCE, Line, Phase
from service.web.parsing import Head, hopeless

_logger = logging.getLogger("gradserve")

_HEALTH: Final = "/health/"
_END: Final = b"\r\n\r\n"
#: bytes of a chunked body that are looked at without a pause: they may be thousands of chunks
_CHUNKED: Final = 16 << 10
#: bytes of further requests that wait for the one at hand; more stay with the client
_PIPELINED: Final = 64 << 10


class Connection(Line):
    """Reads heads and bodies. What is answered is the doors' business."""

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self._fast = FastDoor(self)
        self._placed = self._advancing = False

    # What the transport and the front say.

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to receive: straight into a large body's place, or into memory that all connections share."""
        if self.incoming is not None:
            place = self.incoming.place()
            self._placed = place is not None
            if place is not None:
                return place
            if self.head is not None and self.head.chunked:
                return self.front.memory[:_CHUNKED]
        return self.front.memory

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes are there. The shared memory is let go of before this returns."""
        try:
            if self.incoming is None:
                self._take(bytes(self.front.memory[:nbytes]))
            else:
                self._take_body(self.incoming, nbytes)
        except Exception:
            _logger.exception("request %s failed", self.request_id, extra={"request_id": self.request_id})
            self.fail()

    def eof_received(self) -> bool:
        """The client has ended its side; whether ours stays open."""
        self.ended_by_client = True
        if self.phase is not Phase.ANSWER:
            self.close()
        elif self.incoming is not None:
            self._fail_body(Refusal("bad_request_framing", "the connection was closed before the body was complete"))
        elif self.sending is None and self.door is not None and not self.door.left():
            self.abort()
        return self.phase is Phase.ANSWER and not self.secure

    def overdue(self, now: float) -> None:
        """What was due has not come."""
        if self.phase is Phase.ENDED:
            if not self.paused:  # else `look` decides: the client may be taking what was written
                self.abort()
        elif self.phase is Phase.ANSWER:
            self._fail_body(self._lateness(now))
        elif self.phase is Phase.HEAD and self.rest:
            seconds = self.front.settings.header_timeout
            self.begin_request()
            self.refuse(Refusal("request_timeout", f"the head of the request was not complete within {seconds:g} s"))
        else:
            self.close()

    # Heads.

    def _take(self, data: bytes) -> None:
        if self.phase is Phase.HEAD:
            begins = not self.rest
            self.rest = data if begins else self.rest + data
            self.advance()
            if begins and self.rest and self.door is None:
                self.due = time.monotonic() + self.front.settings.header_timeout
        elif self.phase is Phase.ANSWER:
            self.rest += data
            if len(self.rest) > _PIPELINED:
                self.pause_reading()
        elif self.phase is Phase.LINGER:
            self._drop(len(data))

    def advance(self) -> None:
        """Hand out the requests that are there; while one is answered, the others wait."""
        if self._advancing:
            return
        self._advancing = True
        while self.phase is Phase.HEAD and self.rest and not self.paused and self._request():
            pass
        self._advancing = False
        if self.phase is Phase.HEAD and not self.paused:
            self.close() if self.ended_by_client else self.resume_reading()

    def _request(self) -> bool:
        """Hand out the next request; False where its head is not complete."""
        rest, limit = self.rest, self.front.settings.max_header_bytes
        end = rest.find(_END) + 4
        if end == 3 and len(rest) <= limit and not hopeless(rest):
            return False
        self.begin_request()
        if end == 3 or end > limit:
            self.refuse(too_large(limit) if len(rest) > limit else malformed())
            return True
        try:
            head, length = self.front.heads.find(rest[:end])
        except Refusal as refusal:
            self.refuse(refusal)
            return True
        self.rest = b""
        self._hand_out(head, length, rest[end:])
        return True

    def _hand_out(self, head: Head, length: int, data: bytes) -> None:
        self.head = head
        if head.stated_id is not None:
            self.request_id = head.stated_id
        if self.surplus is not None and not head.path.startswith(_HEALTH):
            self.refuse(self.surplus)
        elif head.order is None or not head.direct:
            self._to_application(head, length, data)
        else:
            self._call(head, head.order, length, data)

    def _call(self, head: Head, order: Order, length: int, data: bytes) -> None:
        """Hand out a computing call, once its caller may make it."""
        try:
            self.enter(head)
        except Refusal as refusal:
            self.door = self._fast
            self._fast.deny(head, refusal, length, data)
            return
        graph = None
        if order.graph is not None and self.front.keeper.is_current:
            graph = self.front.keeper.graphs.find((self.caller.namespace, order.graph))
        if order.graph is not None and graph is None:
            self._to_application(head, length, data)
        else:
            self.door = self._fast
            self._expect(self._fast.begin(head, order, graph, length, data), data)

    def _to_application(self, head: Head, length: int, data: bytes) -> None:
        door = AsgiDoor(self, head)
        self.door = door
        self._expect(door.begin(length, data), data)

    # Bodies.

    def _expect(self, wanted: Wanted | None, data: bytes) -> None:
        """A body is coming, of which `data` is the beginning, or more than all."""
        if wanted is None:
            return
        self.incoming = Incoming(wanted.framing, wanted.sink, self.front.arriving, time.monotonic())
        self.expires = self.arrived + wanted.timeout
        self.due = min(self.incoming.due, self.expires)
        if data:
            self._feed(self.incoming, data)
        elif self.door is self._fast:
            self.ask_for_body()

    def _take_body(self, incoming: Incoming, nbytes: int) -> None:
        if self._placed:
            incoming.placed(nbytes, time.monotonic())
            self._body_moved(incoming)
        else:
            self._feed(incoming, bytes(self.front.memory[:nbytes]))

    def _feed(self, incoming: Incoming, data: bytes) -> None:
        try:
            self.rest = incoming.take(data, time.monotonic())
        except Refusal as refusal:
            self._fail_body(refusal)
        except MemoryError:
            self._fail_body(out_of_memory())
        else:
            self._body_moved(incoming)

    def _body_moved(self, incoming: Incoming) -> None:
        self.received = incoming.received
        if incoming.over:
            self.incoming, self.due = None, FOREVER
        else:
            self.due = min(incoming.due, self.expires)
            if self.head is not None and self.head.chunked:
                self._breathe()
        if self.door is not None:
            self.door.body_moved()

    def _breathe(self) -> None:
        """Let others go on: thousands of chunks may come at once, and the transport would read many times running."""
        self.pause_reading()
        asyncio.get_running_loop().call_soon(self._breathed)

    def _breathed(self) -> None:
        if self.door is None or not self.door.full:
            self.resume_reading()

    def _fail_body(self, refusal: Refusal) -> None:
        self.incoming, self.unread, self.due, self.rest = None, True, FOREVER, b""
        if self.door is not None:
            self.door.body_failed(refusal)

    def _lateness(self, now: float) -> Refusal:
        if now >= self.expires:
            return late(self.expires - self.arrived)
        settings = self.front.settings
        return Refusal(
            "request_timeout",
            f"no byte of the body came for {settings.body_timeout:g} s, or less than {settings.min_rate} a second",
        )

    def _drop(self, nbytes: int) -> None:
        self.left_to_drain -= nbytes
        self.due = min(time.monotonic() + SILENCE, self.expires)
        if self.left_to_drain < 0:
            self.close()
