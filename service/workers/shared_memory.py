"""Memory that the front and a worker process share: buffers of bodies, and a control page.

Memory is anonymous and passed by descriptor: /dev/shm may be as small as 64 MiB in a container. Touching new pages
costs several times what copying into used ones does, so buffers of a usual size are kept; they are cleared between
callers. Each side owns the buffers that it writes; the other maps a buffer when its number first comes.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from engine import HostArray
from engine.runtime.crash_record import CRASH_RECORD_BYTES
from engine.runtime.host_mapping import HostMapping
from service.core.allocation import VisibleBuffer

#: tasks that a worker may have at a time: the one that it executes, and those that wait in its socket
SLOTS: Final = 64
_STOPS: Final = 64  # where the bytes begin by which tasks are stopped: in a cache line of their own
_CRASH_RECORD: Final = 1024  # where the worker says what it computes
_BYTES: Final = 4096
#: buffers of more bytes are not kept: they would hold what is rarely used
LARGEST: Final = 16 << 20
#: seconds after which memory that nobody has used is given back to the system
UNUSED: Final = 5.0
_SMALLEST: Final = 128 << 10
_HEAD: Final = struct.Struct("<QQ")
#: buffers that are shown by one message: their descriptors go together
_AT_A_TIME: Final = 64


class Vitals(NamedTuple):
    """Vital signs of a worker: kernels that it has compiled or loaded, and bytes that it holds on its GPU."""

    kernels: int
    device_bytes: int


class ControlPage:
    """One worker's shared page: which task it executes, and which are to stop.

    A kill may only hit the worker that executes the task it is meant for, and a task that is stopped must find out
    while it computes: neither can wait for a message to be read. What a worker computed when it died is read once it
    says nothing any more. So all of this is words in shared memory. A task is known by its slot, which it has from
    being sent until it is replied to.
    """

    __slots__ = ("_executing", "_since", "_vitals", "crash_record", "fd", "stops")

    def __init__(self, fd: int) -> None:
        """The page behind a descriptor; `create` makes a new one."""
        self.fd = fd
        self._lay(memoryview(mmap.mmap(fd, _BYTES)))

    @classmethod
    def create(cls) -> ControlPage:
        """Make a page of zeros, whose descriptor a worker inherits."""
        return cls(sealed_memory("gradserve-control", _BYTES))

    @property
    def executing(self) -> int | None:
        """The slot of the task that is being executed; None while the worker executes nothing."""
        bits = self._executing[0]
        return bits.bit_length() - 1 if bits else None

    @property
    def since(self) -> float:
        """Time at which that began, on the monotonic clock."""
        return self._since[0]

    @property
    def vitals(self) -> Vitals:
        """Vital signs that the worker wrote last."""
        return Vitals(*self._vitals)

    def report(self, vitals: Vitals) -> None:
        """Write vital signs, as the worker."""
        self._vitals[0], self._vitals[1] = vitals

    def begin(self, slot: int, now: float) -> None:
        """Note that the worker takes up a task."""
        self._since[0] = now
        self._executing[0] = 1 << slot

    def end(self) -> None:
        """Note that the worker executes nothing."""
        self._executing[0] = 0

    def close(self) -> None:
        """Let go of the descriptor; the memory stays."""
        os.close(self.fd)

    def forget(self) -> None:
        """Let go of the memory: its worker is gone, and executes nothing."""
        self._lay(memoryview(bytearray(_BYTES)))

    def _lay(self, memory: memoryview) -> None:
        #: a bit for each slot: whatever a worker gone wrong writes here, it is one of the slots
        self._executing = memory[:8].cast("Q")
        self._since = memory[8:16].cast("d")
        self._vitals = memory[16:32].cast("Q")
        #: what it computes at this moment
        self.crash_record = memory[_CRASH_RECORD : _CRASH_RECORD + CRASH_RECORD_BYTES]
        #: one byte for each slot: not 0 once its task is to stop
        self.stops = [memory[_STOPS + slot : _STOPS + slot + 1] for slot in range(SLOTS)]


def sealed_memory(name: str, nbytes: int) -> int:
    """Make anonymous memory of zeros that can neither shrink nor grow; returns its descriptor.

    Could it shrink, a worker gone wrong would take the front down with SIGBUS.
    """
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, nbytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


class SharedBuffer:
    """Shared memory with a number: `used` bytes from the start have been written since it was last cleared."""

    __slots__ = ("fd", "memory", "number", "size", "used")

    def __init__(self, number: int, size: int, fd: int) -> None:
        self.number = number
        self.size = size
        self.fd = fd
        self.used = 0
        self.memory = mmap.mmap(fd, size)

    @property
    def pooled(self) -> bool:
        """Whether it is kept after use."""
        return self.size <= LARGEST

    def clear(self) -> None:
        """Write zeros over a caller's bytes."""
        if self.used:
            np.frombuffer(self.memory, np.uint8, self.used).fill(0)
            self.used = 0

    def drop(self) -> None:
        """Give the memory back to the system. Takes a while where it is large."""
        os.close(self.fd)
        with suppress(BufferError):  # somebody still reads it: it goes with the last view
            self.memory.close()


