"""The control page says which task a worker executes, and which are to stop.

A kill may only hit the worker that executes the task it is meant for, and a task that is stopped must find out while
it computes: neither can wait for a message to be read. What a worker computed when it died is read once it says
nothing any more. So all of this is words in memory that two processes share.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Final, NamedTuple

from engine.executors.witness import WITNESS_BYTES

#: tasks that a worker may have at a time: the one that it executes, and those that wait in its socket
SLOTS: Final = 64
_STOPS: Final = 64  # where the bytes begin by which tasks are stopped: in a cache line of their own
_WITNESS: Final = 1024  # where the worker says what it computes
_BYTES: Final = 4096


class Vitals(NamedTuple):
    """Vital signs of a worker: kernels that it has compiled or loaded, and bytes that it holds on its GPU."""

    kernels: int
    device_bytes: int


class ControlPage:
    """One worker's shared page. A task is known by its slot, which it has from being sent until it is replied to."""

    __slots__ = ("_executing", "_since", "_vitals", "fd", "stops", "witness")

    def __init__(self, fd: int) -> None:
        """The page behind a descriptor; `create` makes a new one."""
        self.fd = fd
        self._lay(memoryview(mmap.mmap(fd, _BYTES)))

    @classmethod
    def create(cls) -> ControlPage:
        """A page of zeros, whose descriptor a worker inherits."""
        return cls(sealed_memory("gradserve-control", _BYTES))

    @property
    def executing(self) -> int | None:
        """The slot of the task that is being executed; None while the worker executes nothing."""
        bits = self._executing[0]
        return bits.bit_length() - 1 if bits else None

    @property
    def since(self) -> float:
        """When that began, on the monotonic clock."""
        return self._since[0]

    @property
    def vitals(self) -> Vitals:
        """What the worker said of itself last."""
        return Vitals(*self._vitals)

    def tell(self, vitals: Vitals) -> None:
        """The worker says it."""
        self._vitals[0], self._vitals[1] = vitals

    def begin(self, slot: int, now: float) -> None:
        """The worker takes up a task."""
        self._since[0] = now
        self._executing[0] = 1 << slot

    def end(self) -> None:
        """The worker executes nothing."""
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
        self.witness = memory[_WITNESS : _WITNESS + WITNESS_BYTES]
        #: one byte for each slot: not 0 once its task is to stop
        self.stops = [memory[_STOPS + slot : _STOPS + slot + 1] for slot in range(SLOTS)]


def sealed_memory(name: str, nbytes: int) -> int:
    """A descriptor of anonymous memory of zeros that can neither shrink nor grow.

    Could it shrink, a worker gone wrong would take the front down with SIGBUS.
    """
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, nbytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd
