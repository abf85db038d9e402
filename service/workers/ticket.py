"""Ticket: a task that the pool has accepted, with its state, its worker, and the resources that are held for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar, Final, Protocol

from engine.ir.fairness import Turns
from service.core.errors import Refusal
from service.workers.admission import Account, TaskKind
from service.workers.claims import Claim
from service.workers.memory import BodyAllocation
from service.workers.pool import Done
from service.workers.task import Estimate, Task


class TaskState(IntEnum):
    """State of a task. Somebody waits for its result in all states but the last two."""

    WAITING = 0, "in a lane: no worker has it"
    SENT = 1, "a worker has it, and was not seen to have begun"
    RUNNING = 2, "a worker is at it"
    RETURNING = 3, "its worker was told to let go of it, so that it is done elsewhere"
    STOPPING = 4, "its worker was told to let go of it, since nobody waits for it any more"
    ANSWERED = 5, "over: no worker has it, nothing is held for it, and nobody waits"

    #: description in words
    meaning: str

    def __new__(cls, number: int, meaning: str) -> TaskState:
        """Make a state; the numbers order the states as they are listed here."""
        state = int.__new__(cls, number)
        state._value_ = number
        state.meaning = meaning
        return state


#: allowed transitions, each with its cause
TRANSITIONS: Final[Mapping[TaskState, Mapping[TaskState, str]]] = {
    TaskState.WAITING: {
        TaskState.SENT: "a worker can be sent it",
        TaskState.ANSWERED: "refused, late, or its client has left",
    },
    TaskState.SENT: {
        TaskState.RUNNING: "seen on the worker's page",
        TaskState.RETURNING: "others are held up",
        TaskState.WAITING: "taken back, asked about, or the worker has ended",
        TaskState.STOPPING: "late, or its client has left",
        TaskState.ANSWERED: "replied",
    },
    TaskState.RUNNING: {
        TaskState.RETURNING: "others are held up",
        TaskState.WAITING: "asked about, or the worker has ended",
        TaskState.STOPPING: "late, or its client has left",
        TaskState.ANSWERED: "replied",
    },
    TaskState.RETURNING: {
        TaskState.WAITING: "let go, or the worker has ended",
        TaskState.STOPPING: "late, or its client has left",
        TaskState.ANSWERED: "replied after all",
    },
    TaskState.STOPPING: {TaskState.ANSWERED: "let go, replied, or the worker has ended"},
    TaskState.ANSWERED: {},
}


class ImpossibleTransition(RuntimeError):
    """Transition that a task's state does not allow: a bug in the pool."""


class Carrier(Protocol):
    """Worker that a task was sent to."""

    @property
    def executing(self) -> Ticket | None:
        """The task that the worker executes now."""

    def stop(self, ticket: Ticket) -> None:
        """Tell the worker not to begin a task, or to end it early."""

    def begun(self, ticket: Ticket) -> float | None:
        """Return when the worker began this task, on the monotonic clock; None if it has not."""

    def kill(self, reason: str) -> None:
        """Kill the worker process."""


class Length(IntEnum):
    """Expected length of a task, which decides its lane. From LONG on it runs as a long task."""

    #: short, unless it turns out otherwise
    SHORT = 0
    #: in the long lane because its caller's tasks have lately overrun the time of a short one
    DOUBTFUL = 1
    LONG = 2
    #: run as a long task because short tasks of other callers waited for it, which says nothing about its kind
    ALONE = 3


#: shortcuts, since every task uses them: in Python 3.11, looking up an enum member takes ten times as long as a global
_WAITING, _SENT, _SHORT = TaskState.WAITING, TaskState.SENT, Length.SHORT

_WITH_WORKER: Final = frozenset({TaskState.SENT, TaskState.RUNNING, TaskState.RETURNING, TaskState.STOPPING})
_TOLD_TO_STOP: Final = frozenset({TaskState.RETURNING, TaskState.STOPPING})


