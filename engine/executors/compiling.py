"""Compiling in the background: one thread, a bounded queue, and an end that waits for what is inside the compiler."""

from __future__ import annotations

import logging
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Condition, Thread, current_thread
from typing import Final, NamedTuple

from engine.native.kernel_errors import KernelUnavailable
from engine.shares.owner import charge_to, current_owner
from engine.shares.turns import Turns

#: jobs that wait; one more is refused, and may be handed in again
MOST_WAITING: Final = 256
#: keys of failed jobs that are remembered
MOST_FAILED: Final = 4096

_logger = logging.getLogger("gradserve.kernels")

CompileJob = Callable[[], object]


class _Waiting(NamedTuple):
    """A job, and who is told where it is dropped after all."""

    key: Hashable
    job: CompileJob
    dropped: CompileJob


class BackgroundCompiler:
    """Runner of jobs, one after the other, in a thread that begins with the first of them.

    Owners take turns, by the time that their jobs take, and those of one run in their order. Where too many wait, the
    last one of whoever has the most gives way.

    A job is known by its key: one that waits, runs or has failed is not taken again; one that has succeeded is, since
    what it made may have been dropped. Where a job raises, one line of the log says why; whoever handed it in goes on
    with what it has. What a job hands in is its owner's, and waits behind what that one has handed in before.

    The thread never outlives the interpreter, and is never stopped inside a compiler: `close`, the loss of the last
    reference and the end of the process let the job that runs come to its end, and drop those that wait.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._queue = _Queue(most_waiting)
        # At the end of a process, this comes before threads that are daemons are left where they are.
        self._finalizer = weakref.finalize(self, _Queue.close, self._queue)

    def submit(self, key: Hashable, job: CompileJob, dropped: CompileJob = lambda: None) -> bool:
        """Have a job run; False where it is not taken: its key is known, the queue is full, or this is closed.

        `dropped` is called where it was taken, and has given way to another owner's.
        """
        return self._queue.add(current_owner(), _Waiting(key, job, dropped))

    @property
    def closing(self) -> bool:
        """Whether the end has come: a job of several kernels looks at it between them."""
        return self._queue.closing

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until no job waits or runs; False where that took longer than `timeout` seconds. Not for jobs."""
        queue = self._queue
        with queue.changed:
            return queue.changed.wait_for(queue.is_idle, timeout)

    def wait_for(self, key: Hashable, timeout: float) -> bool:
        """Wait until no job of this key waits or runs; False where that took longer than `timeout` seconds."""
        queue = self._queue
        with queue.changed:
            return queue.changed.wait_for(lambda: not queue.has(key), timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Take no more jobs, drop those that wait, and wait for the one that runs.

        False where that one took longer than `timeout` seconds: a process that ends then should do so by `os._exit`,
        which leaves the compiler alone.
        """
        self._finalizer.detach()
        return self._queue.close(timeout)


class _Queue:
    """State that the thread shares with those who hand in. It does not know its compiler, so that this can be lost."""

    def __init__(self, most_waiting: int) -> None:
        self.closing = False
        self._most_waiting = most_waiting
        self._waiting: Turns[_Waiting] = Turns()
        self._known: set[Hashable] = set()  # the keys of those that wait
        self._running: set[Hashable] = set()  # one at most
        self._failed: OrderedDict[Hashable, str] = OrderedDict()
        self._thread: Thread | None = None
        self.changed = Condition()

    def add(self, owner: Hashable, new: _Waiting) -> bool:
        with self.changed:
            known = new.key in self._known or new.key in self._running or new.key in self._failed
            if known or self.closing or not self._has_thread():
                return False
            if self._waiting.count >= self._most_waiting and not self._displace(owner):
                return False
            self._waiting.put(owner, new)
            self._known.add(new.key)
            self.changed.notify_all()
            return True

    def _displace(self, owner: Hashable) -> bool:
        """Drop a job of whoever has the most of them, unless that would not be fair."""
        most = self._waiting.most() if self._waiting.count else owner
        if self._waiting.of(most) <= self._waiting.of(owner) + 1:
            return False
        last = self._waiting.drop_last(most)
        self._known.discard(last.key)
        last.dropped()
        return True

    def has(self, key: Hashable) -> bool:
        return key in self._known or key in self._running

    def is_idle(self) -> bool:
        return not self._waiting.count and not self._running

    def close(self, timeout: float | None = None) -> bool:
        with self.changed:
            self.closing = True
            dropped = self._waiting.clear()
            self.changed.notify_all()
            thread = self._thread
        dropped.clear()  # not under the lock: what a job held may hand in others as it goes
        if thread is None or thread is current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _has_thread(self) -> bool:
        """Whether there is a thread, a new one where there was none: a process that was forked has lost it."""
        if self._thread is None or not self._thread.is_alive():
            thread = Thread(target=self._serve, name="kernels", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # too many threads, or the interpreter ends
                return False
            self._thread = thread
        return True

    def _serve(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        """Run one job, when there is one; False at the end. Holds on to no job while it waits."""
        with self.changed:
            self.changed.wait_for(lambda: self._waiting.count or self.closing)
            if self.closing:
                return False
            owner = self._waiting.first()
            key, job, _ = self._waiting.take_next(owner)
            self._known.discard(key)
            self._running.add(key)
        begun = time.perf_counter()
        charge_to(owner)
        try:
            self._attempt(key, job)
        finally:
            with self.changed:
                self._waiting.charge(owner, time.perf_counter() - begun)
                self._running.discard(key)
                self.changed.notify_all()
        return True

    def _attempt(self, key: Hashable, job: CompileJob) -> None:
        try:
            job()
        except KernelUnavailable as error:
            self._note(key, str(error))
        except Exception as error:  # a fault of ours, or of the compiler: no request is to fail for it
            _logger.debug("the job of a kernel failed", exc_info=True)
            self._note(key, f"{type(error).__name__}: {error}")

    def _note(self, key: Hashable, reason: str) -> None:
        """Remember a failure; say so, unless another one for the same reason was said."""
        is_new = reason not in self._failed.values()
        with self.changed:
            self._failed[key] = reason
            if len(self._failed) > MOST_FAILED:
                self._failed.popitem(last=False)
        if is_new:
            _logger.warning("a kernel was not compiled, and NumPy computes it: %s", reason)
