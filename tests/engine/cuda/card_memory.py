"""Memory, streams and graphs of the stand-in card: memory pools with a limit, and lists of work.

Copies to pinned host memory arrive only when somebody waits.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

#: bytes to whose multiples CuPy's pool rounds up
ALIGNED = 512
#: kinds of copies, as in the CUDA runtime
TO_DEVICE, TO_HOST = 1, 2
Work = Callable[[], object]


class OutOfMemoryError(MemoryError):
    """The pool has reached its limit."""


class CUDARuntimeError(RuntimeError):
    """The error of the CUDA runtime."""


# ------------------------------------------------------------ streams and graphs


class Graph:
    """A captured graph."""

    def __init__(self, card: Card, works: list[Work]) -> None:
        self._card, self.works = card, works

    def launch(self) -> None:
        """Do all of its work, in order."""
        self._card.graph_launches += 1
        for work in self.works:
            work()


class Event:
    """A point in the work of a stream, and the time in milliseconds when it was reached."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.is_timed = not disable_timing
        self.at: float | None = None

    def reach(self) -> None:
        """Mark the event as reached now."""
        self.at = CARD.milliseconds

    def synchronize(self) -> None:
        """Wait for the event: there is nothing to wait for."""


def elapsed_time(start: Event, end: Event) -> float:
    """The time between two events, in milliseconds."""
    assert start.is_timed
    assert end.is_timed
    assert start.at is not None
    assert end.at is not None
    return end.at - start.at


class Stream:
    """A stream that does its work at once, unless it captures."""

    def __init__(self, card: Card, ptr: int) -> None:
        self._card, self.ptr = card, ptr
        self.records: list[Work] | None = None
        self._broken = False
        #: how many timed events were recorded
        self.events = 0

    def begin_capture(self) -> None:
        """Begin to capture."""
        self.records, self._broken = [], False

    def end_capture(self) -> Graph:
        """Return the captured graph. Raises CUDARuntimeError if the capture was invalidated."""
        works, self.records = self.records, None
        assert works is not None
        if self._broken:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated: operation failed due to a previous error")
        return Graph(self._card, works)

    def synchronize(self) -> None:
        """Wait for copies to the host: all other work is done at once."""
        self.wait()

    def record(self, event: Event | None = None) -> Event:
        """Record an event."""
        event = event or Event()
        self.events += event.is_timed
        self.launch(event.reach)
        return event

    def wait(self) -> None:
        """Wait for pending copies, which is refused during capture."""
        if self.records is not None:
            self._broken = True
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted while capturing")
        self._card.arrive()

    def copy(self, to: int, source: int, nbytes: int, kind: int) -> None:
        """Copy like `cudaMemcpyAsync`: unpinned memory cannot be captured."""
        host = source if kind == TO_DEVICE else to
        if not self._card.is_pinned(host, nbytes):
            self.wait()
            self.launch(lambda: ctypes.memmove(to, source, nbytes))
        elif kind == TO_DEVICE:
            self.launch(lambda: ctypes.memmove(to, source, nbytes))
        else:
            self.launch(lambda: self._card.arriving.append((to, ctypes.string_at(source, nbytes))))

    def refuse(self, what: str) -> None:
        """Refuse during capture, as CuPy does before it calls CUDA; the capture stays valid."""
        if self.records is not None:
            raise NotImplementedError(f"{what} is not supported while a stream is being captured")

    def launch(self, work: Work) -> None:
        """Do the work, or capture it."""
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
    """A piece of a pool's memory, which returns to the pool when the last reference is gone."""

    def __init__(self, raw: np.ndarray[Any, Any], size: int) -> None:
        self.raw, self.size, self.ptr = raw, size, raw.ctypes.data


class UnownedMemory(Memory):
    """Memory with another owner."""

    def __init__(self, ptr: int, size: int, owner: object) -> None:
        raw = np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(ptr))
        super().__init__(raw, size)
        self.owner = owner


class MemoryPointer:
    """A pointer into a piece of memory."""

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem, self.offset = mem, offset

    @property
    def ptr(self) -> int:
        """The address; 0 for an empty piece."""
        return self.mem.ptr + self.offset if self.mem.size else 0

    def __add__(self, more: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + more)

    def memset_async(self, value: int, size: int) -> None:
        """Set bytes."""
        raw = self.mem.raw[self.offset : self.offset + size]
        CARD.stream.launch(lambda: raw.fill(value))


