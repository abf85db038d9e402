"""Observers of all answered requests, whichever handler answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from engine import printable
from service.core.keys.caller import mask_keys
from service.facades.protocols import facade_name_of, foreign_call_of
from service.observe.request_log import AnsweredRequest, RequestLog
from service.observe.tally import Tally
from service.web.head import ComputeCall
from service.workers.task import Reply

if TYPE_CHECKING:
    from service.observe.tracing import Tracing


class RequestHead(Protocol):
    """Parts of a request's head that observers read; `Head` is the one of own connections."""

    @property
    def method(self) -> str:
        """The method."""

    @property
    def path(self) -> str:
        """The path, without a prefix."""

    @property
    def fields(self) -> tuple[tuple[bytes, bytes], ...]:
        """The header fields."""

    @property
    def call(self) -> ComputeCall | None:
        """The computing call, if it is one."""


class Finished(NamedTuple):
    """An answered request: status, bytes of its body and of the response's, and seconds from its head to the last byte.

    `head` is None if it could not be parsed, `reply` if no worker was asked. `route` is the path of the matched route,
    as in the OpenAPI document. `caller` is the name of the key, if any.
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


#: observer that is called once for each request, on the event loop, and so must be fast
RequestObserver = Callable[[Finished], None]


def unobserved(_: Finished) -> None:
    """Ignore a request."""


class Recorder:
    """Observer that counts in the tally, and writes to the log and the traces if there are any."""

    def __init__(self, tally: Tally, log: RequestLog | None, tracing: Tracing | None = None) -> None:
        self._tally = tally
        self._log = log
        self._tracing = tracing

    def __call__(self, finished: Finished) -> None:
        """Record a request."""
        head, reply = finished.head, finished.reply
        call = None if head is None else head.call
        call_name, facade = None if call is None else call.name, facade_name_of(finished.route)
        self._tally.count(call_name, finished.status, finished.received, finished.sent, finished.seconds, facade)
        if reply is not None and finished.status == 200:
            self._tally.count_work(reply)
        if self._log is None and self._tracing is None:
            return
        summary, trace_id = _summary(finished), ""
        if self._tracing is not None:
            trace_id = self._tracing.add(summary, () if head is None else head.fields, reply)
        if self._log is not None:
            self._log.add(summary, trace_id)


def _summary(finished: Finished) -> AnsweredRequest:
    head = finished.head
    call = None if head is None else head.call
    route = finished.route
    if not route and call is not None:
        route = f"/v1/{call.name}" if call.graph is None else f"/v1/graphs/{{graph_id}}/{call.name}"
    foreign = foreign_call_of(route)
    call_name = "" if call is None else call.name
    return AnsweredRequest(
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
