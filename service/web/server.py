"""The process: a socket, an event loop, connections on it, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Final, Protocol

from starlette.types import ASGIApp

from service.keys.gate import Gate
from service.observe.banner import banner
from service.pool.pool import Pool
from service.settings import Settings
from service.store import StoreService
from service.web.asgi_door import AsgiDoor
from service.web.connection import Connection, Doors
from service.web.fast_door import FastDoor
from service.web.listening import address, allow_descriptors, bound, keep_to_this_machine, tls_context
from service.web.observer import RequestObserver
from service.web.server_state import RESERVE, ServerState

#: of every connection
DOORS: Final = Doors(FastDoor, AsgiDoor)
#: connections that wait to be accepted
_BACKLOG: Final = 2048
#: descriptors of a process beside its connections and the tensors that it keeps
_DESCRIPTORS: Final = 512
#: objects that the collector goes through at once, after so many new ones: less than a millisecond; and once in so many
#: times, those of all these times together
YOUNG_OBJECTS: Final = 2_000
YOUNG_STEPS: Final = 5
_STEPS_BEFORE_ALL: Final = 5_000
#: seconds of the grace that are kept for last answers to leave
_LAST_WORDS: Final = 1.0

_logger = logging.getLogger("gradserve")


class Workers(Pool, Protocol):
    """A pool with a beginning and an end."""

    async def start(self) -> None:
        """Return when work can be done."""

    async def close(self, grace: float) -> bool:
        """End, when the work has or after so many seconds; whether nothing is left that runs."""


class Server:
    """One front on one socket, from the announcement to the last answer."""

    def __init__(self, front: ServerState, listening: socket.socket) -> None:
        self._front = front
        self._listening = listening
        self._asked = asyncio.Event()
        self._asked_twice = asyncio.Event()

    async def run(self) -> float:
        """Serve until a signal, and end; the seconds of grace that are left."""
        settings, loop = self._front.settings, asyncio.get_running_loop()
        context = tls_context(settings)
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, self._on_signal)
        accepting = await loop.create_server(
            lambda: Connection(self._front, DOORS),
            sock=self._listening,
            backlog=_BACKLOG,
            ssl=context,
            ssl_handshake_timeout=settings.header_timeout if context else None,
            ssl_shutdown_timeout=_LAST_WORDS if context else None,
        )
        self._front.sweep()
        url = address(settings.host, self._listening, "https" if context else "http")
        sys.stdout.write(f"gradserve listening on {url}\n")
        sys.stdout.flush()
        await self._asked.wait()
        over = time.monotonic() + settings.shutdown_grace
        accepting.close()
        await self._end()
        self._front.stop()
        return 0.0 if self._asked_twice.is_set() else max(0.0, over - time.monotonic())

    def _on_signal(self) -> None:
        """The first signal ends gracefully, the second at once."""
        if self._asked.is_set():
            self._asked_twice.set()
        self._front.pool.drain()
        self._asked.set()

    async def _end(self) -> None:
        """Let the connections finish within the grace, and tell those that are left just before its end."""
        front, grace = self._front, self._front.settings.shutdown_grace
        front.drain()
        if not await self._all_gone(max(grace / 2, grace - _LAST_WORDS)):
            _logger.warning("requests were still in work at the end of the grace")
            front.give_up()
            await self._all_gone(_LAST_WORDS)
        for guest in front.guests:
            guest.abort()
        for task in [*front.tasks]:
            task.cancel()

    async def _all_gone(self, seconds: float) -> bool:
        """Wait until nobody is connected, so long at most, or until the second signal."""
        ends = [asyncio.ensure_future(wait) for wait in (self._asked_twice.wait(), self._front.emptied())]
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        return not self._front.guests


def serve(
    settings: Settings,
    pool: Workers,
    store: StoreService,
    make_app: Callable[[], ASGIApp],
    observer: RequestObserver | None = None,
    gate: Gate | None = None,
) -> None:
    """Serve the application that is made, and its calls by the pool, until a signal.

    Raises OSError when the address cannot be had, RuntimeError for the device or the files of TLS, or where it would be
    open to other machines.
    """
    collect_in_short_steps()
    allow_descriptors(settings.max_connections + RESERVE + settings.max_tensors + _DESCRIPTORS)
    with bound(settings.host, settings.port) as listening, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        tls_context(settings)  # raises before the workers are made
        keep_to_this_machine(settings, listening)
        if not runner.run(_served(settings, pool, store, make_app, observer, listening, gate)):
            _leave()


async def _served(
    settings: Settings,
    pool: Workers,
    store: StoreService,
    make_app: Callable[[], ASGIApp],
    observer: RequestObserver | None,
    listening: socket.socket,
    gate: Gate | None,
) -> bool:
    """Whether nothing is left that runs."""
    left = 0.0
    starting = asyncio.create_task(pool.start())
    try:
        await asyncio.sleep(0)  # the workers are spawned, and start while the application is made
        loading = asyncio.get_running_loop().run_in_executor(None, store.load)
        app = make_app()
        await starting
        store.restore(await loading)
        gc.freeze()  # it is there to stay, and without a cycle: the collector need not go through it
        for line in banner(settings, pool.device):
            _logger.info(line)
        left = await Server(ServerState(settings, app, pool, store, observer, gate), listening).run()
    finally:
        starting.cancel()
        written = await store.commits.close(max(left, _LAST_WORDS))
        ended = await pool.close(left)
    return ended and written


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop, where there is one."""
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def collect_in_short_steps() -> None:
    """Have the collector go in short steps: whoever waits for Python's lock waits until one is over.

    What is kept makes objects by the million without a cycle among them, which come and go by reference counts. So a
    step goes through those that are new alone, and all are gone through about never.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_STEPS, _STEPS_BEFORE_ALL)


def _leave() -> None:
    """A thread inside a kernel cannot be stopped, and Python would wait for it."""
    _logger.warning("work was still running when the grace was over")
    sys.stdout.flush()
    os._exit(0)
