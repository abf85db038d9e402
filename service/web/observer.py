"""Observers of every request that was answered, whichever door it came through."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from service.transport.job import Reply
from service.web.head import Order


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
    def order(self) -> Order | None:
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