class SharedBuffers:
    """The buffers that this process writes: `keep` bytes of them at most wait for their next use."""

    def __init__(self, keep: int, dropped: Callable[[SharedBuffer], None]) -> None:
        """`dropped` is told of a buffer that nobody gets again."""
        self._keep = keep
        self._dropped = dropped
        self._idle: dict[int, list[SharedBuffer]] = {}
        self._idle_bytes = 0
        self._count = 0
        self._used = 0.0

    def acquire(self, nbytes: int) -> SharedBuffer:
        """Return a clear buffer of at least so many bytes."""
        size = size_of(nbytes)
        self._used = time.monotonic()
        if idle := self._idle.get(size):
            self._idle_bytes -= size
            return idle.pop()
        self._count += 1
        return SharedBuffer(self._count, size, sealed_memory("gradserve-buffer", size))

    def put(self, buffer: SharedBuffer) -> None:
        """Keep a cleared buffer; or drop it, where it is one too many."""
        if not buffer.pooled or self._idle_bytes + buffer.size > self._keep:
            self._dropped(buffer)
            return
        self._used = time.monotonic()
        self._idle_bytes += buffer.size
        self._idle.setdefault(buffer.size, []).append(buffer)

    @property
    def waiting(self) -> bool:
        """Whether any waits for its next use."""
        return self._idle_bytes > 0

    def trim(self) -> None:
        """Drop those that wait, once none has been used for a while."""
        if self._idle_bytes and time.monotonic() - self._used > UNUSED:
            for buffer in self._let_go():
                self._dropped(buffer)

    def close(self) -> None:
        """Drop those that wait."""
        for buffer in self._let_go():
            buffer.drop()

    def _let_go(self) -> Iterator[SharedBuffer]:
        """Take out all that wait."""
        idle, self._idle, self._idle_bytes = self._idle, {}, 0
        return chain.from_iterable(idle.values())


def size_of(nbytes: int) -> int:
    """Round the bytes of a body up to those of its buffer: a power of two, so that others fit; whole pages if large."""
    if nbytes > LARGEST:
        return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    return max(_SMALLEST, 1 << (nbytes - 1).bit_length())


class DescriptorChannel:
    """The second socket between two processes: by it a buffer's descriptor goes before the frame that names it."""

    def __init__(self, side: socket.socket) -> None:
        self._side = side
        self._sent: set[int] = set()
        self._mapped: dict[int, HostMapping] = {}

    def show(self, buffer: VisibleBuffer) -> None:
        """Let the other side see a buffer of ours, before it is named. Raises OSError when the other side is gone."""
        if buffer.number not in self._sent:
            self.show_all([buffer])

    def show_all(self, buffers: Sequence[VisibleBuffer]) -> None:
        """Let the other side see those of these buffers that it has not seen."""
        unseen = list({buffer.number: buffer for buffer in buffers if buffer.number not in self._sent}.values())
        for start in range(0, len(unseen), _AT_A_TIME):
            few = unseen[start : start + _AT_A_TIME]
            heads = [_HEAD.pack(buffer.number, buffer.size) for buffer in few]
            socket.send_fds(self._side, heads, [buffer.fd for buffer in few])
            self._sent.update(buffer.number for buffer in few)

    def hide(self, number: int) -> bool:
        """Forget our buffer of this number; returns whether the other side has it and must be told."""
        known = number in self._sent
        self._sent.discard(number)
        return known

    def mapped(self, number: int) -> HostMapping:
        """Map the other side's buffer of this number, which a device may read by itself if it is large.

        Raises OSError when that does not come.
        """
        while number not in self._mapped:
            heads, fds, _, _ = socket.recv_fds(self._side, _AT_A_TIME * _HEAD.size, _AT_A_TIME)
            if not fds:
                raise ConnectionResetError
            for (found, size), fd in zip(_HEAD.iter_unpack(heads), fds, strict=True):
                self._mapped[found] = HostMapping(fd, size)
                os.close(fd)
        return self._mapped[number]

    def body(self, number: int, nbytes: int) -> HostArray:
        """View what the other side has written into its buffer, read-only. Whoever reads it refers to this array."""
        array = np.frombuffer(self.mapped(number), np.uint8, nbytes)
        array.flags.writeable = False
        return array

    def forget(self, number: int) -> HostMapping | None:
        """Forget the other side's buffer; returns its memory, which goes back to the system with the last reference."""
        return self._mapped.pop(number, None)

    def close(self) -> None:
        """Close the socket. What is mapped goes with its last reader."""
        self._side.close()
        self._mapped.clear()
