"""Native calls: compiled kernels bound to memory, and the runner that executes lists of them without Python.

Every kernel has the signature `kernel(first, past, table)`. It computes the items `first` to `past − 1` of its work.
The table is an array of int64 that holds everything else the kernel needs: sizes, strides, and the addresses of
operands, results and workspace. A `NativeCall` is a kernel with its tables filled in. A kernel of y = exp(x) over 8
blocks of rows, which up to two threads may share, becomes

    NativeCall(function, address, items=8, entries=[[… &x, &y, &scratch of thread 0],
                                                    [… &x, &y, &scratch of thread 1]])

Items are independent, so any division of them among threads gives the same bits. To run a call on other arrays, only
the addresses in its tables change (`point`).

A bound plan is a list of calls. Calling kernels from Python costs some 0.3 µs each, so consecutive native calls become
one region: an int64 array with a row per call, whose columns are `StepEntry`. `run` in `runner.c` goes through the
rows. It calls a small step directly. It divides a long step into parts, which the calling thread and sleeping helpers
claim by incrementing a ticket in the pool (`PoolEntry`). No thread waits for a helper that has claimed no part. Between
parts, and every half millisecond of small steps, `run` checks the run's deadline and stop flag (`WatchEntry`) and
returns −1 if the run has to end.

A row without a function is a guard. If the word at its TABLE address is not 0, `run` returns the number of the row.
Python then makes the `NativeGuard` call, for example NumPy's version of a kernel whose arguments were out of range, and
resumes behind it. `repeat` in `runner.c` is itself such a kernel: its table points to a `LoopEntry` array, and it runs
the steps of a loop body until the loop ends.

Where there is no runner, `make_calls` makes the same calls one by one, and `share` divides one among Python threads.
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

# Bounds of kernels' buffers, written by the code that binds kernels, for a build that checks every memory access.
#
# They are stored in front of a kernel's table, together with the table's length. The first access of the process
# outside its buffer is recorded. All such accesses are redirected to a dummy area, so that the kernel finishes without
# touching memory that is not its own.

#: words from a table back to the address of the fault record, and back to the table's size in bytes
RECORD_WORD, LENGTH_WORD = 1, 2
#: bytes of the dummy area that accesses outside their buffers are redirected to: the size of the widest vector
_ELSEWHERE: Final = 512


class FaultEntry(IntEnum):
    """Words of the record of an access outside its buffer."""

    OCCURRED = 0
    #: address of the table that the kernel was called with
    TABLE = 1
    #: position of the buffer in the table; −1 for the table itself
    POSITION = 2
    #: number of the access in the kernel's text
    ACCESS = 3
    #: byte offset of the accessed element from the beginning of the buffer, for the lane that is furthest outside
    OFFSET = 4
    #: bytes of the buffer
    EXTENT = 5
    #: bytes of an element
    ELEMENT = 6
    LANES = 7
    SIZE = 8


class Bounds:
    """Process-wide switch for bounds checks in kernels, and the record of the first fault."""

    def __init__(self) -> None:
        self.checked = False
        self._memory: HostArray = np.zeros(FaultEntry.SIZE + _ELSEWHERE // 8, np.int64)

    @property
    def record(self) -> HostArray:
        """The words of `FaultEntry`; all 0 if there was no fault."""
        return self._memory[: FaultEntry.SIZE]

    def tables(self, threads: int, size: int) -> HostArray:
        """Allocate zeroed tables, int64 [threads, size]; if accesses are checked, with room for bounds before each."""
        if not self.checked:
            return np.zeros((threads, size), np.int64)
        words: HostArray = np.zeros((threads, _in_front(size) + size), np.int64)
        words[:, _in_front(size) - RECORD_WORD] = self._memory.ctypes.data
        words[:, _in_front(size) - LENGTH_WORD] = 8 * size
        return words[:, _in_front(size) :]

    def words(self, table: HostArray, position: int) -> list[int]:
        """Return the addresses of the two words that bound the buffer at a position; none if accesses are not checked.

        Code that moves the address at that position has to move these bounds by the same distance.
        """
        if not self.checked:
            return []
        first = int(table.ctypes.data) - 8 * first_word(position)
        return [first, first - 8]

    @staticmethod
    def state(tables: HostArray, position: int, before: int, behind: int) -> None:
        """Write the bounds of the buffers at a position: bytes before each address, and bytes from the address on."""
        words = tables.base
        assert words is not None
        position_word = _in_front(tables.shape[1]) - first_word(position)
        words[:, position_word] = tables[:, position] - before
        words[:, position_word - 1] = tables[:, position] + behind


#: the bounds checks of this process
BOUNDS: Final = Bounds()


def byte_span(array: HostArray) -> tuple[int, int]:
    """Return the bytes that an array's elements span before its first element, and from its first element on."""
    if not array.size:
        return 0, 0
    steps = [(extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True)]
    return -sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps) + array.itemsize


