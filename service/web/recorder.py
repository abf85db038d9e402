"""Every request that was answered, counted and written down."""

from __future__ import annotations

from service.observe.request_log import RequestLog
from service.observe.tally import Tally
from service.web.observer import Finished

#: what a request without a head that could be read is called
_UNREAD = "?"


class Recorder:
    """Tells the tally, and the log where there is one."""

    def __init__(self, tally: Tally, log: RequestLog | None) -> None:
        self._tally = tally
        self._log = log

    def __call__(self, finished: Finished) -> None:
        """As an observer of requests."""
        request_id, head, status, received, sent, seconds, reply = finished
        call = head.order.call if head is not None and head.order is not None else None
        self._tally.count(call, status, received, sent, seconds)
        if reply is not None and status == 200:
            self._tally.count_work(reply)
        if self._log is not None:
            method, path = (_UNREAD, _UNREAD) if head is None else (head.method, head.path)
            self._log.add(request_id, method, path, status, received, sent, seconds)
