"""uvicorn in place of our own connections: `--http uvicorn`. It has some of their limits, which it gets."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from service.settings import Settings
from service.web.lifetime import LAST_WORDS
from service.web.listening import BACKLOG, announce


class UvicornServer(uvicorn.Server):
    """uvicorn on a socket of ours: it says where it is, and ends upon signals, as our own server does."""

    def __init__(self, app: ASGIApp, settings: Settings, drain: Callable[[], None]) -> None:
        """`drain` is called upon the first signal."""
        super().__init__(_configured(app, settings))
        self._settings, self._drain = settings, drain
        self._over = math.inf

    async def run_on(self, listening: socket.socket) -> float:
        """Serve until a signal, and end; the seconds of grace that are left."""
        await self.serve([listening])
        return 0.0 if self.force_exit else max(0.0, self._over - time.monotonic())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, and say so."""
        await super().startup(sockets)
        for listening in sockets or ():
            announce(self._settings, listening)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear signals for good: uvicorn would raise them once more at its end, before what is kept is written."""
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, self.handle_exit, sign, None)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends gracefully, the second at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._over = min(self._over, time.monotonic() + self._settings.shutdown_grace)
        self._drain()


def _configured(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    grace = settings.shutdown_grace
    return uvicorn.Config(
        app,
        http="h11",  # httptools drops the bodies of requests that offer to upgrade
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=settings.max_connections + 1,  # uvicorn counts the one that it refuses
        timeout_keep_alive=settings.keep_alive,
        timeout_graceful_shutdown=math.ceil(max(grace / 2, grace - LAST_WORDS)),
        h11_max_incomplete_event_size=settings.max_header_bytes,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
