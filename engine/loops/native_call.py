"""A kernel of machine code bound to its memory: what a plan calls, and what a runner makes of many."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from engine.graph.tensor_type import HostArray
from engine.loops.helping_threads import run_in_pieces

#: void kernel(int64 first, int64 past, const int64* table)
SIGNATURE: Final = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


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
    #: what the table points at, by the position in it
    arrays: dict[int, HostArray] = field(default_factory=dict)
    _tables: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._tables = [table.ctypes.data for table in self.entries]

    def point(self, position: int, array: HostArray) -> None:
        """Put the address of an array in all tables, from the next call on."""
        self.entries[:, position] = array.ctypes.data
        self.arrays[position] = array

    def __call__(self) -> None:
        """Run it, with as many threads as there are tables."""
        if len(self._tables) == 1:
            self.function(0, self.items, self._tables[0])
        else:
            run_in_pieces(self.function, self._tables, self.items)
