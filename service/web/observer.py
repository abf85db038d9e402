"""Who is told of every request that was answered, whichever door it came through."""

from __future__ import annotations

from typing import Protocol

from service.compute.job import Reply
from service.web.parsing import Head


class RequestObserver(Protocol):
    """Counts, or writes down."""

    def finished(
        self,
        request_id: str,
        head: Head | None,
        status: int,
        received: int,
        sent: int,
        seconds: float,
        reply: Reply | None,
    ) -> None:
        """Called once for each request, on the event loop: it must not take long.

        Bytes of its body and of the answer's, seconds from its head to the last byte. There is no `head` where the
        bytes were none, and no `reply` where the connection asked no worker.
        """


class Unobserved:
    """Tells nobody."""

    def finished(
        self,
        request_id: str,
        head: Head | None,
        status: int,
        received: int,
        sent: int,
        seconds: float,
        reply: Reply | None,
    ) -> None:
        """Nothing."""