class Ticket:
    """One task from its admission until no worker has it any more, which may be after its result."""

    __slots__ = (
        "_abandon",
        "account",
        "charged",
        "charged_lane",
        "deaths",
        "done",
        "estimate",
        "kind",
        "length",
        "memory",
        "most_seconds",
        "needs_graph",
        "release_shared",
        "reserved",
        "slot",
        "state",
        "stopped_at",
        "submitted",
        "sums",
        "task",
        "tensor_names",
        "worker",
    )  # fmt: skip

    #: True for pieces of a sum
    is_piece: ClassVar[bool] = False

    def __init__(
        self,
        task: Task,
        account: Account,
        done: Done,
        submitted: float,
        abandon: Callable[[Ticket, Refusal], None] = lambda ticket, refusal: None,
    ) -> None:
        """Make a ticket that waits; `abandon` is called to refuse the task when its memory is revoked."""
        self._abandon = abandon
        self.task = task
        self.account = account
        self.done = done
        self.submitted = submitted  # time.monotonic()
        self.state = _WAITING
        self.length = _SHORT
        #: kind for the cost model, unless the task is short
        self.kind: TaskKind | None = None
        #: lane in which the caller was charged `charged` seconds in advance, until the true time is known
        self.charged_lane: Turns[Ticket] | None = None
        self.charged = 0.0
        #: seconds after which the worker hands the task back; None: no limit
        self.most_seconds: float | None = None
        self.estimate: Estimate | None = None
        self.needs_graph = False
        #: resident tensors that a worker has asked for
        self.tensor_names: Sequence[str] = ()
        #: memory that is reserved for the answer
        self.reserved: Claim | None = None
        #: memory of the body, if the pool had to place it
        self.memory: BodyAllocation | None = None
        #: sums of the pieces, which the worker adds up
        self.sums: BodyAllocation | None = None
        #: releases the body if several tickets share it
        self.release_shared: Callable[[], None] | None = None
        #: worker that has the task, if any, and the slot that it has there
        self.worker: Carrier | None = None
        self.slot = 0
        #: time of the request to stop, on the monotonic clock
        self.stopped_at = 0.0
        #: weighted count of the workers that ended while they had the task
        self.deaths = 0

    def died(self) -> None:
        """Note that the worker ended while executing this task, which is tried again."""

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for the result."""
        return self.state < TaskState.STOPPING

    @property
    def is_stopped(self) -> bool:
        """Whether its worker was told to drop it, and has not answered yet."""
        return self.state in _TOLD_TO_STOP

    @property
    def revocable(self) -> bool:
        """Whether its memory may be revoked: as long as no worker has it."""
        return self.state is _WAITING

    def revoke(self, refusal: Refusal) -> None:
        """Refuse the task, so that its memory is released."""
        self._abandon(self, refusal)

    def become(self, state: TaskState) -> None:
        """Change the state. Raises ImpossibleTransition."""
        if state not in TRANSITIONS[self.state]:
            raise ImpossibleTransition(f"a job that is {self.state.name.lower()} cannot become {state.name.lower()}")
        self.state = state
        if state not in _WITH_WORKER:
            self.worker = None

    def sent_to(self, worker: Carrier, slot: int) -> None:
        """Note that a worker has the task from now on."""
        self.become(_SENT)
        self.worker = worker
        self.slot = slot

    def begun(self) -> float | None:
        """Look up when the worker began this task, on the monotonic clock; None if it has not."""
        begun = None if self.worker is None else self.worker.begun(self)
        # A worker sends no message when it begins a task: that is seen on its page.
        if begun is not None and self.state is _SENT:
            self.become(TaskState.RUNNING)
        return begun

    def stop(self, state: TaskState) -> float:
        """Tell the worker to drop the task, as RETURNING or STOPPING; return the time, on the monotonic clock."""
        assert self.worker is not None, "a worker has it"
        self.become(state)
        self.stopped_at = time.monotonic()
        self.worker.stop(self)
        return self.stopped_at
