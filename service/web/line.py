"""One connection: what is written to it, and how it ends."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final, Protocol, cast

from service.errors import Refusal, fault
from service.keys.caller import ANYONE
from service.keys.keyholder import Keyholder
from service.keys.tenant import tenant_of
from service.transport.job import Reply, refused
from service.web.front import Front
from service.web.incoming import Incoming
from service.web.observer import Finished
from service.web.parsing import Head
from service.web.request_ids import new_id
from service.web.response_head import CONTINUE
from service.web.sending import Sending, unsent_bytes

#: when nothing is due
FOREVER: Final = float("inf")
#: seconds of silence after which a client that was refused has stopped sending
SILENCE: Final = 0.25


class Phase(Enum):
    """What a connection is at."""

    HEAD = auto()  # waits for a request, or for the rest of its head
    ANSWER = auto()  # a door has the request, of which the body may still be coming
    LINGER = auto()  # an answer has ended the connection; what still comes is dropped
    ENDED = auto()


class Door(Protocol):
    """What answers a request."""

    @property
    def full(self) -> bool:
        """Whether more of the body should wait."""

    def body_moved(self) -> None:
        """More of the body is there; or all of it, where nothing is incoming any more."""

    def body_failed(self, refusal: Refusal) -> None:
        """The body is not coming, and why."""

    def stop(self, refusal: Refusal) -> None:
        """The server gives up on the request: answer with this."""

    def left(self) -> bool:
        """The client has ended its side, its request being complete; whether it is answered all the same."""

    def lost(self) -> None:
        """Nobody is there any more."""

    def writable(self) -> None:
        """The client has taken what was written."""


class Line(asyncio.BufferedProtocol, ABC):
    """A transport, and the request that is at hand."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.due = FOREVER
        self.client = ""
        self.address = tenant_of(ANYONE, "")
        self.since = 0.0
        self.secure = False
        self.surplus: Refusal | None = None
        self.phase = Phase.HEAD
        self.door: Door | None = None
        self.head: Head | None = None
        self.request_id = ""
        self.caller = ANYONE
        self._holder: Keyholder | None = None  # whose request is counted
        self.arrived = 0.0
        self.incoming: Incoming | None = None
        self.received = 0  # bytes of the body
        self.unread = False  # whether a part of the body will never be looked at
        self.expires = FOREVER  # when the body has to be complete, or lingering ends
        self.begun = False  # the answer
        self.sending: Sending | None = None
        self.rest = b""  # what came after the request at hand, or the part of a head
        self.paused = False  # writing
        self.deaf = False  # reading is paused
        self.ended_by_client = False
        self.left_to_drain = 0
        self._held = 0  # bytes of the answer at hand, where it is large
        self._unsent = 0
        self._late = FOREVER
        self._resumed = 0.0

    @abstractmethod
    def advance(self) -> None:
        """Hand out the requests that are there."""

    @abstractmethod
    def overdue(self, now: float) -> None:
        """What was due has not come."""

    # What the transport says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.client = str(peer[0]) if isinstance(peer, tuple) else ""
        self.address = tenant_of(ANYONE, self.client)
        self.secure = transport.get_extra_info("sslcontext") is not None
        self.surplus = self.front.enter(self)
        self.since = time.monotonic()
        self.due = self.since + (SILENCE if self.front.draining else self.front.settings.header_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self.phase, self.due, self.incoming = Phase.ENDED, FOREVER, None
        self.front.leave(self)
        self._leave()
        self.sending = None
        if self.door is not None:
            self.door.lost()
            self.door = None

    def pause_writing(self) -> None:
        """The client is behind."""
        self.paused = True
        if self.sending is not None:
            self.sending.pause()
        self._unsent = unsent_bytes(self.transport)
        now = time.monotonic()
        # What it has left of its credit is for the whole answer: else each part of it would be a new beginning.
        self._late = now + self.front.leaving.credit if self._late == FOREVER else self._late + now - self._resumed
        self.front.blocked.add(self)

    def resume_writing(self) -> None:
        """The client has taken enough."""
        self.paused = False
        self.front.blocked.discard(self)
        self._resumed = time.monotonic()
        self._taken(self._resumed)
        if self.sending is not None:
            self.sending.resume()
        elif self.door is not None:
            self.door.writable()
        else:
            self.advance()

    # What the front asks and says.

    @property
    def idle(self) -> bool:
        """Whether it asks for nothing, or has not said yet for what."""
        return self.phase is Phase.HEAD

    @property
    def known(self) -> bool:
        """Whether its last request came with a key."""
        return self.caller is not ANYONE

    def look(self, now: float) -> None:
        """See whether the client takes what is written to it."""
        self._taken(now)
        if now > self._late:
            self.abort()

    def _taken(self, now: float) -> None:
        unsent = unsent_bytes(self.transport)
        self._late = self.front.leaving.after(self._late, now, self._unsent - unsent, self._held)
        self._unsent = unsent

    def drain(self) -> None:
        """The server stops: end now, where nothing has begun."""
        if self.phase is Phase.HEAD and not self.rest:
            self.close()

    def give_up(self) -> None:
        """The server's patience is over."""
        if self.phase is Phase.ANSWER and self.door is not None and not self.begun:
            self.door.stop(Refusal("shutting_down", "the server stopped before this was done"))
        elif self.phase is Phase.HEAD:
            self.close()

    def abort(self) -> None:
        """End at once; what is not sent is dropped."""
        self.phase, self.due = Phase.ENDED, FOREVER
        self.transport.abort()

    # What the doors say.

    @property
    def closes(self) -> bool:
        """Whether the answer ends the connection."""
        head = self.head
        ended = self.unread or self.surplus is not None or (self.ended_by_client and not self.rest)
        return ended or self.incoming is not None or self.front.draining or head is None or not head.keeps

    def ask_for_body(self) -> None:
        """Tell a client that waits for it to send its body."""
        if self.head is not None and self.head.waits and self.incoming is not None and not self.incoming.received:
            self.transport.write(CONTINUE)

    def write(self, data: bytes) -> None:
        """Write a part of the answer that may be copied."""
        self.begun = True
        self.transport.write(data)

    def hold(self, nbytes: int) -> None:
        """So many bytes are held for the answer that is about to be written."""
        self._held = nbytes

    @property
    def revocable(self) -> bool:
        """Whether what is held for the answer may be taken back, which is on its way."""
        return self.sending is not None

    def revoke(self, refusal: Refusal) -> None:
        """Others wait for what is held for the answer: it ends here, and the client can only see that it does."""
        self.abort()

    def send(self, pieces: Sequence[bytes | memoryview], ended: Callable[[], None]) -> None:
        """Write a large answer from where it lies; `ended` is called when it is out."""
        self.begun = True
        self.hold(sum(map(len, pieces)))

        def out() -> None:
            self.sending = None
            ended()

        self.sending = Sending(self.transport, pieces, out, secure=self.secure)
        self.sending.begin()

    def answered(self, status: int, sent: int, *, closes: bool, reply: Reply | None = None, route: str = "") -> None:
        """The answer is written."""
        self._leave()
        now = time.monotonic()
        seconds = now - self.arrived
        self.front.observe(
            Finished(self.request_id, self.head, status, self.received, sent, seconds, reply, route, self.caller.name)
        )
        self.door = None
        if closes:
            self.leave_off(linger=self.unread or self.incoming is not None or bool(self.rest))
            return
        self.phase, self.begun, self.since = Phase.HEAD, False, now
        settings = self.front.settings
        self.due = now + (settings.header_timeout if self.rest else settings.keep_alive)
        if self.rest or self.deaf:
            self.advance()

    def refuse(self, refusal: Refusal, *, unread: bool = True) -> None:
        """Answer with a refusal, and end; not at once, where a part of the request is `unread`."""
        reply = refused(refusal, self.request_id)
        body = reply.body
        self.write(self.front.dated.of_reply(reply, len(body), self.request_id, closes=True) + body)
        self.unread = unread
        self.answered(refusal.status, len(body), closes=True)

    def broken(self, refusal: Refusal) -> None:
        """There will be no answer but this, where that is still possible."""
        if self.begun or self.phase is not Phase.ANSWER:
            self.abort()
        else:
            self.refuse(refusal)

    def fail(self) -> None:
        """The last resort: no client is left without an answer."""
        if self.phase is Phase.HEAD:
            self.begin_request()
        if self.door is not None:
            self.door.lost()
        self.broken(fault())

    def pause_reading(self) -> None:
        """Leave what comes with the client."""
        if not self.deaf:
            self.deaf = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self.deaf and self.phase is not Phase.ENDED:
            self.deaf = False
            self.transport.resume_reading()

    @property
    def tenant(self) -> str:
        """Whose share the request at hand comes out of."""
        return self.address if self.caller is ANYONE else tenant_of(self.caller, self.client)

    @property
    def entered(self) -> bool:
        """Whether it is known who makes the request."""
        return self._holder is not None

    def enter(self, head: Head) -> None:
        """Learn who makes the request of this head, and count it. Raises Refusal: they may not."""
        self._holder = holder = self.front.gate.enter(head.access)
        self.caller = holder.caller

    def _leave(self) -> None:
        if self._holder is not None:
            self._holder.leave()
            self._holder = None

    # Beginning and end.

    def begin_request(self) -> None:
        """Something that wants an answer is there."""
        self.arrived = time.monotonic()
        self.head, self.request_id, self.caller = None, new_id(), ANYONE
        self.phase, self.due, self.begun, self.unread, self.received = Phase.ANSWER, FOREVER, False, False, 0
        self._late, self._held = FOREVER, 0

    def leave_off(self, *, linger: bool) -> None:
        """Close; where the client may still be writing, not before it has seen why: a reset would hide the answer."""
        waits = self.head is not None and self.head.waits and not self.received
        if not linger or waits or self.ended_by_client:
            self.close()
            return
        settings, now = self.front.settings, time.monotonic()
        self.phase, self.incoming, self.rest = Phase.LINGER, None, b""
        self.left_to_drain, self.expires = settings.drain_bytes, now + settings.body_timeout
        self.due = now + SILENCE
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.resume_reading()

    def close(self) -> None:
        """End once what is written has been taken."""
        self.phase, self.due = Phase.ENDED, time.monotonic() + self.front.settings.send_timeout
        self.rest = b""
        self.transport.close()
