"""Pool of idle prepared plans, bounded in bytes: the plans that were used lately stay."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Protocol

from engine.compiler.plan import Plan
from engine.ir.fairness import FairEviction, current_owner
from engine.ir.limits import Deadline
from engine.ir.op import Array

#: of a limited memory, idle plans take one part in so many: the rest is for running plans and other caches
IDLE_SHARE: Final = 4
#: bytes of all idle plans, if no limit is stated
INSTANCE_BYTES: Final = 1 << 28
#: idle instances of one plan: more would mean that more threads than this run it at once
MOST_OF_A_PLAN: Final = 8


class ReadyPlan(Protocol):
    """A prepared plan, for one thread at a time, and the bytes that keeping it takes."""

    @property
    def nbytes(self) -> int:
        """Bytes that it holds: the same for as long as nobody runs it."""

    def run(self, feeds: Mapping[Hashable, Array], deadline: Deadline = ...) -> list[Array]:
        """Run the plan, as `Executor.execute` does."""


@dataclass(eq=False, slots=True)
class _Entry:
    """Idle instances of one plan, each with its bytes, and the bytes of all."""

    plan: weakref.ref[Plan]
    idle: list[tuple[ReadyPlan, int]] = field(default_factory=list)
    nbytes: int = 0
    retired: bool = False


class InstancePool:
    """Prepared plans that are idle, at most `bytes` in all. When a plan is collected, its instances go, too.

    Threads may share it. What was lent belongs to the borrower until it is given back.
    """

    def __init__(self, bytes: int = INSTANCE_BYTES) -> None:
        self.bytes = bytes
        #: bytes of what is idle
        self.held = 0
        self._entries: dict[Hashable, _Entry] = {}  # by the identity of their plans
        self._claims = FairEviction()
        self._gone: deque[int] = deque()
        self._lock = Lock()

    def lend(self, plan: Plan) -> ReadyPlan | None:
        """Take an idle instance of this plan, from now on the caller's; None if there is none."""
        with self._lock:
            entry = self._entries.get(id(plan))
            if entry is None or entry.plan() is not plan or not entry.idle:
                return None
            ready, nbytes = entry.idle.pop()
            entry.nbytes -= nbytes
            self.held -= nbytes
            return ready

    def give(self, plan: Plan, ready: ReadyPlan) -> None:
        """Keep an instance of this plan for the next borrower.

        If the pool is full, the owner who holds most loses what they used longest ago.
        """
        with self._lock:
            if self._gone:
                self._sweep()
            entry = self._entries.get(id(plan)) or self._entry(plan)
            nbytes = ready.nbytes
            if nbytes <= self.bytes and len(entry.idle) < MOST_OF_A_PLAN and not entry.retired:
                entry.idle.append((ready, nbytes))
                entry.nbytes += nbytes
                self.held += nbytes
            self._claims.use(id(plan), current_owner(), entry.nbytes)
            while self.held > self.bytes:
                self._drop(self._claims.let_go(by_size=True))

    def retire(self, plan: Plan) -> None:
        """Drop the instances of a plan that has been replaced; those that still run, once they are given back."""
        with self._lock:
            entry = self._entries.get(id(plan)) or self._entry(plan)
            entry.retired = True
            self.held -= entry.nbytes
            entry.nbytes = 0
            entry.idle.clear()

    def clear(self) -> None:
        """Drop all idle instances."""
        with self._lock:
            self._entries.clear()
            self._claims.clear()
            self.held = 0

    def _entry(self, plan: Plan) -> _Entry:
        key = id(plan)
        entry = self._entries[key] = _Entry(weakref.ref(plan, lambda _: self._plan_is_gone(key)))
        return entry

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)  # there is none where others still hold it
        if entry is not None:
            self.held -= entry.nbytes

    def _plan_is_gone(self, key: int) -> None:
        """Drop its entry. The garbage collector may call this anywhere, even in a thread that holds the lock."""
        self._gone.append(key)
        if self._lock.acquire(blocking=False):
            try:
                self._sweep()
            finally:
                self._lock.release()

    def _sweep(self) -> None:
        while self._gone:
            key = self._gone.popleft()
            self._claims.drop(key)
            self._drop(key)
