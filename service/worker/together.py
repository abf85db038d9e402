"""Requests for the same plan that wait together, as one execution: their numbers are rows of its feeds."""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine import Deadline, DeadlineExceeded, EngineError, HostArray, Plan, registry
from engine.planning.cache import Cache
from engine.planning.estimate import RUN, STEP, run_seconds
from engine.planning.many import plan_of_many
from service.settings import Settings, budget_of
from service.transport.job import Reply
from service.worker.job_context import PLANNING
from service.worker.sharing import FEWEST
from service.worker.worker import KnownRequest, NewRequest, Worker

#: requests that are executed as one, at most; a power of two, as all sizes are that plans are made for
MOST: Final = 64
#: bytes that remembering takes that there is no plan
_NO_PLAN_BYTES: Final = 200

_logger = logging.getLogger("gradserve.worker")


@dataclass(frozen=True, slots=True)
class _Many:
    """The plan for so many runs at once, and the seconds that it takes; None where there is none."""

    plan: Plan | None
    seconds: float = 0.0

    @property
    def nbytes(self) -> int:
        return _NO_PLAN_BYTES if self.plan is None else self.plan.nbytes


class Together:
    """Groups requests that a worker has read, and executes each group as one.

    Each is answered as if alone, but for the order of additions. One that fails spoils no other: the group is done
    again then, one by one. As many as are not wanted any more, or late, are computed for nothing.
    """

    def __init__(self, worker: Worker, settings: Settings) -> None:
        self.read_job = worker.read_job
        self.finish = worker.finish
        self._worker = worker
        self._engine = worker.engine
        self._plans: Cache[_Many] = Cache(settings.plan_cache, budget_of(settings).together, lambda many: many.nbytes)

    def groups(self, tasks: Sequence[KnownRequest | NewRequest]) -> list[list[int]]:
        """The positions of those that ask for the same plan, where there are enough, and all together are short."""
        alike: dict[Hashable, tuple[KnownRequest, list[int]]] = {}
        for position, task in enumerate(tasks):
            if isinstance(task, KnownRequest) and task.cached.is_shared:
                alike.setdefault(task.cached.plan, (task, []))[1].append(position)
        return [group for first, positions in alike.values() for group in self._cut(first, positions)]

    def run_tasks(self, tasks: Sequence[KnownRequest]) -> list[Reply] | None:
        """The replies to a group; None where it fails as one."""
        started = time.perf_counter()
        deadline = _LastDeadline([task.context.deadline for task in tasks])
        rows = self._rows(tasks, deadline)
        if rows is None:
            return None
        seconds = (time.perf_counter() - started) / len(tasks)
        backward = 0.0 if deadline.turned is None else (time.monotonic() - deadline.turned) / len(tasks)
        return [
            self._worker.finish_shared(task, [array[i, ...] for array in rows], seconds, backward, deadline.report)
            for i, task in enumerate(tasks)
        ]

    def _cut(self, like: KnownRequest, positions: list[int]) -> list[list[int]]:
        """Groups of requests like this one, as large as they can be."""
        groups = []
        while len(positions) >= FEWEST and (size := self._size(like, len(positions))):
            groups.append(positions[:size])
            positions = positions[size:]
        return groups

    def _size(self, task: KnownRequest, count: int) -> int:
        """How many of so many are executed as one, within the time that one may take; 0 where none are."""
        most = task.context.most_seconds
        cost, once = task.cached.cost.seconds, RUN + STEP * len(task.compiled.plan.steps)
        size = _rounded(min(count, MOST))
        while size >= FEWEST:
            if most is None or once + size * (cost - once) <= most:
                many = self._many(task, size)
                if many.plan is not None and (most is None or many.seconds <= most):
                    return min(size, count)
            size //= 2
        return 0

    def _many(self, task: KnownRequest, size: int) -> _Many:
        return self._plans.get((task.cached.plan, size), lambda: self._planned(task.compiled.plan, size))[0]

    def _planned(self, plan: Plan, size: int) -> _Many:
        """The plan for many, where there is one, it is within the limits of one request, and made soon."""
        if not plan.feeds:
            return _Many(None)
        compiler, soon = self._engine.compiler, Deadline(PLANNING)
        try:
            many = plan_of_many(plan, size, registry(), compiler.limits, soon, compiler.loop_threads)
        except EngineError:
            return _Many(None)
        except Exception:  # a fault of ours: it is no reason for a request to fail
            _logger.exception("a plan for %d at once could not be made", size)
            return _Many(None)
        return _Many(None) if many is None else _Many(many, run_seconds(many, self._engine.dense_flop))

    def _rows(self, tasks: Sequence[KnownRequest], deadline: Deadline) -> list[HostArray] | None:
        """The results of all, by rows; None where one of them fails, and nobody knows which."""
        size = _rounded(len(tasks))
        plan = self._many(tasks[0], size).plan
        if plan is None:
            return None
        try:
            return self._engine.executor.run(plan, _stacked(plan, tasks, size), deadline)
        except (EngineError, MemoryError):
            return None
        except Exception:
            _logger.exception("%d requests could not be executed together", len(tasks))
            return None


class _LastDeadline(Deadline):
    """Deadline that passes once it has for each of several: who is late, or has left, stops nobody else."""

    __slots__ = ("_all",)

    def __init__(self, deadlines: Sequence[Deadline]) -> None:
        now = time.monotonic()
        super().__init__(max(deadline.at for deadline in deadlines) - now, now)
        self._all = deadlines

    def check(self) -> None:
        now = time.monotonic()
        if all(each.stop[0] or now > each.at for each in self._all):
            raise DeadlineExceeded("nobody waits for any of the answers any more")


def _rounded(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()


def _stacked(plan: Plan, tasks: Sequence[KnownRequest], size: int) -> dict[Hashable, HostArray]:
    """The feeds of all as rows, and those of the last one in rows that nobody has asked for."""
    tensors = [task.tensors for task in tasks]
    tensors += [tensors[-1]] * (size - len(tasks))
    return {feed: _rows_of([each[feed] for each in tensors]) for feed in plan.feeds}


def _rows_of(arrays: Sequence[HostArray]) -> HostArray:
    """The same as `np.stack`, in a third of its time."""
    if not arrays[0].ndim:
        return np.array(arrays)
    return np.concatenate(arrays).reshape(len(arrays), *arrays[0].shape)
