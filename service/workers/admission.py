"""Admission: callers, what each has in work, and the refusal of more tasks than are held."""

from __future__ import annotations

import math
import secrets
from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple, cast

from engine.ir.fairness import FairEviction
from engine.ir.lru import LRU
from service.core.errors import Refusal, full
from service.workers.task import TEXT_RATE, Estimate, Task

#: seconds that a client is told to wait, at most
_LONGEST_WAIT: Final = 60
#: the weight of the last look in the rate of replies
_NEW: Final = 0.3
#: the tenant of what the server asks for itself, as whether it is ready: nobody has to share anything with that
OWN: Final = ""
#: seconds without a task after which a caller is not there any more, and after which nothing is known of it
_LATELY: Final = 1.0
_FORGOTTEN: Final = 60.0
#: seconds that a caller's short tasks may run beyond what a short task may take, one after the other; how much of that
#: is forgiven in a second, and what is remembered at most
_PATIENCE: Final = 0.1
_FORGIVEN: Final = 0.05
_GRUDGE: Final = 0.2


class Admission:
    """Limit of `tasks` that are held at a time."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._rate = 0.0
        self._replies = 0
        self._looked = 0.0

    def full(self, tasks: int) -> bool:
        """Whether so many tasks are as many as may be held."""
        return tasks >= self._tasks

    def crowded(self, tasks: int) -> Refusal:
        """Refuse one task more, until half of those that wait are done, as fast as tasks were done lately."""
        seconds = math.ceil(tasks / (2 * self._rate)) if self._rate else 1
        return full(tasks, min(_LONGEST_WAIT, max(1, seconds)))

    @staticmethod
    def infeasible(needed: float, left: float) -> Refusal:
        """Refuse a task that would be done in `needed` seconds, and has `left`."""
        detail = f"what waits already would take this request to {needed:.3g} s, and it has {left:.3g} s"
        return Refusal("queue_full", detail, retry_after=min(_LONGEST_WAIT, max(1, math.ceil(needed - left))))

    def replied(self) -> None:
        """Count a task that has its reply."""
        self._replies += 1

    def look(self, now: float) -> None:
        """Measure the rate of replies since the last look."""
        if self._looked:
            rate = self._replies / (now - self._looked)
            self._rate = self._rate * (1 - _NEW) + rate * _NEW
        self._looked = now
        self._replies = 0


class Account:
    """One caller."""

    __slots__ = ("_looked", "_overrun", "present", "tasks", "tenant", "used")

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        #: its tasks that are held, in the order in which they came
        self.tasks: dict[Task, None] = {}
        #: whether it has had a task lately, and when it handed in the last one
        self.present = False
        self.used = 0.0
        self._overrun = 0.0
        self._looked = 0.0

    def overran(self, seconds: float, now: float) -> None:
        """Hold it against the caller that a task which was thought to be short took so long."""
        self._overrun = min(_GRUDGE, self._left(now) + seconds)
        self._looked = now

    def is_doubtful(self, now: float) -> bool:
        """Whether tasks that are not known to be short belong with the long ones."""
        return self._overrun > _PATIENCE and self._left(now) > _PATIENCE

    def _left(self, now: float) -> float:
        return max(0.0, self._overrun - _FORGIVEN * (now - self._looked))


class Accounts:
    """All callers who have been there lately."""

    def __init__(self) -> None:
        self._known: dict[str, Account] = {}
        #: how many there are now
        self.present = 0

    @property
    def contended(self) -> bool:
        """Whether several callers take turns; one alone has everything."""
        return self.present > 1

    def enter(self, tenant: str, now: float) -> Account:
        """Return the account of a caller that hands in a task."""
        account = self._known.get(tenant)
        if account is None:
            account = self._known[tenant] = Account(tenant)
        account.used = now
        if not account.present and tenant != OWN:
            account.present = True
            self.present += 1
        return account

    def greatest(self) -> Account:
        """Find the account with the most tasks."""
        return max(self._known.values(), key=lambda account: len(account.tasks))

    def look(self, now: float) -> None:
        """Note which callers are gone, and forget those that have been gone for long."""
        for account in [one for one in self._known.values() if not one.tasks and one.used < now - _LATELY]:
            if account.present:
                account.present = False
                self.present -= 1
            if account.used < now - _FORGOTTEN:
                del self._known[account.tenant]


# Cost model: how long tasks take, by what their plans say, corrected by what was measured.
#
# The front does not read bodies, so it knows a task by its kind: the caller, the call, the registered graph, the
# length, and the first bytes if no graph says what follows. Only kinds that turned out to be long are remembered: most
# tasks are short, and cost nothing here. Each caller has an experience of its own, since what one sends says nothing
# of what another will: nobody is refused for what others have done.

#: seconds that a task may take where others wait behind it
QUICK: Final = 0.002
#: bytes of a body that says too little to be run where short tasks are
LARGE_BODY: Final = 256 << 10
#: a task that was thought to be short, and takes longer than so many seconds, belongs to a long kind
MISJUDGED: Final = 0.02
#: kinds that are remembered, and callers whose tasks were compared with the cost model
_KINDS: Final = 4096
_CALLERS: Final = 4096
#: bytes of a body that its kind is known by: half of it, within these bounds. What follows are numbers
_PREFIX, _LONGEST_PREFIX = 512, 4096
#: drawn at each start, so that nobody can look for another body of the same kind
_SECRET: Final = secrets.token_bytes(32)
#: the weight of the last measurement
#: runs of a plan that take longer than those that follow: it is made in the first, and compiled beside the second
_WARMING: Final = 2
#: by what factor one measurement may differ from the cost model, to be believed
_MOST: Final = 4.0
#: measurements after which the cost model's correction is trusted, and what is added to it before and after
_TRUSTED: Final = 3
_UNSURE, _SURE = 1.25, 1.1


@dataclass(eq=False, slots=True)
class _Kind:
    """Plan of one long kind, and what its tasks took: seconds, 0 before one has been measured, and how many."""

    plan: Estimate
    taken: float = 0.0
    count: int = 0
    last: tuple[float, ...] = ()


@dataclass(eq=False, slots=True)
class _Calibration:
    """Factor by which a caller's tasks differ from the cost model, and how many were compared with it."""

    factor: float = 1.0
    measured: int = 0

    @property
    def margin(self) -> float:
        """Factor by which more than is expected has to fit."""
        return _SURE if self.measured >= _TRUSTED else _UNSURE

    def add(self, estimated: float, measured: float) -> None:
        """Compare the `estimated` seconds with the `measured` ones; a single comparison does not say much."""
        if estimated > 0:
            ratio = min(_MOST, max(1 / _MOST, measured / estimated))
            self.factor = self.factor * (1 - _NEW) + ratio * _NEW
            self.measured += 1


