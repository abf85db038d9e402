"""Kernels of machine code bound to their memory: what a plan calls, alone, in a row, or shared among threads.

A fallback computes the same by other calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from engine.graph.op import KernelCall
from engine.graph.tensor_type import HostArray
from engine.native.bounds import WATCHED, reach
from engine.native.object_file import load_function
from engine.native.sharing import share

#: void kernel(int64 first, int64 past, const int64* table)
SIGNATURE: Final = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class LoadedKernel:
    """Machine code of a kernel, loaded; `memory` holds it."""

    function: Callable[[int, int, Any], object]
    address: int
    memory: Any


def load_kernel(data: bytes) -> LoadedKernel:
    """What an object file has. Raises KernelUnavailable."""
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
        """Put an address in all tables, or one in each, from which on so many bytes are the kernel's."""
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
    """A call to make, in Python, only where native calls before it left a `word`, int64 [1], other than 0."""

    word: HostArray
    call: KernelCall

    def __call__(self) -> None:
        """Make it, where it is to be made."""
        if self.word[0]:
            function, arguments = self.call
            function(*arguments)


class TablePlace(NamedTuple):
    """Place where a table points at an array."""

    call: NativeCall
    position: int

    @property
    def array(self) -> HostArray:
        """What lies there now."""
        return self.call.arrays[self.position]


def places_of(array: HostArray, calls: Sequence[KernelCall]) -> list[TablePlace]:
    """Where the tables of native calls point at this very object."""
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
    """An array of calls, through all moves that their tables are told of."""
    places = places_of(array, calls)
    return FollowedArray(places[0] if places else array)
