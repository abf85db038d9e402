"""Admission: callers, what each has in work, and the refusal of more tasks than are held."""

from __future__ import annotations

import math
from typing import Final

from service.core.errors import Refusal, full
from service.workers.task import Task

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
