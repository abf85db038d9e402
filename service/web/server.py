"""The process: a socket, an event loop, connections on it, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp

from service.collector import collect_in_short_steps, set_aside
from service.keys.gate import Gate
from service.web.asgi_door import AsgiDoor
from service.web.connection import Connection, Doors
from service.web.fast_door import FastDoor
from service.web.hosted import Hosted
from service.web.lifetime import LAST_WORDS, Lifetime
from service.web.listening import BACKLOG, announce, bound, keep_to_this_machine, tls_context
from service.web.observer import RequestObserver, unobserved
from service.web.server_state import ServerState

#: of every connection
DOORS: Final = Doors(FastDoor, AsgiDoor)

_logger = logging.getLogger("gradserve")


class Server:
    """One server on one socket, from the announcement to the last answer."""

    def __init__(self, state: ServerState, listening: socket.socket, drain: Callable[[], None]) -> None:
        """`drain` has workers and what is kept take nothing new."""
        self._state = state
        self._listening = listening
        self._drain = drain
        self._stopped = asyncio.Event()
        self._stopped_twice = asyncio.Event()

    async def serve(self) -> float:
        """Serve until a signal, and end; the seconds of grace that are left."""
        settings, loop = self._state.settings, asyncio.get_running_loop()
        context = tls_context(settings)
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, self._on_signal)
        accepting = await loop.create_server(
            lambda: Connection(self._state, DOORS),
            sock=self._listening,
            backlog=BACKLOG,
            ssl=context,
            ssl_handshake_timeout=settings.header_timeout if context else None,
            ssl_shutdown_timeout=LAST_WORDS if context else None,
        )
        self._state.sweep()
        announce(settings, self._listening)
        await self._stopped.wait()
        over = time.monotonic() + settings.shutdown_grace
        accepting.close()
        await self._end()
        self._state.stop()
        return 0.0 if self._stopped_twice.is_set() else max(0.0, over - time.monotonic())

    def _on_signal(self) -> None:
        """The first signal ends gracefully, the second at once."""
        if self._stopped.is_set():
            self._stopped_twice.set()
        self._drain()
        self._stopped.set()

    async def _end(self) -> None:
        """Let the connections finish within the grace, and tell those that are left just before its end."""
        state, grace = self._state, self._state.settings.shutdown_grace
        state.drain()
        if not await self._all_gone(max(grace / 2, grace - LAST_WORDS)):
            _logger.warning("requests were still in work at the end of the grace")
            state.give_up()
            await self._all_gone(LAST_WORDS)
        for client in state.clients:
            client.abort()
        for task in [*state.tasks]:
            task.cancel()

    async def _all_gone(self, seconds: float) -> bool:
        """Wait until nobody is connected, so long at most, or until the second signal."""
        ends = [asyncio.ensure_future(wait) for wait in (self._stopped_twice.wait(), self._state.emptied())]
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        return not self._state.clients


def serve(lifetime: Lifetime, observer: RequestObserver | None = None, gate: Gate | None = None) -> None:
    """Serve until a signal.

    Raises OSError when the address cannot be had, RuntimeError for the device or the files of TLS, or where it would be
    open to other machines.
    """
    collect_in_short_steps()
    settings = lifetime.settings
    with bound(settings.host, settings.port) as listening, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        tls_context(settings)  # raises before the workers are made
        keep_to_this_machine(settings, listening)
        if not runner.run(_served(lifetime, observer, listening, gate)):
            _leave()


async def _served(
    lifetime: Lifetime, observer: RequestObserver | None, listening: socket.socket, gate: Gate | None
) -> bool:
    """Whether nothing is left that runs."""
    left = 0.0
    try:
        app = await lifetime.start()
        set_aside()
        if lifetime.settings.http == "uvicorn":
            left = await _by_uvicorn(lifetime, Hosted(app, lifetime.settings, observer or unobserved), listening)
        else:
            state = ServerState(lifetime.settings, app, lifetime.pool, lifetime.store, observer, gate)
            left = await Server(state, listening, lifetime.drain).serve()
    finally:
        done = await lifetime.close(left)
    return done


async def _by_uvicorn(lifetime: Lifetime, app: ASGIApp, listening: socket.socket) -> float:
    """As `Server.serve`, where uvicorn holds the connections."""
    from service.web.uvicorn_server import UvicornServer  # noqa: PLC0415 - slow to load, and rarely asked for

    return await UvicornServer(app, lifetime.settings, lifetime.drain).run_on(listening)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop, where there is one."""
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _leave() -> None:
    """A thread inside a kernel cannot be stopped, and Python would wait for it."""
    _logger.warning("work was still running when the grace was over")
    sys.stdout.flush()
    os._exit(0)
