"""Virtual time: a world whose events happen one after the other, and processes that can be paused and killed.

A process is an event loop; its threads are greenlets, so that blocking code takes only virtual time. Nothing runs
concurrently, and a seed makes every run reproducible.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from random import Random
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet


class World:
    """A clock with scheduled events."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.now = 0.0
        self.wrong: list[dict[str, Any]] = []
        self._coming: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()

    def at(self, when: float, do: Callable[[], object]) -> None:
        """Schedule an event, after those already scheduled for the same time."""
        heapq.heappush(self._coming, (max(when, self.now), next(self._order), do))

    def run(self, until: float) -> None:
        """Run all events up to a time."""
        while self._coming and self._coming[0][0] <= until:
            self.now, _, do = heapq.heappop(self._coming)
            do()


class Process(asyncio.AbstractEventLoop):
    """A process: the event loop of its main thread, and the environment of a journal."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.paused = 0.0  # until when
        self.dead = False
        #: whether the network is cut, to all others or to the store alone
        self.cut = self.blind = False
        self._hub = getcurrent()
        self._coroutines: list[Any] = []

    def forget(self) -> None:
        """End the process, and close its coroutines that never started, without warnings."""
        self.dead = True
        for each in self._coroutines:
            if getcoroutinestate(each) == CORO_CREATED:
                each.close()

    def at(self, when: float, do: Callable[[], object]) -> None:
        """Schedule an event in the process, which is dropped if the process is dead, and delayed while it is paused."""
        self.world.at(when, partial(self._step, do))

    def _step(self, do: Callable[[], object]) -> None:
        if self.dead:
            return
        if self.paused > self.world.now:
            self.at(self.paused, do)
            return
        asyncio._set_running_loop(self)
        do()
        asyncio._set_running_loop(None)

    # The environment of a journal

    def now(self) -> float:
        return self.world.now

    def today(self) -> float:
        return self.world.now

    def sleep(self, seconds: float) -> None:
        self.block(lambda wake: self.at(self.world.now + seconds, wake))

    def lock(self) -> AbstractContextManager[object]:
        return _Lock(self)

    def threads(self, count: int, name: str = "") -> Threads:
        return Threads(self, count)

    def block(self, until: Callable[[Callable[[], object]], object]) -> None:
        """Block the present thread; `until` receives the function that wakes it."""
        if self.dead:
            raise GreenletExit
        current = getcurrent()
        until(current.switch)
        self._hub.switch()

    def thread(self, do: Callable[[], object]) -> None:
        """Run a function in a new thread."""
        self.at(self.world.now, greenlet(do, self._hub).switch)

    # The event loop for asyncio

    def time(self) -> float:
        return self.world.now

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self.at(self.world.now, lambda: None if handle.cancelled() else handle._run())
        return handle

    call_soon_threadsafe = call_soon

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self.at(max(when, self.world.now), lambda: None if handle.cancelled() else handle._run())
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        return self.call_at(self.world.now + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **_: Any) -> asyncio.Task[Any]:
        self._coroutines.append(coro)
        return asyncio.Task(coro, loop=self)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        return asyncio.wrap_future(executor.submit(func, *args), loop=self)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.dead and "was destroyed" not in context["message"]:
            self.world.wrong.append(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass


class _Lock:
    """A lock of one process; a waiting thread lets others run."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._held = False
        self._waiting: deque[Callable[[], object]] = deque()

    def __enter__(self) -> None:
        while self._held:
            self._process.block(self._waiting.append)
        self._held = True

    def __exit__(self, *_: object) -> None:
        self._held = False
        if self._waiting:
            self._process.at(self._process.world.now, self._waiting.popleft())


class Threads(Executor):
    """An executor with `count` threads of a process."""

    def __init__(self, process: Process, count: int) -> None:
        self._process, self._free = process, count
        self._given: deque[Callable[[], None]] = deque()
        self._running = 0
        self._idle: deque[Callable[[], object]] = deque()

    def submit(self, do: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = do(*args, **named)
            except Exception as error:  # noqa: BLE001  the caller gets the error
                future.set_exception(error)
            else:
                future.set_result(result)

        self._given.append(job)
        if self._free:
            self._free -= 1
            self._running += 1
            self._process.thread(self._work)
        return future

    def map(self, do: Callable[..., Any], *items: Iterable[Any], **_: Any) -> Iterator[Any]:
        pending = deque(enumerate(zip(*items, strict=False)))
        outcomes: list[Any] = [None] * len(pending)
        left = len(pending)
        woken: list[Callable[[], object]] = []

        def work() -> None:
            nonlocal left
            while pending:
                index, item = pending.popleft()
                try:
                    outcomes[index] = do(*item), None
                except Exception as error:  # noqa: BLE001  the caller gets the error
                    outcomes[index] = None, error
                left -= 1
            if not left and woken:
                self._wake(woken.pop())

        for _ in range(min(self._free, left)):
            self._process.thread(work)
        if left:
            self._process.block(woken.append)
        return self._results(outcomes)

    def shutdown(self, wait: bool = True, **_: Any) -> None:
        while wait and self._running and not self._process.dead:
            self._process.block(self._idle.append)

    @staticmethod
    def _results(outcomes: list[Any]) -> Iterator[Any]:
        for result, error in outcomes:
            if error is not None:
                raise error
            yield result

    def _work(self) -> None:
        while self._given:
            self._given.popleft()()
        self._free += 1
        self._running -= 1
        while not self._running and self._idle:
            self._wake(self._idle.popleft())

    def _wake(self, wake: Callable[[], object]) -> None:
        self._process.at(self._process.world.now, wake)
