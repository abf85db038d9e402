from __future__ import annotations

from typing import NamedTuple


class Answered(NamedTuple):
    """Ids, sizes and times of a request: no data, no query, no header.

    `caller` is the name of its key, `route` its path with names in place of what stands there, `call` and `graph_id`
    what it computed; empty where there is none. `received` and `sent` are bytes of its body and of the answer's, and
    `seconds` is from the end of its head to the end of the answer.
    """

    request_id: str
    caller: str
    method: str
    path: str
    route: str
    call: str
    graph_id: str
    status: int
    received: int
    sent: int
    seconds: float
