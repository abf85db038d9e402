"""Memory, streams and graphs of a card that is none: pools with a limit, and lists of what to do.

What is copied to pinned memory of the host is there once somebody has waited, and not before.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

#: what CuPy's pool rounds up to
ALIGNED = 512
#: kinds of copies, as the runtime has them
TO_DEVICE, TO_HOST = 1, 2
Work = Callable[[], object]


class OutOfMemoryError(MemoryError):
    """The pool has reached its limit."""


class CUDARuntimeError(RuntimeError):
    """The runtime's."""


# ------------------------------------------------------------ streams and graphs


class Graph:
    """What was recorded."""

    def __init__(self, card: Card, works: list[Work]) -> None:
        self._card, self.works = card, works

    def launch(self) -> None:
        """Do it all, in its order."""
        self._card.graph_launches += 1
        for work in self.works:
            work()


class Event:
    """A place in what a stream does, and when that was reached, in milliseconds."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.is_timed = not disable_timing
        self.at: float | None = None

    def reach(self) -> None:
        """It is reached now."""
        self.at = CARD.milliseconds

    def synchronize(self) -> None:
        """Wait: there is nothing to wait for."""


def elapsed_time(start: Event, end: Event) -> float:
    """Between two events, in milliseconds."""
    assert start.is_timed
    assert end.is_timed
    assert start.at is not None
    assert end.at is not None
    return end.at - start.at


class Stream:
    """Does what it is given at once, unless it records."""

    def __init__(self, card: Card, ptr: int) -> None:
        self._card, self.ptr = card, ptr
        self.records: list[Work] | None = None
        self._broken = False
        #: how many have told the time
        self.events = 0

    def begin_capture(self) -> None:
        """Record from now on."""
        self.records, self._broken = [], False

    def end_capture(self) -> Graph:
        """What was recorded. Raises CUDARuntimeError, where something has made it useless."""
        works, self.records = self.records, None
        assert works is not None
        if self._broken:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated: operation failed due to a previous error")
        return Graph(self._card, works)

    def synchronize(self) -> None:
        """Wait for what comes back to the host: all else is done at once."""
        self.wait()

    def record(self, event: Event | None = None) -> Event:
        """Have an event remember when it was reached."""
        event = event or Event()
        self.events += event.is_timed
        self.launch(event.reach)
        return event

    def wait(self) -> None:
        """As all that the host is told must: not while this records."""
        if self.records is not None:
            self._broken = True
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted while capturing")
        self._card.arrive()

    def copy(self, to: int, of: int, nbytes: int, kind: int) -> None:
        """As `cudaMemcpyAsync`: of memory that is not pinned it makes no node of a graph."""
        host = of if kind == TO_DEVICE else to
        if not self._card.is_pinned(host, nbytes):
            self.wait()
            self.launch(lambda: ctypes.memmove(to, of, nbytes))
        elif kind == TO_DEVICE:
            self.launch(lambda: ctypes.memmove(to, of, nbytes))
        else:
            self.launch(lambda: self._card.arriving.append((to, ctypes.string_at(of, nbytes))))

    def refuse(self, what: str) -> None:
        """As CuPy does before it asks CUDA, which leaves the recording as it is."""
        if self.records is not None:
            raise NotImplementedError(f"{what} is not supported while a stream is being captured")

    def launch(self, work: Work) -> None:
        """Do it, or keep it."""
        if self.records is not None:
            self.records.append(work)
        else:
            self._card.direct_launches += 1
            work()

    def __enter__(self) -> Stream:
        self._card.streams.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._card.streams.pop()


# ------------------------------------------------------------ memory


class Memory:
    """A piece of a pool's memory, which has it back when nobody refers to this any more."""

    def __init__(self, raw: np.ndarray[Any, Any], size: int) -> None:
        self.raw, self.size, self.ptr = raw, size, raw.ctypes.data


class UnownedMemory(Memory):
    """Memory that somebody else keeps."""

    def __init__(self, ptr: int, size: int, owner: object) -> None:
        raw = np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(ptr))
        super().__init__(raw, size)
        self.owner = owner


class MemoryPointer:
    """A place in a piece of memory."""

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem, self.offset = mem, offset

    @property
    def ptr(self) -> int:
        """The address; 0 of nothing."""
        return self.mem.ptr + self.offset if self.mem.size else 0

    def __add__(self, more: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + more)

    def memset_async(self, value: int, size: int) -> None:
        """Set bytes."""
        raw = self.mem.raw[self.offset : self.offset + size]
        CARD.stream.launch(lambda: raw.fill(value))


