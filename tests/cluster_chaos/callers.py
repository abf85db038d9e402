"""Callers: their calls, responses and times, and whether the responses are allowed."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple

from service.cluster.ingress.configuration import ANSWERED

Address = tuple[str, int]
#: server statuses above 499 that a client must expect
EXPECTED_ERRORS = (503, 504, 507)
#: codes that mean that nothing was stored, so that the call can be retried
RETRYABLE = ("not_ready", "shutting_down", "queue_full", "worker_died", "deadline_exceeded")
#: codes that mean that the outcome is unknown, or not yet known
UNCERTAIN = ("unconfirmed", "conflict")
#: seconds within which a server must respond or close the connection
_PATIENCE = 60.0


class Cut(Exception):
    """The connection ended before a response."""


class Reply(NamedTuple):
    """The response to a call."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def code(self) -> str:
        """The code of a problem report; empty if the call succeeded."""
        return str(self.body.get("code")) if self.status >= 400 else ""

    @property
    def is_retryable(self) -> bool:
        """Whether certainly nothing was stored. If an ingress timed out, this is unknown."""
        return self.code in RETRYABLE and self.body.get("detail") != ANSWERED[504].detail


@dataclass(frozen=True)
class FinishedCall:
    """A call of a namespace that got a response; `status` is 0 if the connection ended instead."""

    kind: str
    namespace: str
    began: float
    ended: float
    status: int


@dataclass
class Tally:
    """All finished calls of the callers, and the faults found."""

    calls: list[FinishedCall] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)

    def statuses(self) -> Counter[int]:
        """The number of calls by status; 0 stands for a connection that ended without a response."""
        return Counter(call.status for call in self.calls)


class Caller:
    """A client with a key and a persistent connection. If an ingress closes it, the client connects to the next one."""

    def __init__(self, tally: Tally, namespace: str, key: str, addresses: Sequence[Address]) -> None:
        self.tally, self._namespace, self._key = tally, namespace, key
        self._connections = deque(HTTPConnection(*address, timeout=_PATIENCE) for address in addresses)

    def ask(self, kind: str, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send a call and return its reply. Underscores in header names become hyphens. Raises Cut."""
        began = time.monotonic()
        try:
            reply = self._exchange(method, path, body, headers)
        except (OSError, HTTPException) as error:
            self._connections[0].close()
            self._connections.rotate()
            self.tally.calls.append(FinishedCall(kind, self._namespace, began, time.monotonic(), 0))
            raise Cut from error
        self.tally.calls.append(FinishedCall(kind, self._namespace, began, time.monotonic(), reply.status))
        if reply.status > 499 and reply.status not in EXPECTED_ERRORS:
            self.tally.faults[f"{kind}: status {reply.status}, {reply.body}"] += 1
        return reply

    def _exchange(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Reply:
        sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        sent_headers |= {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        self._connections[0].request(method, path, None if body is None else json.dumps(body), sent_headers)
        answer = self._connections[0].getresponse()
        content = answer.read()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, fields, json.loads(content) if content else {})

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close()


@contextmanager
def running_threads(threads: list[threading.Thread], tally: Tally) -> Iterator[None]:
    """Run the threads until the block ends."""
    for each in threads:
        each.start()
    try:
        yield
    finally:
        tally.over.set()
        for each in threads:
            each.join()
