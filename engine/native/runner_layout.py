"""Layout of what a runner reads and its threads share: words of steps, of what ends a run, and of the pool."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

#: parts of a step, of which a ticket has 16 bits
MOST_STEP_PARTS: Final = 4096
MOST_HELPERS: Final = 63
#: a moment that never comes
NEVER_COMES: Final = (1 << 63) - 1
#: the part of a ticket of a run that is over
CLOSED: Final = 0xFFFF


class StepEntry(IntEnum):
    """Words of a step. Where there is no function, TABLE is the address of a word that has to be 0."""

    FUNCTION = 0
    ITEMS = 1
    TABLE = 2
    #: bytes from one thread's table to the next one's
    STRIDE = 3
    PARTS = 4
    HELPERS = 5
    NANOSECONDS = 6
    #: in a pool: the address of the run's watch
    WATCH = 7
    SIZE = 8


class WatchEntry(IntEnum):
    """Words of what ends a run early: a moment of CLOCK_MONOTONIC in nanoseconds, and the address of a byte, or 0."""

    MOMENT = 0
    STOP = 1
    SIZE = 2


class PoolEntry(IntEnum):
    """Words of what threads share; those that several write have cache lines of their own."""

    TICKET = 0
    DONE = 8
    OWNER_SLEEPS = 9
    #: whether parts are left out, as the run is to end
    ENDED = 10
    OWNER = 16
    STEP = 24
    CLOSING = 32
    SYSCALL = 33
    CLOCK = 34
    ASLEEP = 40
    SIZE = 40 + 8 * MOST_HELPERS
