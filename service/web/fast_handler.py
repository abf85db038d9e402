"""Fast path of computing calls: from the connection directly to the pool, and from its reply to the transport."""

from __future__ import annotations

import logging

from service.core.allocation import GrowingAllocation
from service.core.errors import Refusal
from service.store.tables import Registered
from service.web.body_reader import BodySpec, framing_of
from service.web.connection import Connection
from service.web.head import ComputeCall, Head
from service.web.tasks import BodyBuffer, make_task
from service.workers.frames import INLINE
from service.workers.pool import Done
from service.workers.task import Reply, Task, refused

_logger = logging.getLogger("gradserve")


class FastHandler:
    """Handler of a connection's computing calls, one at a time, without an asyncio task or timer for each."""

    full = False  # bodies lie in memory that is reserved for them

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pool = connection.server_state.pool
        self._head_writer = connection.server_state.head_writer
        self._call: ComputeCall | None = None
        self._graph: Registered | None = None
        self._is_recalled = False
        self._forwards_pieces = connection.server_state.settings.ingress is not None
        self._credential = ""
        self._upload: BodyBuffer | None = None
        self._task: Task | None = None
        self._settling: Task | None = None
        self._reply: Reply | None = None

    def begin(
        self, head: Head, call: ComputeCall, graph: Registered | None, is_recalled: bool, length: int, data: bytes
    ) -> BodySpec | None:
        """Begin a call, on a registered `graph` if there is one; `data` are the bytes after its head.

        The graph `is_recalled` if its owner has to be asked about it. Returns how to read the rest of the body, None if
        it has all arrived.
        """
        self._call = call
        self._graph, self._is_recalled = graph, is_recalled
        self._credential = ""
        if self._forwards_pieces:  # other servers that compute pieces of a sum get the caller's credential
            credentials = (value.decode("latin-1") for name, value in head.fields if name == b"authorization")
            self._credential = next(credentials, "")
        if length <= len(data) and not head.chunked and length <= INLINE and length <= head.max_bytes:
            self._connection.pending_bytes = data[length:]
            self._connection.received = length
            self._submit(call, data[:length], None)
            return None
        try:
            framing = framing_of(head, length, self._connection.server_state.settings.max_chunks)
            max_bytes = head.max_bytes if head.chunked else length
            self._upload = BodyBuffer(self._pool.allocate, max_bytes, self._connection.tenant)
        except Refusal as refusal:
            self._connection.refuse(refusal)
            return None
        return BodySpec(framing, self._upload, call.timeout)

    def deny(self, head: Head, refusal: Refusal, length: int, data: bytes) -> None:
        """Refuse a call because of its head. If its whole body has arrived, the connection stays open."""
        if head.chunked or length > len(data):
            self._connection.refuse(refusal)
            return
        self._connection.pending_bytes, self._connection.received = data[length:], length
        self._answer(refused(refusal, self._connection.request_id))

    def body_received(self) -> None:
        """Submit the task once the body is complete."""
        if self._connection.body_reader is None and self._upload is not None and self._call is not None:
            upload, self._upload = self._upload, None
            self._submit(self._call, upload.body, upload.memory)

    def body_failed(self, refusal: Refusal) -> None:
        """Refuse the call."""
        self._release()
        self._connection.refuse(refusal)

    def stop(self, refusal: Refusal) -> None:
        """Refuse the call, unless its results are being committed: the outcome is not known yet."""
        if self._settling is not None:
            return
        self._release()
        self._connection.refuse(refusal, unread=self._connection.body_reader is not None)

    def half_closed(self) -> bool:
        """Return False, to cancel the work: a client that closes its side is assumed to have left."""
        return False

    def connection_lost(self) -> None:
        """Cancel the work, and release memory."""
        self._release()

    def resume_writing(self) -> None:
        """Do nothing: the connection sends large responses."""

    def _submit(self, call: ComputeCall, body: bytes | memoryview, memory: GrowingAllocation | None) -> None:
        connection = self._connection
        self._task = task = make_task(
            call.name, connection, connection.tenant, call.timeout, call.media, body, memory, graph=self._graph,
            is_recalled=self._is_recalled, credential=self._credential,
        )  # fmt: skip
        self._pool.submit(task, self._done)

    def _done(self, reply: Reply) -> None:
        task, self._task = self._task, None
        try:
            if (reply.stored or reply.consulted) and task is not None:
                store, caller = self._connection.server_state.store, self._connection.caller
                store.settle(task, caller, reply, self._when_settled(task))
            else:
                self._answer(reply)
        except Exception:
            _logger.exception(
                "request %s failed", self._connection.request_id, extra={"request_id": self._connection.request_id}
            )
            self._connection.fail()

    def _when_settled(self, task: Task) -> Done:
        """Make the callback for a reply that the store is settling. The commit continues even if the client leaves."""
        self._settling = task

        def done(reply: Reply) -> None:
            if self._settling is task:
                self._settling = None
                self._done(reply)
            else:
                reply.release()

        return done

    def _answer(self, reply: Reply) -> None:
        connection, parts = self._connection, reply.parts
        length = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        closes = connection.closes
        head = self._head_writer.reply_head(reply, length, connection.request_id, closes=closes)
        if length <= INLINE:
            # One write for head and body: two would be two packets, and joining copies little.
            connection.write_bytes(b"".join((head, *parts)))
            reply.release()
            connection.finish_response(reply.status, length, closes=closes, reply=reply)
            return
        self._reply = reply

        def sent() -> None:
            self._release()
            connection.finish_response(reply.status, length, closes=closes, reply=reply)

        if reply.claim is not None:
            reply.claim.holder = connection
        connection.send([head, *parts], sent)

    def _release(self) -> None:
        """Cancel the task and release the memory of the call."""
        self._settling = None
        if self._task is not None:
            task, self._task = self._task, None
            self._pool.cancel(task)
        if self._upload is not None:
            self._upload.release()
            self._upload = None
        if self._reply is not None:
            reply, self._reply = self._reply, None
            reply.release()
