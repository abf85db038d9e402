"""Kernels of machine code bound to their memory: what a plan calls, alone, in a row, or shared among threads.

A fallback computes the same by other calls.
"""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from engine.codegen.native.machine_code import (
    KernelStore,
    KernelUnavailable,
    kernel_key,
    load_function,
    machine_code,
    target,
)
from engine.ir.op import KernelCall
from engine.ir.tensor_type import HostArray

# Bounds of the buffers of kernels, stated by the code that binds them: for a build that checks each access.
#
# They stand in front of a kernel's table, with the table's length. The first access of a process outside of its buffer
# is recorded, and all are made elsewhere: so the kernel comes to its end, and touches no memory that is not its own.

#: how many words before a table the address of the record stands, and the table's bytes
RECORD_WORD, LENGTH_WORD = 1, 2
#: bytes that accesses outside of their buffers are made to: as many as the widest vector has
_ELSEWHERE: Final = 512


class FaultEntry(IntEnum):
    """Words of the record of an access outside of its buffer."""

    FOUND = 0
    #: address of the table that the kernel was called with
    TABLE = 1
    #: of the buffer in the table; −1 for the table itself
    POSITION = 2
    #: number of the access in the kernel's text
    ACCESS = 3
    #: bytes from the first of the buffer to the first of the element, of the lane that is furthest away
    OFFSET = 4
    EXTENT = 5
    #: bytes of an element
    ELEMENT = 6
    LANES = 7
    SIZE = 8


class Bounds:
    """Switch by which kernels are printed and bound so, in this process; and the first fault of all of them."""

    def __init__(self) -> None:
        self.checked = False
        self._memory: HostArray = np.zeros(FaultEntry.SIZE + _ELSEWHERE // 8, np.int64)

    @property
    def record(self) -> HostArray:
        """The words of `FaultEntry`; they are 0 if there was no fault."""
        return self._memory[: FaultEntry.SIZE]

    def tables(self, threads: int, size: int) -> HostArray:
        """Make tables of so many words, int64 [threads, size], all 0; if checked, with room for bounds before each."""
        if not self.checked:
            return np.zeros((threads, size), np.int64)
        words: HostArray = np.zeros((threads, _in_front(size) + size), np.int64)
        words[:, _in_front(size) - RECORD_WORD] = self._memory.ctypes.data
        words[:, _in_front(size) - LENGTH_WORD] = 8 * size
        return words[:, _in_front(size) :]

    def words(self, table: HostArray, position: int) -> list[int]:
        """Return the addresses of the words that bound the buffer at a position; none if accesses are not checked.

        Code that moves the address at that position has to move these bounds as far.
        """
        if not self.checked:
            return []
        first = int(table.ctypes.data) - 8 * first_word(position)
        return [first, first - 8]

    @staticmethod
    def state(tables: HostArray, position: int, before: int, behind: int) -> None:
        """State how many bytes before the addresses at a position, and from them on, are of their buffer."""
        words = tables.base
        assert words is not None
        at = _in_front(tables.shape[1]) - first_word(position)
        words[:, at] = tables[:, position] - before
        words[:, at - 1] = tables[:, position] + behind


#: of this process
WATCHED: Final = Bounds()


def reach(array: HostArray) -> tuple[int, int]:
    """Count the bytes before an array's first element, and from there on, that its elements lie in."""
    if not array.size:
        return 0, 0
    steps = [(extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True)]
    return -sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps) + array.itemsize


def _in_front(size: int) -> int:
    """Count the words before a table of so many: the record's address, its bytes, and two for each of its own."""
    return 2 + 2 * size


def first_word(position: int) -> int:
    """Count the words from the table back to the first byte of a buffer; before it stands the byte past the last."""
    return 3 + 2 * position


#: chunks a thread finds, if all are as fast: the fewer, the longer the others wait for the last one
CHUNKS_PER_THREAD: Final = 4
Own = TypeVar("Own")


