"""Layout of what a runner reads and its threads share: words of steps, of what ends a run, of the pool, of loops."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

#: parts of a step, of which a ticket has 16 bits
MOST_STEP_PARTS: Final = 4096
MOST_HELPERS: Final = 63
#: of blocks that a copy is made of
MOST_AXES: Final = 8
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


class InitEntry(IntEnum):
    """Words of a place that gets an address at the start: of an array of the table, by position, or of none, −1."""

    PLACE = 0
    POSITION = 1
    OFFSET = 2
    #: bytes for each step but one
    LAST = 3
    SIZE = 4


class MoveEntry(IntEnum):
    """Words of what changes a place between two steps: (its word + STRIDE) xor MASK."""

    PLACE = 0
    STRIDE = 1
    MASK = 2
    SIZE = 3


class CarryEntry(IntEnum):
    """Words of a carry: positions of its operand and result, two buffers one after the other, and its bytes."""

    FROM = 0
    TO = 1
    BUFFERS = 2
    BYTES = 4
    SIZE = 5


class StackEntry(IntEnum):
    """Words of a stack: its position, and bytes of an entry and of all."""

    POSITION = 0
    ENTRY = 1
    BYTES = 2
    SIZE = 3


class LoopEntry(IntEnum):
    """Words of a loop; see `runner.c`. Lists are an address and a number of entries."""

    STEPS = 0
    COUNT = 1
    BEFORE = 2
    BEFORE_COUNT = 3
    BEFORE_FLAG = 4
    FLAG = 5
    LENGTH = 6
    LENGTH_AT = 7
    STEPS_AT = 8
    FINISHED_AT = 9
    INITS = 10
    INIT_COUNT = 11
    MOVES = 12
    MOVE_COUNT = 13
    CARRIES = 14
    CARRY_COUNT = 15
    STACKS = 16
    STACK_COUNT = 17
    WATCH = 18
    POOL = 19
    LOOK_STEPS = 20
    ENDED = 21
    #: the array that says whether it runs at all, or −1, and what it says then
    WHEN_AT = 22
    WHEN = 23
    #: where it was left: whether in the condition before the first step, which step of that list, or −1 where the run
    #: is to end, and of how many steps of the loop which one
    ASKS = 24
    AT = 25
    MOST = 26
    T = 27
    #: whether it is to go on behind that step, instead of from the beginning
    GOES_ON = 28
    #: the address of the word that says through how many steps its kernel goes by itself, or 0
    MANY = 29
    SIZE = 30
