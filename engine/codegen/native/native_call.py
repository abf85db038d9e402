"""Kernels of machine code bound to their memory: what a plan calls, alone, in a row, or shared among threads.

A fallback computes the same by other calls.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from engine.codegen.native.bounds import WATCHED, reach
from engine.codegen.native.object_file import load_function
from engine.ir.op import KernelCall
from engine.ir.tensor_type import HostArray

# Work shared among threads: chunks of it, claimed by whichever is free.

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
    otherwise: Otherwise,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    calls: Sequence[KernelCall] = (),
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
