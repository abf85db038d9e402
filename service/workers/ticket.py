"""Ticket: a task that the pool has accepted, its state, its worker, and what is held for it."""

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
    """State of a task, and whether anybody waits for its reply: in all states but the last two, somebody does."""

    WAITING = 0, "in a lane: no worker has it"
    SENT = 1, "a worker has it, and was not seen to have begun"
    RUNNING = 2, "a worker is at it"
    RETURNING = 3, "its worker was told to let go of it, so that it is done elsewhere"
    STOPPING = 4, "its worker was told to let go of it, since nobody waits for it any more"
    ANSWERED = 5, "over: no worker has it, nothing is held for it, and nobody waits"

    #: in words
    meaning: str

    def __new__(cls, number: int, meaning: str) -> TaskState:
        """A state by its number in the order of their names here."""
        state = int.__new__(cls, number)
        state._value_ = number
        state.meaning = meaning
        return state


#: which state may follow, and upon what
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
    """A transition that a task's state does not allow: a fault of the pool."""


class Carrier(Protocol):
    """The worker that a task was sent to."""

    @property
    def executing(self) -> Ticket | None:
        """The task that it executes."""

    def stop(self, ticket: Ticket) -> None:
        """The task is not to begin, or to end early."""

    def begun(self, ticket: Ticket) -> float | None:
        """Return when it began this ticket, on the monotonic clock; None if it has not."""

    def kill(self, reason: str) -> None:
        """End the worker now."""


class Length(IntEnum):
    """Expected length of a task, by which it is told with which others it waits. From LONG on it is done as long."""

    #: short, until it turns out otherwise
    SHORT = 0
    #: with the long ones since its caller's short ones have not been short lately
    DOUBTFUL = 1
    LONG = 2
    #: done as a long one since short tasks of others waited for it, which says nothing of its kind
    ALONE = 3


#: every task meets these: in Python 3.11 a member of an enumeration takes ten times as long to find as a name
_WAITING, _SENT, _SHORT = TaskState.WAITING, TaskState.SENT, Length.SHORT

_WITH_WORKER: Final = frozenset({TaskState.SENT, TaskState.RUNNING, TaskState.RETURNING, TaskState.STOPPING})
_TOLD_TO_STOP: Final = frozenset({TaskState.RETURNING, TaskState.STOPPING})


class Ticket:
    """One task from being admitted until no worker has it any more, which may be later than its reply."""

    __slots__ = (
        "_abandon",
        "account",
        "beside",
        "bound",
        "charged",
        "charged_in",
        "deaths",
        "done",
        "estimate",
        "graph_wanted",
        "kind",
        "leave_shared",
        "length",
        "memory",
        "promised",
        "slot",
        "state",
        "stopped",
        "submitted",
        "task",
        "wanted",
        "worker",
    )  # fmt: skip

    #: whether it is a piece of another task
    is_piece: ClassVar[bool] = False

    def __init__(
        self,
        task: Task,
        account: Account,
        done: Done,
        submitted: float,
        abandon: Callable[[Ticket, Refusal], None] = lambda ticket, refusal: None,
    ) -> None:
        """`abandon` is called where what is held for the task is taken back, which nobody has to do then."""
        self._abandon = abandon
        self.task = task
        self.account = account
        self.done = done
        self.submitted = submitted  # time.monotonic()
        self.state = _WAITING
        self.length = _SHORT
        #: what it is known by to those like it, where it is not short
        self.kind: TaskKind | None = None
        #: where its caller was charged so many seconds, which were expected of it, until it is known what it took
        self.charged_in: Turns[Ticket] | None = None
        self.charged = 0.0
        #: seconds that it may take where it is, or else it is handed back
        self.bound: float | None = None
        self.estimate: Estimate | None = None
        self.graph_wanted = False
        #: the resident tensors that a worker has asked for to do it
        self.wanted: Sequence[str] = ()
        #: what is reserved for its answer
        self.promised: Claim | None = None
        #: where the pool put the body, where nobody else had
        self.memory: BodyAllocation | None = None
        #: what it is to be read with
        self.beside: BodyAllocation | None = None
        #: gives back what is held for it, where others look at that, too
        self.leave_shared: Callable[[], None] | None = None
        #: who has it, and where, while one does
        self.worker: Carrier | None = None
        self.slot = 0
        #: when it was told to stop, on the monotonic clock
        self.stopped = 0.0
        #: what it has to do with deaths of workers that had it
        self.deaths = 0

    def died(self) -> None:
        """Note that its worker has ended with it, and another one has it next."""

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for the reply."""
        return self.state < TaskState.STOPPING

    @property
    def is_stopped(self) -> bool:
        """Whether its worker was told to let go of it, and has not yet."""
        return self.state in _TOLD_TO_STOP

    @property
    def revocable(self) -> bool:
        """Whether what is held for it may be taken back: as long as no worker has it."""
        return self.state is _WAITING

    def revoke(self, refusal: Refusal) -> None:
        """End its waiting with this reply."""
        self._abandon(self, refusal)

    def become(self, state: TaskState) -> None:
        """Go to another state. Raises ImpossibleTransition."""
        if state not in TRANSITIONS[self.state]:
            raise ImpossibleTransition(f"a job that is {self.state.name.lower()} cannot become {state.name.lower()}")
        self.state = state
        if state not in _WITH_WORKER:
            self.worker = None

    def sent_to(self, worker: Carrier, slot: int) -> None:
        """Note that a worker has it from now on."""
        self.become(_SENT)
        self.worker = worker
        self.slot = slot

    def begun(self) -> float | None:
        """Look when a worker began to do this, on the monotonic clock; None where none has."""
        begun = None if self.worker is None else self.worker.begun(self)
        if begun is not None and self.state is _SENT:
            self.become(TaskState.RUNNING)
        return begun

    def stop(self, state: TaskState) -> float:
        """Have its worker let go of it, RETURNING or STOPPING; returns the time of that, on the monotonic clock."""
        assert self.worker is not None, "a worker has it"
        self.become(state)
        self.stopped = time.monotonic()
        self.worker.stop(self)
        return self.stopped
