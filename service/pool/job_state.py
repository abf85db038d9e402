from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class JobState(IntEnum):
    """State of a task, and whether anybody waits for its reply: in all states but the last two, somebody does."""

    WAITING = 0, "in a lane: no worker has it"
    SENT = 1, "a worker has it, and was not seen to have begun"
    RUNNING = 2, "a worker is at it"
    RETURNING = 3, "its worker was told to let go of it, so that it is done elsewhere"
    STOPPING = 4, "its worker was told to let go of it, since nobody waits for it any more"
    ANSWERED = 5, "over: no worker has it, nothing is held for it, and nobody waits"

    #: in words
    meaning: str

    def __new__(cls, number: int, meaning: str) -> JobState:
        """A state by its number in the order of their names here."""
        state = int.__new__(cls, number)
        state._value_ = number
        state.meaning = meaning
        return state


#: which state may follow, and upon what
TRANSITIONS: Final[Mapping[JobState, Mapping[JobState, str]]] = {
    JobState.WAITING: {
        JobState.SENT: "a worker can be sent it",
        JobState.ANSWERED: "refused, late, or its client has left",
    },
    JobState.SENT: {
        JobState.RUNNING: "seen on the worker's page",
        JobState.RETURNING: "others are held up",
        JobState.WAITING: "taken back, asked about, or the worker has ended",
        JobState.STOPPING: "late, or its client has left",
        JobState.ANSWERED: "replied",
    },
    JobState.RUNNING: {
        JobState.RETURNING: "others are held up",
        JobState.WAITING: "asked about, or the worker has ended",
        JobState.STOPPING: "late, or its client has left",
        JobState.ANSWERED: "replied",
    },
    JobState.RETURNING: {
        JobState.WAITING: "let go, or the worker has ended",
        JobState.STOPPING: "late, or its client has left",
        JobState.ANSWERED: "replied after all",
    },
    JobState.STOPPING: {
        JobState.ANSWERED: "let go, replied, or the worker has ended",
    },
    JobState.ANSWERED: {},
}


class ImpossibleTransition(RuntimeError):
    """A task was to go where it cannot go from its state: a fault of the pool."""
