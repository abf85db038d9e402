"""Idempotency: stored answers to calls with an Idempotency-Key, which are returned to repetitions of the call."""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from engine import printable
from service.core.errors import Refusal
from service.store.tables import Quota, Share, Table, TableKey
from service.store.writes import AnswerRecord

#: header that identifies a call
KEY_HEADER: Final = "Idempotency-Key"
#: largest answer that is stored
MOST_OF_ANSWER: Final = 1 << 20
#: estimated bytes of a record besides its body
ANSWER_OVERHEAD: Final = 500
_STATED: Final = re.compile(r"[\x21-\x7e]{1,255}")


class Repetition(NamedTuple):
    """Identity of a request: the key that its client chose, and a digest of its content."""

    namespace: str
    key: str
    fingerprint: str


class AnswerTable(Table[AnswerRecord]):
    """Answers by namespace and key, each stored for some seconds; and the calls that are in progress."""

    plural = "responses to requests with an Idempotency-Key"

    def __init__(
        self, quota: Quota, seconds: float, clock: Callable[[], float] = time.time, share: Share | None = None
    ) -> None:
        super().__init__(quota, lambda record: ANSWER_OVERHEAD + len(record.body), share)
        self._seconds = seconds
        self._clock = clock
        self._under_way: dict[TableKey, str] = {}
        self._expiring: list[tuple[float, TableKey]] = []  # a heap

    def begin(self, repetition: Repetition) -> AnswerRecord | None:
        """Return the stored answer of the call; if None, the caller has to run it, and it is in progress until `end`.

        Raises Refusal: invalid_field if the key belongs to another request, conflict while the call is in progress.
        """
        self._expire()
        key = (repetition.namespace, repetition.key)
        known = self.find(key)
        if known is not None and not self.is_fresh(known):
            known = None
        before = self._first(key) if known is None else known.fingerprint
        if before is not None and before != repetition.fingerprint:
            detail = "this Idempotency-Key was already used for a different request; use a new key for a new request"
            raise Refusal("invalid_field", detail, expected="the same request, or another key", got="another request")
        if known is None:
            if before is not None:
                raise under_way()
            self._under_way[key] = repetition.fingerprint
        return known

    def is_fresh(self, record: AnswerRecord) -> bool:
        """Return whether the answer is still valid."""
        return record.expires > self._clock()

    def look_up(self, repetition: Repetition) -> AnswerRecord | None:
        """Look up a call that another server would run: like `begin`, but the call does not count as in progress."""
        known = self.begin(repetition)
        if known is None:
            self.end(repetition)
        return known

    def end(self, repetition: Repetition) -> None:
        """Note that the call is done, or was given up."""
        self._under_way.pop((repetition.namespace, repetition.key), None)

    def record(
        self,
        repetition: Repetition,
        status: int,
        media_type: str,
        parts: Sequence[bytes | memoryview],
        headers: tuple[tuple[str, str], ...],
    ) -> AnswerRecord:
        """Return the record to be stored for an answer. Raises Refusal: over_budget."""
        nbytes = sum(map(len, parts))
        if nbytes > MOST_OF_ANSWER:
            expected, received = f"at most {MOST_OF_ANSWER} bytes", f"{nbytes} bytes"
            detail = (
                f"the response to a request with an Idempotency-Key may have {expected}, but this one has {received}; "
                "ask for fewer outputs, or omit Idempotency-Key; nothing was written"
            )
            raise Refusal("over_budget", detail, expected=expected, got=received)
        expires = self._clock() + self._seconds
        return AnswerRecord(*repetition, media_type, b"".join(parts), expires, status, headers)

    def _first(self, key: TableKey) -> str | None:
        """Return the fingerprint of a call that is in progress, or whose answer is being written."""
        coming = self._coming.get(key)
        return self._under_way.get(key) if coming is None else coming.fingerprint

    def _put(self, key: TableKey, value: AnswerRecord | None) -> None:
        super()._put(key, value)
        if value is not None:
            heapq.heappush(self._expiring, (value.expires, key))

    def _expire(self) -> None:
        """Drop expired answers. An entry of the heap may be of an answer that was replaced."""
        now = self._clock()
        while self._expiring and self._expiring[0][0] <= now:
            _, key = heapq.heappop(self._expiring)
            record = self.find(key)
            if record is not None and record.expires <= now:
                self.load(key, None)


def check_key(key: str) -> str:
    """Return a valid Idempotency-Key unchanged. Raises Refusal (invalid_field)."""
    if not _STATED.fullmatch(key):
        expected = "1 to 255 visible ASCII characters"
        detail = f"{KEY_HEADER} must consist of {expected}"
        raise Refusal("invalid_field", detail, expected=expected, got=printable(key))
    return key


def under_way() -> Refusal:
    """Return the refusal of a call while another call with the same key is in progress."""
    detail = "the first request with this Idempotency-Key is still in progress; send it again to get its response"
    return Refusal("conflict", detail, retry_after=1)
