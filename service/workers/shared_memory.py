"""Shared memory of the front and a worker process: buffers for bodies, and a control page.

The memory is anonymous and its descriptors are passed by socket: /dev/shm may be as small as 64 MiB in a container.
Touching new pages costs several times what copying into used ones does, so buffers of the usual sizes are reused;
they are cleared between callers. Each side owns the buffers that it writes. The other side maps a buffer when its
number first arrives.
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

#: tasks that a worker may have: the one that it executes, and those that wait in its socket
SLOTS: Final = 64
_STOPS: Final = 64  # offset of the stop bytes, which have a cache line of their own
_CRASH_RECORD: Final = 1024  # offset of the record of what the worker computes
_BYTES: Final = 4096
#: size above which a buffer is not reused: it would hold memory that is rarely needed
LARGEST: Final = 16 << 20
#: seconds after which unused memory is given back to the system
UNUSED: Final = 5.0
_SMALLEST: Final = 128 << 10
_HEAD: Final = struct.Struct("<QQ")
#: buffers whose descriptors are sent in one message
_BATCH: Final = 64


class Vitals(NamedTuple):
    """Vital signs of a worker: kernels that it has compiled or loaded, and bytes that it holds on its GPU."""

    kernels: int
    device_bytes: int


class ControlPage:
    """Page that one worker shares with the front: which task it executes, and which tasks are to stop.

    A kill must hit only the worker that executes the task it is meant for, and a task that is stopped must notice while
    it computes. Neither can wait until a message is read, and a worker that died cannot answer. So this state is words
    in shared memory. A task is identified by its slot, which it holds from being sent until its reply.
    """

    __slots__ = ("_executing", "_since", "_vitals", "crash_record", "fd", "stops")

    def __init__(self, fd: int) -> None:
        """Map the page behind a descriptor; `create` makes a new one."""
        self.fd = fd
        self._lay(memoryview(mmap.mmap(fd, _BYTES)))

    @classmethod
    def create(cls) -> ControlPage:
        """Create a page of zeros, whose descriptor a worker inherits."""
        return cls(sealed_memory("gradserve-control", _BYTES))

    @property
    def executing(self) -> int | None:
        """Slot of the task that is being executed, or None."""
        bits = self._executing[0]
        return bits.bit_length() - 1 if bits else None

    @property
    def since(self) -> float:
        """Time at which the execution began, on the monotonic clock."""
        return self._since[0]

    @property
    def vitals(self) -> Vitals:
        """Vital signs that the worker wrote last."""
        return Vitals(*self._vitals)

    def report(self, vitals: Vitals) -> None:
        """Write vital signs, as the worker."""
        self._vitals[0], self._vitals[1] = vitals

    def begin(self, slot: int, now: float) -> None:
        """Note that the worker begins a task."""
        # The time comes first: the front must not see the new slot with the time of the task before.
        self._since[0] = now
        self._executing[0] = 1 << slot

    def end(self) -> None:
        """Note that the worker executes nothing."""
        self._executing[0] = 0

    def close(self) -> None:
        """Close the descriptor; the memory stays mapped."""
        os.close(self.fd)

    def forget(self) -> None:
        """Unmap the memory of a worker that is gone; from now on it executes nothing."""
        self._lay(memoryview(bytearray(_BYTES)))

    def _lay(self, memory: memoryview) -> None:
        #: one bit per slot: whatever a corrupted worker writes here, the front reads a valid slot or none
        self._executing = memory[:8].cast("Q")
        self._since = memory[8:16].cast("d")
        self._vitals = memory[16:32].cast("Q")
        #: record of what the worker computes now
        self.crash_record = memory[_CRASH_RECORD : _CRASH_RECORD + CRASH_RECORD_BYTES]
        #: one byte per slot, which is not 0 if its task is to stop
        self.stops = [memory[_STOPS + slot : _STOPS + slot + 1] for slot in range(SLOTS)]


def sealed_memory(name: str, nbytes: int) -> int:
    """Create anonymous memory of zeros whose size is fixed; return its descriptor.

    If it could shrink, a corrupted worker could crash the front with SIGBUS.
    """
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, nbytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


class SharedBuffer:
    """Numbered shared memory; its first `used` bytes may have been written since it was last cleared."""

    __slots__ = ("fd", "memory", "number", "size", "used")

    def __init__(self, number: int, size: int, fd: int) -> None:
        self.number = number
        self.size = size
        self.fd = fd
        self.used = 0
        self.memory = mmap.mmap(fd, size)

    @property
    def pooled(self) -> bool:
        """Whether it is reused."""
        return self.size <= LARGEST

    def clear(self) -> None:
        """Overwrite a caller's bytes with zeros."""
        if self.used:
            np.frombuffer(self.memory, np.uint8, self.used).fill(0)
            self.used = 0

    def drop(self) -> None:
        """Give the memory back to the system. This takes a while if it is large."""
        os.close(self.fd)
        with suppress(BufferError):  # a view is still in use: the memory is unmapped with it
            self.memory.close()


