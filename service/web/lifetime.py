"""Workers, state and application of a server, from their start to their end, whoever holds the connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from starlette.types import ASGIApp

from service.observe.banner import banner
from service.pool.pool import Pool
from service.settings import Settings
from service.store import StateStore
from service.web.listening import MONITOR_CONNECTIONS, allow_descriptors
from service.web.server_state import RESERVE

#: descriptors of a process beside its connections and the tensors that it keeps
_DESCRIPTORS: Final = 512
#: seconds of the grace that are kept for last answers to leave
LAST_WORDS: Final = 1.0

_logger = logging.getLogger("gradserve")


def descriptors_of(settings: Settings) -> int:
    """Descriptors that a server of these settings may need at a time."""
    monitor = 0 if settings.metrics_port is None else MONITOR_CONNECTIONS + RESERVE
    return settings.max_connections + RESERVE + monitor + settings.max_tensors + _DESCRIPTORS


class Workers(Pool, Protocol):
    """A pool with a beginning and an end."""

    async def start(self) -> None:
        """Return when work can be done."""

    async def close(self, grace: float) -> bool:
        """End, when the work has or after so many seconds; whether nothing is left that runs."""


class Lifetime:
    """Start and end of all of it, once each, and on one event loop."""

    def __init__(self, settings: Settings, pool: Workers, store: StateStore, make_app: Callable[[], ASGIApp]) -> None:
        self.settings, self.pool, self.store = settings, pool, store
        self._make_app = make_app

    async def start(self) -> ASGIApp:
        """The application, once work can be done and what was kept is there.

        Raises RuntimeError for the device or the state; `close` is due then, too.
        """
        settings, pool, store = self.settings, self.pool, self.store
        allow_descriptors(descriptors_of(settings))
        starting = asyncio.create_task(pool.start())
        try:
            await asyncio.sleep(0)  # the workers are spawned, and start while the application is made
            loading = asyncio.get_running_loop().run_in_executor(None, store.load)
            app = self._make_app()
            await starting
            store.restore(await loading)
        finally:
            starting.cancel()
        for line in banner(settings, pool.device):
            _logger.info(line)
        return app

    def drain(self) -> None:
        """Take nothing new; what was taken goes on."""
        self.pool.drain()
        self.store.drain()

    async def close(self, grace: float) -> bool:
        """Write what is behind and end the workers, within so many seconds; whether nothing is left that runs."""
        written = await self.store.close(max(grace, LAST_WORDS))
        ended = await self.pool.close(grace)
        return ended and written