class MemoryPool:
    """Hands out uninitialized memory, and reuses what was returned.

    Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant: garbage collection may return memory at any point
        self._limit = 0
        self._free: dict[int, list[np.ndarray[Any, Any]]] = {}
        self._total = 0

    def set_limit(self, size: int) -> None:
        """Set the limit in bytes; 0 means none."""
        self._limit = size

    def get_limit(self) -> int:
        """The limit that was set."""
        return self._limit

    def total_bytes(self) -> int:
        """All memory of the pool, in use or not."""
        return self._total

    def free_all_blocks(self, stream: Stream | None = None) -> None:
        """Free all unused memory, whatever its stream."""
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
        weakref.finalize(mem, self._take_back, rounded, raw).atexit = False
        return MemoryPointer(mem, 0)

    def _take_back(self, rounded: int, raw: np.ndarray[Any, Any]) -> None:
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
    """The state of the card: its memory pool, its streams, and counters of launches."""

    def __init__(self) -> None:
        #: a clock, which work on a stream may advance
        self.milliseconds = 0.0
        self.pool = MemoryPool()
        self._local = threading.local()
        self.null = Stream(self, 0)
        self.by_pointer = {0: self.null}
        self.graph_launches = self.direct_launches = self.waits = 0
        #: pinned host memory: size by address; and the addresses of memory that was registered
        self.pinned: dict[int, int] = {}
        self.registered: list[int] = []
        #: how often memory was registered, and the error of the system that forbids pinning
        self.registrations, self.forbids = 0, ""
        #: pending copies to the host: addresses and bytes
        self.arriving: list[tuple[int, bytes]] = []

    @property
    def streams(self) -> list[Stream]:
        """The streams of this thread, the current one last."""
        if not hasattr(self._local, "streams"):
            self._local.streams, self._local.allocators = [self.null], []
        thread_streams: list[Stream] = self._local.streams
        return thread_streams

    @property
    def stream(self) -> Stream:
        """The current stream."""
        return self.streams[-1]

    def allocated(self, size: int) -> MemoryPointer:
        """Allocate with the current allocator."""
        assert self.streams
        allocators = self._local.allocators
        pointer: MemoryPointer = (allocators[-1] if allocators else self.pool.malloc)(size)
        return pointer

    def arrive(self) -> None:
        """Finish all pending copies, because somebody waits."""
        self.waits += 1
        while self.arriving:
            to, data = self.arriving.pop(0)
            ctypes.memmove(to, data, len(data))

    def pinned_memory(self, size: int) -> Any:
        """An object like `PinnedMemory`, with `ptr` and accessible bytes."""
        if self.forbids:
            raise CUDARuntimeError(self.forbids)
        kind = type("PinnedMemory", (ctypes.c_ubyte * size,), {"ptr": property(ctypes.addressof)})
        memory = kind()
        ctypes.memset(memory, 0x77, size)
        self.pinned[memory.ptr] = size
        weakref.finalize(memory, self.pinned.pop, memory.ptr).atexit = False
        return memory

    def is_pinned(self, address: int, nbytes: int) -> bool:
        """Whether the card may access all of this memory."""
        return any(start <= address and address + nbytes <= start + size for start, size in self.pinned.items())

    def register(self, address: int, size: int, flags: int) -> None:
        """Register memory like `cudaHostRegister`, which refuses overlaps with pinned memory."""
        assert flags == 1
        if self.forbids:
            raise CUDARuntimeError(self.forbids)
        if any(address < start + other and start < address + size for start, other in self.pinned.items()):
            raise CUDARuntimeError("cudaErrorHostMemoryAlreadyRegistered: part or all of the range is already mapped")
        ctypes.string_at(address, size)  # it is mapped
        self.pinned[address] = size
        self.registered.append(address)
        self.registrations += 1

    def unregister(self, address: int) -> None:
        """Unregister memory like `cudaHostUnregister`."""
        if address not in self.registered:
            raise CUDARuntimeError(
                "cudaErrorHostMemoryNotRegistered: pointer does not correspond to a registered memory"
            )
        ctypes.string_at(address, self.pinned.pop(address))  # it is still mapped
        self.registered.remove(address)

    @contextlib.contextmanager
    def using_allocator(self, allocator: Callable[[int], MemoryPointer]) -> Iterator[None]:
        """Use another allocator within the block."""
        assert self.streams
        self._local.allocators.append(allocator)
        try:
            yield
        finally:
            self._local.allocators.pop()

    def new_stream(self, *, non_blocking: bool = False) -> Stream:
        """Create a stream."""
        assert non_blocking
        stream = Stream(self, len(self.by_pointer))
        self.by_pointer[stream.ptr] = stream
        return stream


CARD = Card()
