"""Admission: the callers, the tasks that each has in the pool, and the limit of all tasks; and the cost model."""

from __future__ import annotations

import math
import secrets
from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple, cast

from engine.ir.fairness import FairEviction
from engine.ir.lru import LRU
from service.core.errors import Refusal, queue_full
from service.workers.task import TEXT_RATE, Estimate, Task

#: longest time in seconds that a client is told to wait
_LONGEST_WAIT: Final = 60
#: weight of the latest measurement in a moving average
_WEIGHT: Final = 0.3
#: tenant of the server's own tasks, such as readiness checks, which no caller has to share the pool with
OWN: Final = ""
#: seconds without a task after which a caller counts as gone, and after which its account is deleted
_GONE_AFTER: Final = 1.0
_DELETED_AFTER: Final = 60.0
#: overrun, in seconds: the total of times by which a caller's short tasks exceeded a short task's limit. A caller is
#: doubtful above the first value; the second is forgiven per second; more than the third is not counted
_DOUBTFUL_OVERRUN: Final = 0.1
_FORGIVEN_PER_SECOND: Final = 0.05
_MOST_OVERRUN: Final = 0.2


class Admission:
    """Limit of `tasks` in the pool at a time."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._rate = 0.0
        self._replies = 0
        self._looked = 0.0

    def full(self, tasks: int) -> bool:
        """Return whether a pool with this number of tasks is full."""
        return tasks >= self._tasks

    def crowded(self, tasks: int) -> Refusal:
        """Return the refusal of a full pool: retry when, at the recent rate, half of its tasks will be done."""
        seconds = math.ceil(tasks / (2 * self._rate)) if self._rate else 1
        return queue_full(tasks, min(_LONGEST_WAIT, max(1, seconds)))

    @staticmethod
    def infeasible(needed: float, remaining: float) -> Refusal:
        """Return the refusal of a task that would take `needed` seconds, and has `left` until its deadline."""
        detail = (
            f"with the requests before it, this request would take {needed:.3g} s, but only {remaining:.3g} s are left"
        )
        return Refusal("queue_full", detail, retry_after=min(_LONGEST_WAIT, max(1, math.ceil(needed - remaining))))

    def replied(self) -> None:
        """Count a task that was answered."""
        self._replies += 1

    def look(self, now: float) -> None:
        """Update the rate of answers from those since the last look."""
        if self._looked:
            rate = self._replies / (now - self._looked)
            self._rate = self._rate * (1 - _WEIGHT) + rate * _WEIGHT
        self._looked = now
        self._replies = 0


class Account:
    """Account of one caller."""

    __slots__ = ("_looked", "_overrun", "present", "tasks", "tenant", "used")

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        #: its tasks in the pool, oldest first
        self.tasks: dict[Task, None] = {}
        #: whether it has sent a task lately, and the time of the last one
        self.present = False
        self.used = 0.0
        self._overrun = 0.0
        self._looked = 0.0

    def overran(self, seconds: float, now: float) -> None:
        """Count the seconds of a task that was expected to be short and was not."""
        self._overrun = min(_MOST_OVERRUN, self._remaining_overrun(now) + seconds)
        self._looked = now

    def is_doubtful(self, now: float) -> bool:
        """Return whether tasks that are not known to be short go to the long lane."""
        return self._overrun > _DOUBTFUL_OVERRUN and self._remaining_overrun(now) > _DOUBTFUL_OVERRUN

    def _remaining_overrun(self, now: float) -> float:
        return max(0.0, self._overrun - _FORGIVEN_PER_SECOND * (now - self._looked))


class Accounts:
    """Accounts of all callers that were there lately."""

    def __init__(self) -> None:
        self._known: dict[str, Account] = {}
        #: number of callers that are there now
        self.present = 0

    @property
    def contended(self) -> bool:
        """Whether several callers take turns; a single one may use everything."""
        return self.present > 1

    def enter(self, tenant: str, now: float) -> Account:
        """Return the account of a caller that sends a task, and note that it is there."""
        account = self._known.get(tenant)
        if account is None:
            account = self._known[tenant] = Account(tenant)
        account.used = now
        if not account.present and tenant != OWN:
            account.present = True
            self.present += 1
        return account

    def greatest(self) -> Account:
        """Return the account with the most tasks."""
        return max(self._known.values(), key=lambda account: len(account.tasks))

    def look(self, now: float) -> None:
        """Note which callers have gone, and delete accounts that were not used for long."""
        for account in [idle for idle in self._known.values() if not idle.tasks and idle.used < now - _GONE_AFTER]:
            if account.present:
                account.present = False
                self.present -= 1
            if account.used < now - _DELETED_AFTER:
                del self._known[account.tenant]


# Cost model: expected times of long tasks, estimated from their plans and corrected by measurements.
#
# The front does not parse bodies, so it identifies a task by its kind: caller, call, registered graph and length; if
# there is no registered graph, also the first bytes of the body, which hold the graph. Only kinds that turned out to be
# long are stored: most tasks are short, and cost nothing here. Kinds and corrections are kept for each caller
# separately: so no caller is refused because of the tasks of another.

#: seconds that a short task may take: others wait behind it
QUICK: Final = 0.002
#: size above which a body goes to the long lane unseen
LARGE_BODY: Final = 256 << 10
#: seconds above which a task that was expected to be short makes its kind a long one
MISJUDGED: Final = 0.02
#: most kinds that are stored, and most callers with a correction of the cost model
_MOST_KINDS: Final = 4096
_MOST_CALLERS: Final = 4096
#: bounds of the prefix of a body that identifies its kind, half of the body; numbers are expected behind it
_PREFIX, _LONGEST_PREFIX = 512, 4096
#: key of the digest of prefixes, random so that nobody can construct another body of the same kind
_SECRET: Final = secrets.token_bytes(32)
#: first runs of a plan that take longer: the first includes planning, and during the second it is being compiled
_WARM_UP_RUNS: Final = 2
#: largest factor between a measurement and the model that is believed
_MOST_RATIO: Final = 4.0
#: measurements after which a correction is trusted, and the safety margins before and after
_TRUSTED: Final = 3
_UNSURE, _SURE = 1.25, 1.1


@dataclass(eq=False, slots=True)
class _Kind:
    """Plan of a long kind, average seconds of its tasks (0 before the first), their number, and the latest times."""

    plan: Estimate
    average: float = 0.0
    count: int = 0
    latest: tuple[float, ...] = ()


@dataclass(eq=False, slots=True)
class _Calibration:
    """Factor between the measured and the estimated times of a caller's tasks, and the number of comparisons."""

    factor: float = 1.0
    measured: int = 0

    @property
    def margin(self) -> float:
        """Safety margin: the factor by which expected times are raised before a task is refused."""
        return _SURE if self.measured >= _TRUSTED else _UNSURE

    def add(self, estimated: float, measured: float) -> None:
        """Include a comparison in the factor; its weight is small, since one comparison says little."""
        if estimated > 0:
            ratio = min(_MOST_RATIO, max(1 / _MOST_RATIO, measured / estimated))
            self.factor = self.factor * (1 - _WEIGHT) + ratio * _WEIGHT
            self.measured += 1