class TaskKind(NamedTuple):
    """Properties that tasks of a caller share when they are expected to take the same time."""

    tenant: str
    about: Hashable


class CostModel:
    """Memory of what long tasks took, of each caller by itself."""

    def __init__(self) -> None:
        self._kinds: dict[TaskKind, _Kind] = {}
        self._claims = FairEviction()
        self._calibrations: LRU[str, _Calibration] = LRU(_CALLERS)

    def margin(self, tenant: str) -> float:
        """Return the factor by which more than is expected of this caller's tasks has to fit."""
        return self._calibration(tenant).margin

    def known(self, task: Task) -> tuple[TaskKind | None, Estimate | None]:
        """Look up a task's kind, and its estimate if it is known to be long. A large body is taken to be."""
        large = len(task.body) > LARGE_BODY
        if not (large or self._claims.has(task.tenant)):
            return None, None
        kind = kind_of(task)
        if known := self._kinds.get(kind):
            return kind, self._expected(kind, known)
        return kind, Estimate(len(task.body) / TEXT_RATE, 0, 0) if large else None

    def planned(self, kind: TaskKind, plan: Estimate) -> Estimate:
        """Remember a plan of this kind that is estimated to be long; returns what it is expected to take."""
        known = self._kinds.setdefault(kind, _Kind(plan))
        known.plan = plan
        self._claims.use(kind, kind.tenant)
        if len(self._kinds) > _KINDS:
            self._kinds.pop(cast("TaskKind", self._claims.let_go()))
        return self._expected(kind, known)

    def settled(self, kind: TaskKind | None, workers: int) -> Estimate | None:
        """Estimate a task at the least, once each of the workers has planned its kind, and compiled it, and run it."""
        known = None if kind is None else self._kinds.get(kind)
        if known is None or known.count <= _WARMING * workers:
            return None
        return known.plan._replace(seconds=min(known.last))

    def measured(self, kind: TaskKind, expected: Estimate | None, seconds: float, *, planned: bool) -> None:
        """Learn how long a task of this kind took. A kind that turns out to be short is forgotten.

        Where it had to be `planned` first, and perhaps compiled, the next of its kind will take less.
        """
        known = self._kinds.get(kind)
        if seconds < QUICK / 2:
            self._kinds.pop(kind, None)
            self._claims.drop(kind)
            return
        if known is None:
            self.planned(kind, (expected or Estimate(0, 0, 0))._replace(seconds=0.0))
            known = self._kinds[kind]
        self._calibration(kind.tenant).add(known.plan.seconds, seconds)
        known.count += 1
        known.last = (*known.last[-2:], seconds)
        if not planned or not known.plan.seconds:
            known.taken = known.taken * (1 - _NEW) + seconds * _NEW if known.taken else seconds

    def _expected(self, kind: TaskKind, known: _Kind) -> Estimate:
        factor = self._calibration(kind.tenant).factor
        return known.plan._replace(seconds=known.taken or known.plan.seconds * factor)

    def _calibration(self, tenant: str) -> _Calibration:
        calibration = self._calibrations.hit(tenant)
        if calibration is None:
            calibration = _Calibration()
            self._calibrations.put(tenant, calibration)
        return calibration


def kind_of(task: Task) -> TaskKind:
    """Return the kind of a task."""
    if task.graph is not None:
        return TaskKind(task.tenant, (task.call, task.graph, len(task.body)))
    prefix = bytes(task.body[: max(_PREFIX, min(len(task.body) // 2, _LONGEST_PREFIX))])
    return TaskKind(task.tenant, (task.call, len(task.body), blake2b(prefix, key=_SECRET, digest_size=16).digest()))