class SharedBuffers:
    """Pool of the buffers that this process writes; at most `keep` bytes of idle ones are kept."""

    def __init__(self, keep: int, dropped: Callable[[SharedBuffer], None]) -> None:
        """Make an empty pool; `dropped` is called with each buffer that leaves it for good."""
        self._keep = keep
        self._dropped = dropped
        self._idle: dict[int, list[SharedBuffer]] = {}
        self._idle_bytes = 0
        self._count = 0
        self._used = 0.0

    def acquire(self, nbytes: int) -> SharedBuffer:
        """Return a cleared buffer of at least `nbytes`."""
        size = size_of(nbytes)
        self._used = time.monotonic()
        if idle := self._idle.get(size):
            self._idle_bytes -= size
            return idle.pop()
        self._count += 1
        return SharedBuffer(self._count, size, sealed_memory("gradserve-buffer", size))

    def put(self, buffer: SharedBuffer) -> None:
        """Keep a cleared buffer for reuse, or drop it if the pool is full."""
        if not buffer.pooled or self._idle_bytes + buffer.size > self._keep:
            self._dropped(buffer)
            return
        self._used = time.monotonic()
        self._idle_bytes += buffer.size
        self._idle.setdefault(buffer.size, []).append(buffer)

    @property
    def waiting(self) -> bool:
        """Whether any buffer is idle."""
        return self._idle_bytes > 0

    def trim(self) -> None:
        """Drop the idle buffers if none has been used for a while."""
        if self._idle_bytes and time.monotonic() - self._used > UNUSED:
            for buffer in self._take_idle():
                self._dropped(buffer)

    def close(self) -> None:
        """Drop the idle buffers."""
        for buffer in self._take_idle():
            buffer.drop()

    def _take_idle(self) -> Iterator[SharedBuffer]:
        """Remove and return all idle buffers."""
        idle, self._idle, self._idle_bytes = self._idle, {}, 0
        return chain.from_iterable(idle.values())


def size_of(nbytes: int) -> int:
    """Return the size of the buffer for `nbytes`: a power of two, so that it can be reused; whole pages if large."""
    if nbytes > LARGEST:
        return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    return max(_SMALLEST, 1 << (nbytes - 1).bit_length())


class DescriptorChannel:
    """Socket that passes the descriptors of buffers, each before the first frame that names the buffer."""

    def __init__(self, side: socket.socket) -> None:
        self._side = side
        self._sent: set[int] = set()
        self._mapped: dict[int, HostMapping] = {}

    def show(self, buffer: VisibleBuffer) -> None:
        """Pass one of our buffers to the other side, unless it has it. Raises OSError if the other side is gone."""
        if buffer.number not in self._sent:
            self.show_all([buffer])

    def show_all(self, buffers: Sequence[VisibleBuffer]) -> None:
        """Pass several of our buffers to the other side, unless it has them."""
        unseen = list({buffer.number: buffer for buffer in buffers if buffer.number not in self._sent}.values())
        for start in range(0, len(unseen), _BATCH):
            batch = unseen[start : start + _BATCH]
            heads = [_HEAD.pack(buffer.number, buffer.size) for buffer in batch]
            socket.send_fds(self._side, heads, [buffer.fd for buffer in batch])
            self._sent.update(buffer.number for buffer in batch)

    def hide(self, number: int) -> bool:
        """Forget our buffer of this number; return whether the other side has it and must be told."""
        known = number in self._sent
        self._sent.discard(number)
        return known

    def mapped(self, number: int) -> HostMapping:
        """Map the other side's buffer of this number, which a device may read directly if it is large.

        Raises OSError if its descriptor does not arrive.
        """
        while number not in self._mapped:
            # Descriptors are sent ahead of the frame that names them, so this hardly waits.
            heads, fds, _, _ = socket.recv_fds(self._side, _BATCH * _HEAD.size, _BATCH)
            if not fds:
                raise ConnectionResetError
            for (sent_number, size), fd in zip(_HEAD.iter_unpack(heads), fds, strict=True):
                self._mapped[sent_number] = HostMapping(fd, size)
                # The mapping keeps the memory without the descriptor.
                os.close(fd)
        return self._mapped[number]

    def body(self, number: int, nbytes: int) -> HostArray:
        """View the other side's buffer as a read-only array. Its readers hold a reference to this array."""
        array = np.frombuffer(self.mapped(number), np.uint8, nbytes)
        array.flags.writeable = False
        return array

    def forget(self, number: int) -> HostMapping | None:
        """Forget the other side's buffer; return its memory, which goes back to the system with the last reference."""
        return self._mapped.pop(number, None)

    def close(self) -> None:
        """Close the socket. Mapped memory is released with its last reader."""
        self._side.close()
        self._mapped.clear()
