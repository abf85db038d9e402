"""Computing calls: from the connection straight to the pool, and from its reply to the transport."""

from __future__ import annotations

import logging

from service.core.allocation import GrowingAllocation
from service.core.errors import Refusal
from service.store.tables import Registered
from service.web.body_reader import Wanted, framing_of
from service.web.connection import Connection
from service.web.head import Head, Order
from service.web.tasks import BodyBuffer, task_of
from service.workers.frames import INLINE
from service.workers.pool import Done
from service.workers.task import Reply, Task, refused

_logger = logging.getLogger("gradserve")


class FastDoor:
    """The calls of one connection, one at a time. No task, no timer, and nothing made that a call does not need."""

    full = False  # its body lies in memory that was reserved for it

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pool = connection.server_state.pool
        self._dated = connection.server_state.dated
        self._order: Order | None = None
        self._graph: Registered | None = None
        self._passes_on = connection.server_state.settings.ingress is not None
        self._credential = ""
        self._upload: BodyBuffer | None = None
        self._task: Task | None = None
        self._kept: Task | None = None
        self._reply: Reply | None = None

    def begin(self, head: Head, order: Order, graph: Registered | None, length: int, data: bytes) -> Wanted | None:
        """Take up a call, of a registered `graph` if of any; `data` is what came after its head.

        Returns what is wanted of its body, unless that is all there.
        """
        self._order = order
        self._graph = graph
        self._credential = ""
        if self._passes_on:  # pieces of a sum go to other servers with it
            named = (value.decode("latin-1") for name, value in head.fields if name == b"authorization")
            self._credential = next(named, "")
        if length <= len(data) and not head.chunked and length <= INLINE and length <= head.most:
            self._connection.rest = data[length:]
            self._connection.received = length
            self._submit(order, data[:length], None)
            return None
        try:
            framing = framing_of(head, length, self._connection.server_state.settings.max_chunks)
            most = head.most if head.chunked else length
            self._upload = BodyBuffer(self._pool.allocate, most, self._connection.tenant)
        except Refusal as refusal:
            self._connection.refuse(refusal)
            return None
        return Wanted(framing, self._upload, order.timeout)

    def deny(self, head: Head, refusal: Refusal, length: int, data: bytes) -> None:
        """Refuse a call by its head; where its body is all there, the connection goes on."""
        if head.chunked or length > len(data):
            self._connection.refuse(refusal)
            return
        self._connection.rest, self._connection.received = data[length:], length
        self._answer(refused(refusal, self._connection.request_id))

    def body_moved(self) -> None:
        """Hand the body to the pool, once it is complete."""
        if self._connection.incoming is None and self._upload is not None and self._order is not None:
            upload, self._upload = self._upload, None
            self._submit(self._order, upload.body, upload.memory)

    def body_failed(self, refusal: Refusal) -> None:
        """Refuse the call."""
        self._let_go()
        self._connection.refuse(refusal)

    def stop(self, refusal: Refusal) -> None:
        """Refuse the call; but for one of which something is being kept: nobody knows yet how that ends."""
        if self._kept is not None:
            return
        self._let_go()
        self._connection.refuse(refusal, unread=self._connection.incoming is not None)

    def left(self) -> bool:
        """Stop the work of a client that ends its side: it is taken to have left."""
        return False

    def lost(self) -> None:
        """Nobody is there any more."""
        self._let_go()

    def writable(self) -> None:
        """Do nothing: what is large is sent by the connection."""

    def _submit(self, order: Order, body: bytes | memoryview, memory: GrowingAllocation | None) -> None:
        connection = self._connection
        self._task = task = task_of(
            order.call, connection, connection.tenant, order.timeout, order.media, body, memory, graph=self._graph,
            credential=self._credential,
        )  # fmt: skip
        self._pool.submit(task, self._done)

    def _done(self, reply: Reply) -> None:
        task, self._task = self._task, None
        try:
            if (reply.stored or reply.consulted) and task is not None:
                store, caller = self._connection.server_state.store, self._connection.caller
                store.settle(task, caller, reply, self._settled(task))
            else:
                self._answer(reply)
        except Exception:
            _logger.exception(
                "request %s failed", self._connection.request_id, extra={"request_id": self._connection.request_id}
            )
            self._connection.fail()

    def _settled(self, task: Task) -> Done:
        """Make what answers a task whose reply the store has; keeping goes on when the client has left."""
        self._kept = task

        def done(reply: Reply) -> None:
            if self._kept is task:
                self._kept = None
                self._done(reply)
            else:
                reply.give_back()

        return done

    def _answer(self, reply: Reply) -> None:
        connection, parts = self._connection, reply.parts
        length = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        closes = connection.closes
        head = self._dated.of_reply(reply, length, connection.request_id, closes=closes)
        if length <= INLINE:
            connection.write_bytes(b"".join((head, *parts)))
            reply.give_back()
            connection.answered(reply.status, length, closes=closes, reply=reply)
            return
        self._reply = reply

        def ended() -> None:
            self._let_go()
            connection.answered(reply.status, length, closes=closes, reply=reply)

        if reply.claim is not None:
            reply.claim.holder = connection
        connection.send([head, *parts], ended)

    def _let_go(self) -> None:
        """Let go of whatever the call holds."""
        self._kept = None
        if self._task is not None:
            task, self._task = self._task, None
            self._pool.cancel(task)
        if self._upload is not None:
            self._upload.give_back()
            self._upload = None
        if self._reply is not None:
            reply, self._reply = self._reply, None
            reply.give_back()