def share(work: Callable[[int, int, Own], object], count: int, owns: Sequence[Own]) -> None:
    """Call `work(first, past, own)` for the items 0 to `count`, in chunks, in as many threads as there are `owns`.

    A thread has its own of these to itself. The calling one takes part, and waits for none that has not begun: so it
    does no harm to be out of them. What `work` raises is raised here, once no thread is at work any more.
    """
    chunks = min(count, CHUNKS_PER_THREAD * len(owns))
    claims = iter(range(chunks))  # next() is one step under the interpreter's lock

    def claim(own: Own) -> None:
        for chunk in claims:
            work(chunk * count // chunks, (chunk + 1) * count // chunks, own)

    helpers = [helping_threads().submit(_quietly, claim, own) for own in owns[1:]]
    try:
        claim(owns[0])
    finally:
        raised = [helper.exception() for helper in helpers if not helper.cancel()]  # waits for each
    for error in raised:
        if error is not None:
            raise error


@cache
def helping_threads() -> ThreadPoolExecutor:
    """Start the pool whose threads help with shared work."""
    return ThreadPoolExecutor(max(1, os.cpu_count() or 1), "loops")


def _quietly(claim: Callable[[Own], object], own: Own) -> None:
    """Work without floating-point warnings, which are a setting of each thread."""
    with np.errstate(all="ignore"):
        claim(own)


#: void kernel(int64 first, int64 past, const int64* table)
SIGNATURE: Final = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class LoadedKernel:
    """Machine code of a kernel, loaded; `memory` holds it."""

    function: Callable[[int, int, Any], object]
    address: int
    memory: Any


def load_kernel(data: bytes) -> LoadedKernel:
    """Load an object file. Raises KernelUnavailable."""
    code = load_function(data)
    return LoadedKernel(SIGNATURE(code.address), code.address, code.memory)


@dataclass(eq=False, slots=True)
class NativeCall:
    """`function`, which is at `address`, for the items 0 to `items` and a table; calling this runs it.

    Items may be computed in any division and order, with the same bits. `entries`, int64 [threads, size], has a table
    for each thread that may take part, alike but for what is a thread's own. `kept` is what has to live beside it.
    One thread at a time may call it.
    """

    function: Callable[[int, int, Any], object]
    address: int
    items: int
    entries: HostArray
    kept: Any = None
    #: what the tables point at, by the position in them: of a call that is to follow feeds, all operands and results
    arrays: dict[int, HostArray] = field(default_factory=dict)
    _tables: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._tables = [table.ctypes.data for table in self.entries]

    def point(self, position: int, array: HostArray) -> None:
        """Put the address of an array in all tables, from the next call on."""
        self.entries[:, position] = array.ctypes.data
        self.arrays[position] = array
        if WATCHED.checked:
            WATCHED.state(self.entries, position, *reach(array))

    def place(self, position: int, addresses: int | HostArray, nbytes: int) -> None:
        """Put an address of so many bytes of workspace in all tables, or one in each."""
        self.entries[:, position] = addresses
        if WATCHED.checked:
            WATCHED.state(self.entries, position, 0, nbytes)

    def __call__(self) -> None:
        """Run it, with as many threads as there are tables."""
        if len(self._tables) == 1:
            self.function(0, self.items, self._tables[0])
        else:
            share(self.function, self.items, self._tables)

    def forget(self, position: int) -> None:
        """Let go of the array there. Until `point` says where it lies then, this cannot be called."""
        self.arrays.pop(position, None)


@dataclass(eq=False, slots=True)
class NativeGuard:
    """A call in Python that is made only if native calls before it left a `word`, int64 [1], other than 0."""

    word: HostArray
    call: KernelCall

    def __call__(self) -> None:
        """Make the call, if the word says so."""
        if self.word[0]:
            function, arguments = self.call
            function(*arguments)


class TablePlace(NamedTuple):
    """Place where a table points at an array."""

    call: NativeCall
    position: int

    @property
    def array(self) -> HostArray:
        """The array that lies there now."""
        return self.call.arrays[self.position]


def places_of(array: HostArray, calls: Sequence[KernelCall]) -> list[TablePlace]:
    """List the places where the tables of native calls point at this very object."""
    return [
        TablePlace(call, position)
        for call, _ in calls
        if isinstance(call, NativeCall)
        for position, found in call.arrays.items()
        if found is array
    ]


@dataclass(frozen=True, eq=False, slots=True)
class FollowedArray:
    """An array that native calls point at, or one that never moves: `now` is what lies there at the moment."""

    found: TablePlace | HostArray

    @property
    def now(self) -> HostArray:
        """The array."""
        return self.found.array if isinstance(self.found, TablePlace) else self.found


def followed(array: HostArray, calls: Sequence[KernelCall]) -> FollowedArray:
    """Follow an array of calls through all moves that their tables are told of."""
    places = places_of(array, calls)
    return FollowedArray(places[0] if places else array)


def make_calls(calls: Iterable[KernelCall]) -> None:
    """Make calls, in order."""
    for function, args in calls:
        function(*args)


def joined(calls: Sequence[KernelCall]) -> KernelCall:
    """Join calls to one that makes all of them."""
    return calls[0] if len(calls) == 1 else (make_calls, (tuple(calls),))


#: binds operands and results to calls that compute the same
Otherwise: TypeAlias = Callable[[Sequence[HostArray], Sequence[HostArray]], Sequence[KernelCall]]


def fallback(
    otherwise: Otherwise, operands: Sequence[HostArray], results: Sequence[HostArray], calls: Sequence[KernelCall] = ()
) -> KernelCall:
    """Return the fallback of a kernel that is missing, or met arguments that it has no formula for.

    It has `otherwise` bind the arrays again for each run, as they lie where `calls`, which were bound to the same,
    point then; and makes those calls.
    """
    read, written = ([followed(array, calls) for array in arrays] for arrays in (operands, results))
    return _compute, (otherwise, read, written)


def guarded(
    calls: Sequence[KernelCall],
    word: HostArray,
    otherwise: Otherwise,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
) -> list[KernelCall]:
    """Append the fallback after a run in which `calls` left a `word`, int64 [1], other than 0."""
    return [*calls, (NativeGuard(word, fallback(otherwise, operands, results, calls)), ())]


def _compute(otherwise: Otherwise, read: Sequence[FollowedArray], written: Sequence[FollowedArray]) -> None:
    make_calls(otherwise([x.now for x in read], [x.now for x in written]))


# Threads of a process that help whoever runs a region: asleep in machine code, without the interpreter's lock.

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
