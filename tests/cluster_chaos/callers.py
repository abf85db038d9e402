"""Callers: what they ask for, what they are told and when, and whether that may be."""

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
#: states of servers above 499, which a client has to expect
STATES = (503, 504, 507)
#: codes that say that nothing was kept, and that the same may be sent again
PASSING = ("not_ready", "shutting_down", "queue_full", "worker_died", "deadline_exceeded")
#: codes that say that nobody knows, or not yet
DOUBTFUL = ("unconfirmed", "conflict")
#: seconds in which whoever is asked answers, or cuts the connection
_PATIENCE = 60.0


class Cut(Exception):
    """The connection ended before an answer."""


class Told(NamedTuple):
    """What was answered."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def code(self) -> str:
        """Of a refusal."""
        return str(self.body.get("code")) if self.status >= 400 else ""

    @property
    def is_certain(self) -> bool:
        """Whether it is known that nothing was kept. An ingress that waited no longer does not know."""
        return self.code in PASSING and self.body.get("detail") != ANSWERED[504].detail


@dataclass(frozen=True)
class Done:
    """A call that was answered, or cut, with `status` 0; for whom it was."""

    kind: str
    namespace: str
    began: float
    ended: float
    status: int


@dataclass
class Tally:
    """What callers have been told since they began."""

    calls: list[Done] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)

    def statuses(self) -> Counter[int]:
        """How often each came; 0 is a connection that ended."""
        return Counter(call.status for call in self.calls)


class Caller:
    """One client, with a connection that it keeps, and a key. Where one ingress cuts it, it goes to the next."""

    def __init__(self, tally: Tally, namespace: str, key: str, addresses: Sequence[Address]) -> None:
        self.tally, self._namespace, self._key = tally, namespace, key
        self._connections = deque(HTTPConnection(*address, timeout=_PATIENCE) for address in addresses)

    def ask(self, kind: str, method: str, path: str, body: Any = None, **headers: str) -> Told:
        """What is answered. Underscores in names of headers stand for hyphens. Raises Cut."""
        began = time.monotonic()
        try:
            told = self._asked(method, path, body, headers)
        except (OSError, HTTPException) as error:
            self._connections[0].close()
            self._connections.rotate()
            self.tally.calls.append(Done(kind, self._namespace, began, time.monotonic(), 0))
            raise Cut from error
        self.tally.calls.append(Done(kind, self._namespace, began, time.monotonic(), told.status))
        if told.status > 499 and told.status not in STATES:
            self.tally.faults[f"{kind}: status {told.status}, {told.body}"] += 1
        return told

    def _asked(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Told:
        stated = {name.replace("_", "-"): value for name, value in headers.items()}
        stated |= {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        self._connections[0].request(method, path, None if body is None else json.dumps(body), stated)
        answer = self._connections[0].getresponse()
        content = answer.read()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return Told(answer.status, fields, json.loads(content) if content else {})

    def close(self) -> None:
        """Ask nothing more."""
        for connection in self._connections:
            connection.close()


@contextmanager
def calling(threads: list[threading.Thread], tally: Tally) -> Iterator[None]:
    """They call while this lasts."""
    for each in threads:
        each.start()
    try:
        yield
    finally:
        tally.over.set()
        for each in threads:
            each.join()
