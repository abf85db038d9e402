"""Threads of a process that help whoever runs a region: asleep in machine code, without the interpreter's lock."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import platform
import sys
from enum import IntEnum
from functools import cache
from pathlib import Path
from threading import Lock, Thread
from typing import Final

import numpy as np

from engine.codegen.native.kernel_errors import KernelUnavailable
from engine.codegen.native.kernel_store import KernelStore, kernel_key
from engine.codegen.native.machine_code import machine_code, target
from engine.codegen.native.native_call import SIGNATURE
from engine.codegen.native.object_file import load_function
from engine.ir.tensor_type import HostArray

# Layout of what a runner reads and its threads share: words of steps, of what ends a run, of the pool, of loops.

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


#: the system calls and the pause of a runner are those of one system
IS_SUPPORTED: Final = sys.platform == "linux" and platform.machine() == "x86_64"
_LINE: Final = 64
_FUTEX, _WAKE_PRIVATE = 202, 129
_RUN: Final = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
)
_HELP: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)

_logger = logging.getLogger("gradserve.kernels")


class Runner:
    """The loaded code of a runner, and its pool: threads that are started when a step wants them.

    May be shared by threads. Of several that have large steps at once, one has the helpers; the others do without. A
    process that was forked has a pool of its own. The helpers never outlive the interpreter.
    """

    def __init__(self, code: bytes) -> None:
        """`code` is the object file of `runner_text`. Raises KernelUnavailable."""
        run, self._help_code = load_function(code, "run"), load_function(code, "help")
        repeat, copy = load_function(code, "repeat"), load_function(code, "copy")
        self._code = run.memory, repeat.memory, copy.memory
        self.run = _RUN(run.address)
        #: kernels: a loop over steps, and a copy of dense memory
        self.repeat, self.repeat_address = SIGNATURE(repeat.address), repeat.address
        self.copy, self.copy_address = SIGNATURE(copy.address), copy.address
        self._library = ctypes.CDLL(None)
        memory = np.zeros(PoolEntry.SIZE + _LINE // 8, np.int64)
        start = -memory.ctypes.data % _LINE // 8
        self._pool: HostArray = memory[start : start + PoolEntry.SIZE]
        #: address of what the threads share
        self.pool: int = self._pool.ctypes.data
        self._begin()
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self.close)

    def want(self, helpers: int) -> None:
        """Start threads up to so many helpers, if the system gives them, and MOST_HELPERS at most."""
        if helpers <= self.helpers:
            return
        with self._lock:
            while self.helpers < min(helpers, MOST_HELPERS) and not self._pool[PoolEntry.CLOSING]:
                thread = Thread(target=self._help, args=(self.helpers,), name="runner", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # too many threads, or the interpreter ends
                    return
                self._threads.append(thread)
                self.helpers += 1

    def close(self) -> None:
        """End the helpers, once each has finished the part that it has begun; regions are run without them."""
        with self._lock:
            self._pool[PoolEntry.CLOSING] = 1
            for number in range(self.helpers):
                bed = PoolEntry.ASLEEP + number * _LINE // 8
                self._pool[bed] = 0
                self._library.syscall(*map(ctypes.c_long, (_FUTEX, self.pool + 8 * bed, _WAKE_PRIVATE, 1)))
            for thread in self._threads:
                thread.join()

    def _begin(self) -> None:
        """Begin a pool without threads: that of a new process, whatever others were doing when it was forked."""
        self._lock = Lock()
        self._threads: list[Thread] = []
        #: how many there are
        self.helpers = 0
        self._pool[:] = 0
        self._pool[PoolEntry.TICKET] = CLOSED
        for entry, name in (PoolEntry.SYSCALL, "syscall"), (PoolEntry.CLOCK, "clock_gettime"):
            self._pool[entry] = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value

    def _help(self, number: int) -> None:
        _HELP(self._help_code.address)(self.pool, number)


@cache
def runner_text() -> str:
    """Read the module with `run` and `help` of `runner.c`, as a compiler made it, for Linux on x86-64."""
    return Path(__file__).with_name("generated").joinpath("runner.ll").read_text("ascii")


class _Shared:
    """The runner of this process, which is made when it is first asked for."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.tried = False
        self.runner: Runner | None = None


_shared = _Shared()


def shared_runner(store: KernelStore) -> Runner | None:
    """Return the runner of this process, its code from `store` if that has it; None if there can be none."""
    with _shared.lock:
        if not _shared.tried and IS_SUPPORTED:
            try:
                _shared.runner = _kept(store)
                if _shared.runner is None:
                    code = machine_code(runner_text())
                    _shared.runner = Runner(code)
                    store.put(_key(), code)
            except KernelUnavailable as error:
                _logger.warning("kernels are not run by machine code, but one by one: %s", error)
        _shared.tried = True
        return _shared.runner


def _kept(store: KernelStore) -> Runner | None:
    """Load the runner from the store; None if it is not there, or cannot be loaded."""
    code = store.get(_key())
    try:
        return None if code is None else Runner(code)
    except KernelUnavailable:
        return None


def _key() -> str:
    return kernel_key(runner_text(), **target())
