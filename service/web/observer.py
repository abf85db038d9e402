"""Observers of every request that was answered, whichever door it came through."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from engine import printable
from service.core.keys.caller import mask_keys
from service.facades.protocols import facade_name_of, foreign_call_of
from service.observe.request_log import Answered, RequestLog
from service.observe.tally import Tally
from service.web.head import ComputeCall
from service.workers.task import Reply

if TYPE_CHECKING:
    from service.observe.tracing import Tracing


class RequestHead(Protocol):
    """Parts of a request's head that observers are told, whoever has read it; see Head, of our own connections."""

    @property
    def method(self) -> str:
        """GET and the like."""

    @property
    def path(self) -> str:
        """The path, without a prefix."""

    @property
    def fields(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers."""

    @property
    def call(self) -> ComputeCall | None:
        """The computing call that is asked for, if any."""


class Finished(NamedTuple):
    """A request, and how it ended: bytes of its body and of the answer's, seconds from its head to the last byte.

    There is no `head` where the bytes were none, and no `reply` where the connection asked no worker. `route` is the
    path as the API's document has it, where the application found one; `caller` is the name of the key, if any.
    """

    request_id: str
    head: RequestHead | None
    status: int
    received: int
    sent: int
    seconds: float
    reply: Reply | None
    route: str = ""
    caller: str = ""


#: counts, or writes down; called once for each request, on the event loop: it must not take long
RequestObserver = Callable[[Finished], None]


def unobserved(_: Finished) -> None:
    """Tells nobody."""


class Recorder:
    """Recorder that tells the tally, and the log and the traces where there are any."""

    def __init__(self, tally: Tally, log: RequestLog | None, tracing: Tracing | None = None) -> None:
        self._tally = tally
        self._log = log
        self._tracing = tracing

    def __call__(self, finished: Finished) -> None:
        """Observe a request."""
        head, reply = finished.head, finished.reply
        call = None if head is None else head.call
        call_name, facade = None if call is None else call.name, facade_name_of(finished.route)
        self._tally.count(call_name, finished.status, finished.received, finished.sent, finished.seconds, facade)
        if reply is not None and finished.status == 200:
            self._tally.count_work(reply)
        if self._log is None and self._tracing is None:
            return
        answered, trace_id = _answered(finished), ""
        if self._tracing is not None:
            trace_id = self._tracing.add(answered, () if head is None else head.fields, reply)
        if self._log is not None:
            self._log.add(answered, trace_id)


def _answered(finished: Finished) -> Answered:
    head = finished.head
    call = None if head is None else head.call
    route = finished.route
    if not route and call is not None:
        route = f"/v1/{call.name}" if call.graph is None else f"/v1/graphs/{{graph_id}}/{call.name}"
    foreign = foreign_call_of(route)
    call_name = "" if call is None else call.name
    return Answered(
        mask_keys(finished.request_id),
        finished.caller,
        "?" if head is None else head.method,
        "?" if head is None else mask_keys(head.path),
        route,
        call_name if foreign is None else foreign,
        "" if call is None else mask_keys(printable(call.graph or "")),
        finished.status,
        finished.received,
        finished.sent,
        finished.seconds,
    )
