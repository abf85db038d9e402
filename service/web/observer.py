"""Who is told of every request that was answered, whichever door it came through."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from service.transport.job import Reply
from service.web.parsing import Head


class Finished(NamedTuple):
    """A request, and how it ended: bytes of its body and of the answer's, seconds from its head to the last byte.

    There is no `head` where the bytes were none, and no `reply` where the connection asked no worker. `route` is the
    path as the API's document has it, where the application found one; `caller` is the name of the key, if any.
    """

    request_id: str
    head: Head | None
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