def _in_front(size: int) -> int:
    """Return the words before a table of `size` words: the record's address, the table's bytes, two bounds per word."""
    return 2 + 2 * size


def first_word(position: int) -> int:
    """Return the words from the table back to a buffer's first address; its end address is one word further back."""
    return 3 + 2 * position


#: chunks per thread if all threads are equally fast: with fewer chunks, threads wait longer for the last one
CHUNKS_PER_THREAD: Final = 4
Own = TypeVar("Own")


def share(work: Callable[[int, int, Own], object], count: int, workspaces: Sequence[Own]) -> None:
    """Call `work(first, past, workspace)` for items 0 to `count` in chunks, on one thread per entry of `workspaces`.

    Each thread has its own workspace. The calling thread takes part and does not wait for helpers that have not begun,
    so an exhausted pool only costs speed. An exception from `work` is raised here, once no thread is at work any more.
    """
    chunks = min(count, CHUNKS_PER_THREAD * len(workspaces))
    claims = iter(range(chunks))  # next() on it is atomic under the interpreter's lock

    def claim(workspace: Own) -> None:
        for chunk in claims:
            work(chunk * count // chunks, (chunk + 1) * count // chunks, workspace)

    helpers = [helping_threads().submit(_without_warnings, claim, workspace) for workspace in workspaces[1:]]
    try:
        claim(workspaces[0])
    finally:
        raised = [helper.exception() for helper in helpers if not helper.cancel()]  # waits for each
    for error in raised:
        if error is not None:
            raise error


@cache
def helping_threads() -> ThreadPoolExecutor:
    """Start the pool of threads that help with shared work."""
    return ThreadPoolExecutor(max(1, os.cpu_count() or 1), "loops")


def _without_warnings(claim: Callable[[Own], object], workspace: Own) -> None:
    """Work without floating-point warnings, which NumPy sets per thread."""
    with np.errstate(all="ignore"):
        claim(workspace)


#: void kernel(int64 first, int64 past, const int64* table)
SIGNATURE: Final = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class LoadedKernel:
    """Loaded machine code of a kernel; `memory` keeps it loaded."""

    function: Callable[[int, int, Any], object]
    address: int
    memory: Any


def load_kernel(data: bytes) -> LoadedKernel:
    """Load an object file. Raises KernelUnavailable."""
    code = load_function(data)
    return LoadedKernel(SIGNATURE(code.address), code.address, code.memory)


@dataclass(eq=False, slots=True)
class NativeCall:
    """Kernel `function`, located at `address`, bound to tables for the items 0 to `items`. Calling it runs the kernel.

    Items may be divided and ordered in any way, with the same bits. `entries`, int64 [threads, size], has a table for
    each thread that may take part; tables differ only in thread-local addresses. `keepalive` holds objects that must
    outlive the call. Only one thread at a time may call it.
    """

    function: Callable[[int, int, Any], object]
    address: int
    items: int
    entries: HostArray
    keepalive: Any = None
    #: arrays that the tables point at, by position: all operands and results, if the call has to follow moving feeds
    arrays: dict[int, HostArray] = field(default_factory=dict)
    _tables: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._tables = [table.ctypes.data for table in self.entries]

    def point(self, position: int, array: HostArray) -> None:
        """Set the address at a position of all tables to that of an array, from the next call on."""
        self.entries[:, position] = array.ctypes.data
        self.arrays[position] = array
        if BOUNDS.checked:
            BOUNDS.state(self.entries, position, *byte_span(array))

    def place(self, position: int, addresses: int | HostArray, nbytes: int) -> None:
        """Set the address of `nbytes` bytes of workspace at a position: the same in all tables, or one per table."""
        self.entries[:, position] = addresses
        if BOUNDS.checked:
            BOUNDS.state(self.entries, position, 0, nbytes)

    def __call__(self) -> None:
        """Run the kernel with as many threads as there are tables."""
        if len(self._tables) == 1:
            self.function(0, self.items, self._tables[0])
        else:
            share(self.function, self.items, self._tables)

    def release(self, position: int) -> None:
        """Release the array at a position. The call must not be made again before `point` sets a new one."""
        self.arrays.pop(position, None)


@dataclass(eq=False, slots=True)
class NativeGuard:
    """Python call that is made only if earlier native calls set `word`, int64 [1], to a value other than 0."""

    word: HostArray
    call: KernelCall

    def __call__(self) -> None:
        """Make the call if the word is not 0."""
        if self.word[0]:
            function, arguments = self.call
            function(*arguments)


class TablePlace(NamedTuple):
    """Position in a call's tables that points at an array."""

    call: NativeCall
    position: int

    @property
    def array(self) -> HostArray:
        """The array that the tables point at now."""
        return self.call.arrays[self.position]


def places_of(array: HostArray, calls: Sequence[KernelCall]) -> list[TablePlace]:
    """List the table positions of native calls that point at this array object."""
    return [
        TablePlace(call, position)
        for call, _ in calls
        if isinstance(call, NativeCall)
        for position, pointed in call.arrays.items()
        if pointed is array
    ]


@dataclass(frozen=True, eq=False, slots=True)
class FollowedArray:
    """Array that native calls point at, followed through rebinding, or an array that never moves."""

    place: TablePlace | HostArray

    @property
    def now(self) -> HostArray:
        """The current array."""
        return self.place.array if isinstance(self.place, TablePlace) else self.place


def followed(array: HostArray, calls: Sequence[KernelCall]) -> FollowedArray:
    """Follow an array through all changes of the tables that point at it."""
    # Code that moves an array updates all tables that point at it, so any one of them tells where it is.
    places = places_of(array, calls)
    return FollowedArray(places[0] if places else array)


def make_calls(calls: Iterable[KernelCall]) -> None:
    """Make the calls in order."""
    for function, args in calls:
        function(*args)


def join_calls(calls: Sequence[KernelCall]) -> KernelCall:
    """Join calls into one call that makes all of them."""
    return calls[0] if len(calls) == 1 else (make_calls, (tuple(calls),))


#: function that binds operands and results to calls that compute the same results without this kernel
Otherwise: TypeAlias = Callable[[Sequence[HostArray], Sequence[HostArray]], Sequence[KernelCall]]


def fallback(
    otherwise: Otherwise, operands: Sequence[HostArray], results: Sequence[HostArray], calls: Sequence[KernelCall] = ()
) -> KernelCall:
    """Return the fallback call for a kernel that is missing, or that met arguments outside its range.

    Each run of the call has `otherwise` bind the arrays that `calls` point at by then, and makes the resulting calls.
    `calls` were bound to the same operands and results.
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
    """Append a guard that runs the fallback if `calls` set `word`, int64 [1], to a value other than 0."""
    return [*calls, (NativeGuard(word, fallback(otherwise, operands, results, calls)), ())]


def _compute(otherwise: Otherwise, read: Sequence[FollowedArray], written: Sequence[FollowedArray]) -> None:
    make_calls(otherwise([array.now for array in read], [array.now for array in written]))


# The runner's helper threads sleep in machine code, without the interpreter's lock, until a region has a long step.

# Memory layout shared with runner.c: steps, the watch that ends a run, the thread pool, and loops.

#: largest number of parts of a step; a ticket has 16 bits for the part's number
MOST_STEP_PARTS: Final = 4096
MOST_HELPERS: Final = 63
#: largest number of axes of the blocks that a copy moves
MOST_AXES: Final = 8
#: deadline of a run without a deadline
NEVER_COMES: Final = (1 << 63) - 1
#: part number in the ticket of a finished run
CLOSED: Final = 0xFFFF


class StepEntry(IntEnum):
    """Words of a step. A step without a function is a guard: TABLE is the address of a word that has to be 0."""

    FUNCTION = 0
    ITEMS = 1
    TABLE = 2
    #: bytes from one thread's table to the next thread's
    STRIDE = 3
    PARTS = 4
    HELPERS = 5
    NANOSECONDS = 6
    #: in the pool's copy of a step: the address of the run's watch
    WATCH = 7
    SIZE = 8


class WatchEntry(IntEnum):
    """Words that end a run early: a CLOCK_MONOTONIC deadline in ns, and the address of a stop byte, or 0."""

    MOMENT = 0
    STOP = 1
    SIZE = 2


class PoolEntry(IntEnum):
    """Words that threads share. Words that several threads write have a cache line of their own."""

    TICKET = 0
    DONE = 8
    OWNER_SLEEPS = 9
    #: whether remaining parts are skipped because the run has to end
    ENDED = 10
    OWNER = 16
    STEP = 24
    CLOSING = 32
    SYSCALL = 33
    CLOCK = 34
    ASLEEP = 40
    SIZE = 40 + 8 * MOST_HELPERS


class InitEntry(IntEnum):
    """Words of an address that is set when a loop starts: from an array of the loop's table by position, or 0 if −1."""

    PLACE = 0
    POSITION = 1
    OFFSET = 2
    #: bytes added for each step but one, if the loop begins at the end
    LAST = 3
    SIZE = 4


class MoveEntry(IntEnum):
    """Words of an update between two steps: the word at PLACE becomes (word + STRIDE) xor MASK."""

    PLACE = 0
    # STRIDE alone moves to the next entry of a scanned array; MASK alone swaps the two buffers of a carry.
    STRIDE = 1
    MASK = 2
    SIZE = 3


class CarryEntry(IntEnum):
    """Words of a carry: table positions of its operand and result, addresses of its two buffers, and its bytes."""

    FROM = 0
    TO = 1
    BUFFERS = 2
    BYTES = 4
    SIZE = 5


class StackEntry(IntEnum):
    """Words of a stacked result: its position, the bytes of an entry and of the whole result."""

    POSITION = 0
    ENTRY = 1
    BYTES = 2
    SIZE = 3


class LoopEntry(IntEnum):
    """Words of `struct loop` in `runner.c`. A list is an address and a count."""

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
    #: position of the array that decides whether the loop runs at all, or −1, and the value with which it runs
    WHEN_AT = 22
    WHEN = 23
    #: where the loop was interrupted: whether in the condition before the first iteration; the step in that list, or −1
    #: if the run has to end; the number of iterations, and the current one
    ASKS = 24
    AT = 25
    MOST = 26
    T = 27
    #: whether the next call resumes behind that step instead of starting from the beginning
    GOES_ON = 28
    #: address of the word with the number of iterations that the loop's only kernel runs at a time, or 0
    MANY = 29
    SIZE = 30


#: whether the runner runs here: its system calls and its pause instruction are those of one platform
IS_SUPPORTED: Final = sys.platform == "linux" and platform.machine() == "x86_64"
_LINE: Final = 64
_FUTEX, _WAKE_PRIVATE = 202, 129
_RUN: Final = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
)
_HELP: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)