class TaskKind(NamedTuple):
    """Identity of tasks of one caller that are expected to take the same time."""

    tenant: str
    about: Hashable


class CostModel:
    """Expected times of long tasks, for each caller separately."""

    def __init__(self) -> None:
        self._kinds: dict[TaskKind, _Kind] = {}
        self._eviction = FairEviction()
        self._calibrations: LRU[str, _Calibration] = LRU(_MOST_CALLERS)

    def margin(self, tenant: str) -> float:
        """Return the safety margin for a caller's tasks."""
        return self._calibration(tenant).margin

    def estimate(self, task: Task) -> tuple[TaskKind | None, Estimate | None]:
        """Return a task's kind, and its estimate if it is known to be long, as large bodies are assumed to be."""
        large = len(task.body) > LARGE_BODY
        # Most callers have no long kinds: then nothing is hashed.
        if not (large or self._eviction.has(task.tenant)):
            return None, None
        kind = kind_of(task)
        if known := self._kinds.get(kind):
            return kind, self._expected(kind, known)
        return kind, Estimate(len(task.body) / TEXT_RATE, 0, 0) if large else None

    def add_plan(self, kind: TaskKind, plan: Estimate) -> Estimate:
        """Store the plan of a kind that is estimated to be long; return its estimate, corrected by measurements."""
        known = self._kinds.setdefault(kind, _Kind(plan))
        known.plan = plan
        self._eviction.use(kind, kind.tenant)
        # One caller with many kinds evicts its own, not those of others.
        if len(self._kinds) > _MOST_KINDS:
            self._kinds.pop(cast("TaskKind", self._eviction.evict()))
        return self._expected(kind, known)

    def lower_bound(self, kind: TaskKind | None, workers: int) -> Estimate | None:
        """Return the least recent time of a kind, once enough tasks have run for every worker to have compiled it."""
        known = None if kind is None else self._kinds.get(kind)
        if known is None or known.count <= _WARM_UP_RUNS * workers:
            return None
        return known.plan._replace(seconds=min(known.latest))

    def record(self, kind: TaskKind, expected: Estimate | None, seconds: float, *, planned: bool) -> None:
        """Learn the time of a task of this kind. A kind that turns out to be short is forgotten.

        If the task had to be `planned` first, its time counts less: the next one of its kind will be quicker.
        """
        known = self._kinds.get(kind)
        # Half the limit, so that a kind near the limit does not alternate between the lanes.
        if seconds < QUICK / 2:
            self._kinds.pop(kind, None)
            self._eviction.drop(kind)
            return
        if known is None:
            self.add_plan(kind, (expected or Estimate(0, 0, 0))._replace(seconds=0.0))
            known = self._kinds[kind]
        self._calibration(kind.tenant).add(known.plan.seconds, seconds)
        known.count += 1
        known.latest = (*known.latest[-2:], seconds)
        # A time that includes planning is used only if there is nothing better.
        if not planned or not known.plan.seconds:
            known.average = known.average * (1 - _WEIGHT) + seconds * _WEIGHT if known.average else seconds

    def _expected(self, kind: TaskKind, known: _Kind) -> Estimate:
        factor = self._calibration(kind.tenant).factor
        return known.plan._replace(seconds=known.average or known.plan.seconds * factor)

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
    # The length stands for the shapes: requests of one graph with equal lengths mostly have equal shapes.
    prefix = bytes(task.body[: max(_PREFIX, min(len(task.body) // 2, _LONGEST_PREFIX))])
    return TaskKind(task.tenant, (task.call, len(task.body), blake2b(prefix, key=_SECRET, digest_size=16).digest()))
