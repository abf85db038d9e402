"""Threads of a process that help whoever runs a region: asleep in machine code, without the interpreter's lock."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import platform
import sys
from functools import cache
from pathlib import Path
from threading import Lock, Thread
from typing import Final

import numpy as np

from engine.graph.tensor_type import HostArray
from engine.native.kernel_errors import KernelUnavailable
from engine.native.kernel_store import KernelStore, kernel_key
from engine.native.machine_code import machine_code, target
from engine.native.native_call import SIGNATURE
from engine.native.object_file import load_function
from engine.native.runner_layout import CLOSED, MOST_HELPERS, PoolEntry

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
        """Have so many threads to help, if the system gives them, and MOST_HELPERS at most."""
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
        """A pool without threads: that of a new process, whatever others were doing when it was forked."""
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
    """The module with `run` and `help` of `runner.c`, as a compiler made it, for Linux on x86-64."""
    return Path(__file__).with_name("runner.ll").read_text("ascii")


class _Shared:
    """The runner of this process, as soon as somebody asks."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.tried = False
        self.runner: Runner | None = None


_shared = _Shared()


def shared_runner(store: KernelStore) -> Runner | None:
    """The runner of this process, its code from `store` where that has it; None where there can be none."""
    with _shared.lock:
        if not _shared.tried and IS_SUPPORTED:
            try:
                _shared.runner = _kept(store) or _new(store)
            except KernelUnavailable as error:
                _logger.warning("kernels are not run by machine code, but one by one: %s", error)
        _shared.tried = True
        return _shared.runner


def _kept(store: KernelStore) -> Runner | None:
    """From the code that was kept; None where there is none, or it cannot be loaded."""
    code = store.get(_key())
    try:
        return None if code is None else Runner(code)
    except KernelUnavailable:
        return None


def _new(store: KernelStore) -> Runner:
    code = machine_code(runner_text())
    runner = Runner(code)
    store.put(_key(), code)
    return runner


def _key() -> str:
    return kernel_key(runner_text(), **target())