_logger = logging.getLogger("gradserve.kernels")


class Runner:
    """Loaded code of the runner, and its pool of threads, which are started when a step first needs them.

    Threads may share it. If several have large steps at the same time, one of them gets the helpers and the others do
    without. A forked process has a pool of its own. Helpers never outlive the interpreter.
    """

    def __init__(self, code: bytes) -> None:
        """Load `code`, the object file of `runner_text`. Raises KernelUnavailable."""
        run, self._help_code = load_function(code, "run"), load_function(code, "help")
        repeat, copy = load_function(code, "repeat"), load_function(code, "copy")
        self._code = run.memory, repeat.memory, copy.memory
        self.run = _RUN(run.address)
        #: kernels that run a loop over steps, and copy dense blocks of memory
        self.repeat, self.repeat_address = SIGNATURE(repeat.address), repeat.address
        self.copy, self.copy_address = SIGNATURE(copy.address), copy.address
        self._library = ctypes.CDLL(None)
        # The layout counts on cache lines: allocate one more and begin at the first multiple of a line.
        memory = np.zeros(PoolEntry.SIZE + _LINE // 8, np.int64)
        start = -memory.ctypes.data % _LINE // 8
        self._pool: HostArray = memory[start : start + PoolEntry.SIZE]
        #: address of the memory that threads share
        self.pool: int = self._pool.ctypes.data
        self._reset()
        os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.close)

    def start_helpers(self, helpers: int) -> None:
        """Start threads until there are `helpers`, MOST_HELPERS at most, as far as the system allows."""
        if helpers <= self.helpers:
            return
        with self._lock:
            while self.helpers < min(helpers, MOST_HELPERS) and not self._pool[PoolEntry.CLOSING]:
                thread = Thread(target=self._help, args=(self.helpers,), name="runner", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system's limit of threads, or interpreter shutdown
                    return
                self._threads.append(thread)
                self.helpers += 1

    def close(self) -> None:
        """Stop the helpers after the parts that they have begun. Regions then run without them."""
        with self._lock:
            self._pool[PoolEntry.CLOSING] = 1
            for number in range(self.helpers):
                # A helper sleeps on a futex as long as its word is 1: clear the word, then wake the thread.
                sleep_word = PoolEntry.ASLEEP + number * _LINE // 8
                self._pool[sleep_word] = 0
                self._library.syscall(*map(ctypes.c_long, (_FUTEX, self.pool + 8 * sleep_word, _WAKE_PRIVATE, 1)))
            for thread in self._threads:
                thread.join()

    def _reset(self) -> None:
        """Set up a pool without threads, in a new process or a forked child, whatever state the parent's pool is in."""
        self._lock = Lock()
        self._threads: list[Thread] = []
        #: number of helpers
        self.helpers = 0
        self._pool[:] = 0
        self._pool[PoolEntry.TICKET] = CLOSED
        # The runner's code is not linked with a C library, so it calls these functions through pointers.
        for entry, name in (PoolEntry.SYSCALL, "syscall"), (PoolEntry.CLOCK, "clock_gettime"):
            self._pool[entry] = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value

    def _help(self, number: int) -> None:
        _HELP(self._help_code.address)(self.pool, number)


@cache
def runner_text() -> str:
    """Read the LLVM IR that clang made of `runner.c`, for Linux on x86-64."""
    return Path(__file__).with_name("generated").joinpath("runner.ll").read_text("ascii")


class _Shared:
    """The runner of this process, made on first use."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.tried = False
        self.runner: Runner | None = None


_shared = _Shared()


def shared_runner(store: KernelStore) -> Runner | None:
    """Return the runner of this process, using cached code from `store`; None if this machine cannot run it."""
    with _shared.lock:
        if not _shared.tried and IS_SUPPORTED:
            try:
                _shared.runner = _load_cached(store)
                if _shared.runner is None:
                    code = machine_code(runner_text())
                    _shared.runner = Runner(code)
                    store.put(_key(), code)
            except KernelUnavailable as error:
                _logger.warning("kernels are called one by one from Python, not from machine code: %s", error)
        # It is tried once only: a failure would not go away, and each attempt costs a compilation.
        _shared.tried = True
        return _shared.runner


def _load_cached(store: KernelStore) -> Runner | None:
    """Load the runner from the store; None if it is absent or cannot be loaded."""
    code = store.get(_key())
    try:
        return None if code is None else Runner(code)
    except KernelUnavailable:
        return None


def _key() -> str:
    return kernel_key(runner_text(), **target())