class MemoryPool:
    """Hands out memory, in which anything lies, and has it back; what it had it may give to the next one.

    Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # what is collected meanwhile comes back in the middle of it
        self._limit = 0
        self._free: dict[int, list[np.ndarray[Any, Any]]] = {}
        self._total = 0

    def set_limit(self, size: int) -> None:
        """In bytes; 0: none."""
        self._limit = size

    def get_limit(self) -> int:
        """As it was set."""
        return self._limit

    def total_bytes(self) -> int:
        """All that it has, in use or not."""
        return self._total

    def free_all_blocks(self, stream: Stream | None = None) -> None:
        """Let go of what is not in use: of any stream, since this does not tell them apart."""
        with self._lock:
            self._total -= sum(size * len(raws) for size, raws in self._free.items())
            self._free.clear()

    def malloc(self, size: int) -> MemoryPointer:
        """Raises OutOfMemoryError."""
        rounded = -(-size // ALIGNED) * ALIGNED
        with self._lock:
            if not self._free.get(rounded):
                self._grow(rounded)
            raw = self._free[rounded].pop()
        raw.fill(0x77)
        mem = Memory(raw, size)
        weakref.finalize(mem, self._have_back, rounded, raw).atexit = False
        return MemoryPointer(mem, 0)

    def _have_back(self, rounded: int, raw: np.ndarray[Any, Any]) -> None:
        with self._lock:
            self._free.setdefault(rounded, []).append(raw)

    def _grow(self, rounded: int) -> None:
        if self._limit and self._total + rounded > self._limit:
            self.free_all_blocks()
        if self._limit and self._total + rounded > self._limit:
            raise OutOfMemoryError(f"out of memory allocating {rounded} bytes (allocated so far: {self._total})")
        raw = np.empty(rounded + ALIGNED, np.uint8)
        start = -raw.ctypes.data % ALIGNED
        self._total += rounded
        self._free.setdefault(rounded, []).append(raw[start : start + rounded])


class Card:
    """All that there is one of: its memory pool, its streams, and how often something was launched."""

    def __init__(self) -> None:
        #: a clock, which what is done on a stream may move on
        self.milliseconds = 0.0
        self.pool = MemoryPool()
        self._local = threading.local()
        self.null = Stream(self, 0)
        self.by_pointer = {0: self.null}
        self.graph_launches = self.direct_launches = self.waits = 0
        #: where pinned memory of the host begins, and its bytes; of these, what was pinned where it lay
        self.pinned: dict[int, int] = {}
        self.registered: list[int] = []
        #: how often memory was registered, and what the system has against pinning any
        self.registrations, self.forbids = 0, ""
        #: on their way to the host: addresses, and what comes there
        self.arriving: list[tuple[int, bytes]] = []

    @property
    def streams(self) -> list[Stream]:
        """Those of this thread, the current one last."""
        if not hasattr(self._local, "streams"):
            self._local.streams, self._local.allocators = [self.null], []
        found: list[Stream] = self._local.streams
        return found

    @property
    def stream(self) -> Stream:
        """The current one."""
        return self.streams[-1]

    def allocated(self, size: int) -> MemoryPointer:
        """Memory of the current allocator."""
        assert self.streams
        allocators = self._local.allocators
        found: MemoryPointer = (allocators[-1] if allocators else self.pool.malloc)(size)
        return found

    def arrive(self) -> None:
        """Somebody waits, until all is there."""
        self.waits += 1
        while self.arriving:
            to, found = self.arriving.pop(0)
            ctypes.memmove(to, found, len(found))

    def pinned_memory(self, size: int) -> Any:
        """As `PinnedMemory`: something with `ptr`, whose bytes can be read and written."""
        if self.forbids:
            raise CUDARuntimeError(self.forbids)
        kind = type("PinnedMemory", (ctypes.c_ubyte * size,), {"ptr": property(ctypes.addressof)})
        made = kind()
        ctypes.memset(made, 0x77, size)
        self.pinned[made.ptr] = size
        weakref.finalize(made, self.pinned.pop, made.ptr).atexit = False
        return made

    def is_pinned(self, address: int, nbytes: int) -> bool:
        """Whether a card may read all of this by itself."""
        return any(start <= address and address + nbytes <= start + size for start, size in self.pinned.items())

    def register(self, address: int, size: int, flags: int) -> None:
        """As `cudaHostRegister`, which refuses what overlaps with what is pinned."""
        assert flags == 1
        if self.forbids:
            raise CUDARuntimeError(self.forbids)
        if any(address < start + other and start < address + size for start, other in self.pinned.items()):
            raise CUDARuntimeError("cudaErrorHostMemoryAlreadyRegistered: part or all of the range is already mapped")
        ctypes.string_at(address, size)  # it is there
        self.pinned[address] = size
        self.registered.append(address)
        self.registrations += 1

    def unregister(self, address: int) -> None:
        """As `cudaHostUnregister`."""
        if address not in self.registered:
            raise CUDARuntimeError(
                "cudaErrorHostMemoryNotRegistered: pointer does not correspond to a registered memory"
            )
        ctypes.string_at(address, self.pinned.pop(address))  # it is still there
        self.registered.remove(address)

    @contextlib.contextmanager
    def using_allocator(self, allocator: Callable[[int], MemoryPointer]) -> Iterator[None]:
        """Memory comes of this one meanwhile."""
        assert self.streams
        self._local.allocators.append(allocator)
        try:
            yield
        finally:
            self._local.allocators.pop()

    def new_stream(self, *, non_blocking: bool = False) -> Stream:
        """A stream."""
        assert non_blocking
        made = Stream(self, len(self.by_pointer))
        self.by_pointer[made.ptr] = made
        return made


CARD = Card()
