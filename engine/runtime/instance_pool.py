"""Plans that are ready to run, kept while nobody runs them: those used lately, and a bounded number of bytes."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Hashable, Mapping
from threading import Lock
from typing import Final, Protocol

from engine.compiler.plan import Plan
from engine.ir.fairness import FairEviction, current_owner
from engine.ir.limits import Deadline
from engine.ir.op import Array

#: idle plans take one part in so many of a limited memory: the rest is for what runs, and for what else is kept
IDLE_SHARE: Final = 4
#: what idle plans may take in all, where no limit is stated
INSTANCE_BYTES: Final = 1 << 28
#: of one plan: more would mean that more threads than this run it at once
MOST_OF_A_PLAN: Final = 8


class ReadyPlan(Protocol):
    """A plan that is ready to run, for one thread at a time, and the bytes that keeping it takes."""

    @property
    def nbytes(self) -> int:
        """The same for as long as nobody runs it."""

    def run(self, feeds: Mapping[Hashable, Array], deadline: Deadline = ...) -> list[Array]:
        """As `Executor.execute`."""


class _Entry:
    """The idle ones of one plan, and who tells when the plan is gone."""

    __slots__ = ("idle", "nbytes", "plan", "retired")

    def __init__(self, plan: weakref.ref[Plan]) -> None:
        self.plan = plan
        #: with the bytes of each
        self.idle: list[tuple[ReadyPlan, int]] = []
        self.nbytes = 0  # of all that are idle
        self.retired = False


class InstancePool:
    """Ready plans that are idle, by plan, at most `bytes` in all; a plan that is collected takes its own along.

    Threads may share it. What was taken belongs to whoever took it until it is given back.
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
        """This plan ready to run, from now on the caller's; None where none is idle."""
        with self._lock:
            entry = self._entries.get(id(plan))
            if entry is None or entry.plan() is not plan or not entry.idle:
                return None
            ready, nbytes = entry.idle.pop()
            entry.nbytes -= nbytes
            self.held -= nbytes
            return ready

    def give(self, plan: Plan, ready: ReadyPlan) -> None:
        """Keep this plan, as it is ready to run, for the next one who asks.

        What goes instead is what its owner used longest ago who holds most.
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
        """Drop what is idle of a plan that has been replaced, and what is still running once it is given back."""
        with self._lock:
            entry = self._entries.get(id(plan)) or self._entry(plan)
            entry.retired = True
            self.held -= entry.nbytes
            entry.nbytes = 0
            entry.idle.clear()

    def clear(self) -> None:
        """Drop all that is idle."""
        with self._lock:
            self._entries.clear()
            self._claims.clear()
            self.held = 0

    def _entry(self, plan: Plan) -> _Entry:
        """A new one for the plan."""
        key = id(plan)
        made = self._entries[key] = _Entry(weakref.ref(plan, lambda _: self._plan_is_gone(key)))
        return made

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)  # there is none where others still hold it
        if entry is not None:
            self.held -= entry.nbytes

    def _plan_is_gone(self, key: int) -> None:
        """Called wherever the garbage collector happens to run: by a thread that holds the lock, too."""
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
