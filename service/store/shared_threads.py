"""Threads that the shards of a server share: as many for one shard as for thousands.

The parts of a store have an executor of one thread each: for commits, looks and tidying. `SharedThreads` gives each an
executor that still runs one task at a time, in order, but on the threads of a pool. There is one pool for each of these
kinds of work, because one kind waits for another: a commit for a deletion under way, and the end of a store for its
last tidying. Within a kind, nothing waits for a task that has not begun.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from threading import Condition, Lock
from typing import Any

from service.store.journal import Environment


class SerialExecutor(Executor):
    """Executor of one task at a time, in order, on a thread of a pool that others use as well."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._changed = Condition()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._is_running = self._is_shut_down = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a task behind earlier ones. Raises RuntimeError after `shutdown`."""
        future: Future[Any] = Future()
        with self._changed:
            if self._is_shut_down:
                raise RuntimeError("this executor is shut down")
            self._waiting.append((future, partial(fn, *args, **kwargs)))
            if not self._is_running:
                self._pool.submit(self._run)
                self._is_running = True
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more tasks; with `wait`, return when all are done. The pool goes on."""
        with self._changed:
            self._is_shut_down = True
            while cancel_futures and self._waiting:
                self._waiting.popleft()[0].cancel()
            while wait and self._is_running:
                self._changed.wait()

    def _run(self) -> None:
        """Run all tasks that wait."""
        while True:
            with self._changed:
                if not self._waiting:
                    self._is_running = False
                    self._changed.notify_all()
                    return
                future, task = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = task()
            except BaseException as error:  # noqa: BLE001 - the future raises it for its reader
                future.set_exception(error)
            else:
                future.set_result(result)


class SharedThreads(Environment):
    """Environment of several stores, whose executors of one thread share pools of at most `count` threads, by name."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pools: dict[str, Executor] = {}
        self._lock = Lock()

    def threads(self, count: int, name: str) -> Executor:
        """Return an executor; one of several threads has its own."""
        if count > 1:
            return super().threads(count, name)
        with self._lock:
            if name not in self._pools:
                self._pools[name] = ThreadPoolExecutor(self._count, name)
            return SerialExecutor(self._pools[name])
