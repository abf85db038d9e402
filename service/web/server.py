"""The server process: sockets, an event loop, connections, and a graceful end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from starlette.types import ASGIApp

from service.core.keys.authentication import Gate
from service.core.process import freeze_objects, tune_front_gc
from service.web.asgi_handler import AsgiHandler
from service.web.connection import Connection, HandlerFactory
from service.web.fast_handler import FastHandler
from service.web.listening import (
    BACKLOG,
    announce,
    bind_monitor,
    monitor_settings,
    require_keys_for_remote,
    tls_context,
)
from service.web.observer import RequestObserver
from service.web.server_state import FINAL_SECONDS, Lifetime, ServerState

#: handlers of every connection
HANDLERS: Final = HandlerFactory(FastHandler, AsgiHandler)

_logger = logging.getLogger("gradserve")


class Listener(NamedTuple):
    """A bound socket, and the state that its connections share."""

    socket: socket.socket
    state: ServerState


class Server:
    """One server, from its announcement to its last response."""

    def __init__(self, main: Listener, drain: Callable[[], None], monitor: Listener | None = None) -> None:
        """`drain` makes the workers and the store accept nothing new; `monitor` is the metrics listener."""
        self._main = main
        self._monitor = monitor
        self._listeners = [main] if monitor is None else [main, monitor]
        self._drain = drain
        self._stopped = asyncio.Event()
        self._stopped_twice = asyncio.Event()

    async def serve(self) -> float:
        """Serve until a signal, then end; return the seconds of the grace period that are left."""
        settings, loop = self._main.state.settings, asyncio.get_running_loop()
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_number, self._on_signal)
        acceptors = [await _accept(listener) for listener in self._listeners]
        announce(settings, self._main.socket, None if self._monitor is None else self._monitor.socket)
        await self._stopped.wait()
        deadline = time.monotonic() + settings.shutdown_grace
        for acceptor in acceptors:
            acceptor.close()
        states = [listener.state for listener in self._listeners]
        await self._end(states)
        for state in states:
            state.stop()
        return 0.0 if self._stopped_twice.is_set() else max(0.0, deadline - time.monotonic())

    def _on_signal(self) -> None:
        """End gracefully at the first signal, and at once at the second."""
        if self._stopped.is_set():
            self._stopped_twice.set()
        self._drain()
        self._stopped.set()

    async def _end(self, states: Sequence[ServerState]) -> None:
        """Let connections finish within the grace period, and refuse the remaining requests just before its end."""
        grace = self._main.state.settings.shutdown_grace
        for state in states:
            state.drain()
        if not await self._wait_until_empty(states, max(grace / 2, grace - FINAL_SECONDS)):
            _logger.warning("requests are still running at the end of the shutdown grace period")
            for state in states:
                state.give_up()
            await self._wait_until_empty(states, FINAL_SECONDS)
        for state in states:
            for client in state.clients:
                client.abort()
            for task in [*state.tasks]:
                task.cancel()

    async def _wait_until_empty(self, states: Sequence[ServerState], seconds: float) -> bool:
        """Wait until all connections are closed, or until `seconds` or a second signal; return whether they are."""
        emptied = asyncio.gather(*(state.wait_until_empty() for state in states))
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._stopped_twice.wait()), emptied]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        return not any(state.clients for state in states)


async def _accept(listener: Listener) -> asyncio.Server:
    """Accept connections, and start the sweep over them."""
    state = listener.state
    context = tls_context(state.settings)
    acceptor = await asyncio.get_running_loop().create_server(
        lambda: Connection(state, HANDLERS),
        sock=listener.socket,
        backlog=BACKLOG,
        ssl=context,
        ssl_handshake_timeout=state.settings.header_timeout if context else None,
        ssl_shutdown_timeout=FINAL_SECONDS if context else None,
    )
    state.sweep()
    return acceptor


def serve(
    lifetime: Lifetime,
    listening: socket.socket,
    observer: RequestObserver | None = None,
    gate: Gate | None = None,
    make_monitor: Callable[[], ASGIApp] | None = None,
) -> None:
    """Serve on a bound socket until a signal; `make_monitor` makes the application of the metrics listener.

    Raises RuntimeError for the device, the TLS files, or the metrics address, or if other machines would reach a server
    without keys.
    """
    tune_front_gc()
    settings = lifetime.settings
    with (
        bind_monitor(settings) as metrics_socket,
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        tls_context(settings)  # raises before the workers are made
        require_keys_for_remote(settings, listening)
        if not runner.run(_run_server(lifetime, observer, listening, gate, metrics_socket, make_monitor)):
            # A thread inside a kernel cannot be stopped, and Python would wait for it.
            _logger.warning("work is still running after the shutdown grace period; exiting")
            sys.stdout.flush()
            os._exit(0)


async def _run_server(
    lifetime: Lifetime,
    observer: RequestObserver | None,
    listening: socket.socket,
    gate: Gate | None,
    metrics_socket: socket.socket | None,
    make_monitor: Callable[[], ASGIApp] | None,
) -> bool:
    """Serve; return whether nothing is left running."""
    grace_left = 0.0
    try:
        app = await lifetime.start()
        freeze_objects()
        settings, pool, store = lifetime.settings, lifetime.pool, lifetime.store
        main = Listener(listening, ServerState(settings, app, pool, store, observer, gate))
        monitor = None
        if metrics_socket is not None and make_monitor is not None:
            own_settings = monitor_settings(settings)
            monitor = Listener(
                metrics_socket, ServerState(own_settings, make_monitor(), pool, store, observer, calls=False)
            )
        grace_left = await Server(main, lifetime.drain, monitor).serve()
    finally:
        done = await lifetime.close(grace_left)
    return done


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory if it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
