"""State that the connections of a server share, and the sweep over all of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from starlette.types import ASGIApp

from service.core.errors import Refusal
from service.core.keys.authentication import Gate
from service.core.settings import Settings
from service.facades.protocols import facades_of, owner_of
from service.observe.banner import banner
from service.observe.store import StateStore
from service.web.body_reader import MinimumRate
from service.web.head import Head, HeadCache, HeadReader, HeadWriter
from service.web.listening import MONITOR_CONNECTIONS, allow_descriptors
from service.web.observer import RequestObserver, unobserved
from service.workers.pool import Pool
from service.workers.process_pool import ProcessPool
from service.workers.task import Reply, refused

#: seconds between two sweeps. A client must be late in two of them: after a stall of the whole machine, bytes that
#: arrived in time are still unread in the first one
SWEEP: Final = 0.25
#: connections beyond the limit, for health checks alone
HEALTH_CONNECTIONS: Final = 32
#: connections whose timeouts are handled in one turn of the loop
_CLIENTS_PER_TURN: Final = 32
#: size of the receive buffer in bytes
_RECEIVE_BYTES: Final = 64 << 10
#: descriptors of a process beside those of connections and stored tensors
_OTHER_DESCRIPTORS: Final = 512
#: seconds of the grace period that are reserved for sending the last responses
FINAL_SECONDS: Final = 1.0

_logger = logging.getLogger("gradserve")


class Client(Protocol):
    """A connection, as the server sees it."""

    due: float
    address: str  # the client that the connection counts against; one site, for IPv6
    since: float  # when the connection was made, or its last request answered

    @property
    def idle(self) -> bool:
        """Whether no request has begun."""

    @property
    def has_key(self) -> bool:
        """Whether the last request came with a key."""

    def handle_timeout(self, now: float) -> None:
        """Handle a deadline that has passed."""

    def check_writes(self, now: float) -> None:
        """Abort if the client reads the response too slowly."""

    def abort(self) -> None:
        """Close at once."""

    def drain(self) -> None:
        """Close soon if no request has begun: the server is stopping."""

    def give_up(self) -> None:
        """Refuse the current request: the server's grace period is over."""


class ServerState:
    """Settings, application, pool, store and connections of a listener. Belongs to one event loop."""

    def __init__(
        self,
        settings: Settings,
        app: ASGIApp,
        pool: Pool,
        store: StateStore,
        observer: RequestObserver | None = None,
        gate: Gate | None = None,
        *,
        calls: bool = True,
    ) -> None:
        """With `calls` False, no computing calls are served: `app` answers every request."""
        self.settings = settings
        self.app, self.pool, self.store = app, pool, store
        self.gate = gate or Gate()
        self.observe: RequestObserver = observer or unobserved
        self.head_cache = HeadCache(HeadReader(settings, calls=calls))
        self.head_writer = HeadWriter()
        self.receive_buffer = memoryview(bytearray(_RECEIVE_BYTES))
        self.receive_rate = MinimumRate(settings.body_timeout, settings.min_rate)
        self.send_rate = MinimumRate(settings.send_timeout, settings.min_send_rate)
        self._facades = facades_of(settings.facades)
        self.draining = False
        self.blocked: set[Client] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self._clients: dict[Client, None] = {}
        self._over_limit: dict[Client, None] = {}
        self._connections_of: Counter[str] = Counter()
        self._overdue: set[Client] = set()
        self._idle: list[Client] = []  # idle connections, the first to close at the end
        self._idle_collected = False  # whether the list was made since the last sweep
        self._timer: asyncio.TimerHandle | None = None
        self._empty: asyncio.Event | None = None

    def refusal_reply(self, head: Head | None, refusal: Refusal, request_id: str) -> Reply:
        """Make the reply to a refused request, in the form of the protocol that its path belongs to."""
        reply = refused(refusal, request_id)
        facade = None if head is None else owner_of(head.path, self._facades)
        if facade is None:
            return reply
        status, answer = facade.write_error(refusal.problem(request_id))
        return Reply(status, answer.media_type, answer.parts, reply.headers)

    @property
    def clients(self) -> list[Client]:
        """All connections."""
        return [*self._clients, *self._over_limit]

    def register(self, client: Client) -> Refusal | None:
        """Count a connection. Over a limit, return the refusal of all its requests but health checks."""
        self._connections_of[client.address] += 1
        refusal = self._refusal(client)
        (self._clients if refusal is None else self._over_limit)[client] = None
        # The oldest one goes, so that a flood cannot keep health checks from getting a connection.
        if len(self._over_limit) > HEALTH_CONNECTIONS:
            oldest = next(iter(self._over_limit))
            del self._over_limit[oldest]
            oldest.abort()
        return refusal

    def unregister(self, client: Client) -> None:
        """Remove a closed connection."""
        self._clients.pop(client, None)
        self._over_limit.pop(client, None)
        self.blocked.discard(client)
        self._connections_of[client.address] -= 1
        if not self._connections_of[client.address]:
            del self._connections_of[client.address]
        if self._empty is not None and not self.clients:
            self._empty.set()

    async def wait_until_empty(self) -> None:
        """Wait until all connections are closed."""
        self._empty = asyncio.Event()
        if self.clients:
            await self._empty.wait()

    def drain(self) -> None:
        """Begin to stop: close idle connections, and close the others after their current response."""
        self.draining = True
        for client in self.clients:
            client.drain()

    def give_up(self) -> None:
        """Refuse the requests that are not answered yet."""
        for client in self.clients:
            client.give_up()

    def sweep(self) -> None:
        """Check the deadlines of all connections, now and every `SWEEP` seconds."""
        self._timer = asyncio.get_running_loop().call_later(SWEEP, self.sweep)
        now = time.monotonic()
        self.head_writer.tick()
        self._idle_collected = False
        late = {client for client in self.clients if client.due <= now}
        self._time_out([client for client in late if client in self._overdue])
        self._overdue = late
        for client in [*self.blocked]:
            client.check_writes(now)

    def _time_out(self, late: list[Client]) -> None:
        """Handle the deadlines of late clients; if there are many, yield to other callbacks in between."""
        now = time.monotonic()
        for client in late[:_CLIENTS_PER_TURN]:
            if client.due <= now:
                client.handle_timeout(now)
        if len(late) > _CLIENTS_PER_TURN:
            asyncio.get_running_loop().call_soon(self._time_out, late[_CLIENTS_PER_TURN:])

    def stop(self) -> None:
        """Stop the sweep."""
        if self._timer is not None:
            self._timer.cancel()

    def _refusal(self, client: Client) -> Refusal | None:
        limit, per_client = self.settings.max_connections, self.settings.max_connections_per_client
        if self._connections_of[client.address] > per_client:
            detail = (
                f"this client already has {per_client} connections, its limit; reuse them, or close some and try again"
            )
            return Refusal("queue_full", detail, retry_after=1)
        if len(self._clients) >= limit and not self._evict_idle():
            return Refusal(
                "queue_full", f"the server already has {limit} connections, its limit; try again shortly", retry_after=1
            )
        return None

    def _evict_idle(self) -> bool:
        """Close an idle connection if there is one: connections without a key first, then the one idle the longest.

        Idle connections are listed and sorted once per sweep at most, so that a flood of connections costs no sort for
        each.
        """
        if not self._idle and not self._idle_collected:
            self._idle_collected = True
            idle = (client for client in self._clients if client.idle)
            self._idle = sorted(idle, key=lambda client: (client.has_key, client.since), reverse=True)
        while self._idle:
            client = self._idle.pop()
            if client in self._clients and client.idle:
                del self._clients[client]
                client.abort()
                return True
        return False


def max_descriptors(settings: Settings) -> int:
    """Return the most file descriptors that a server with these settings may use at a time."""
    monitor = 0 if settings.metrics_port is None else MONITOR_CONNECTIONS + HEALTH_CONNECTIONS
    return settings.max_connections + HEALTH_CONNECTIONS + monitor + settings.max_tensors + _OTHER_DESCRIPTORS


class Lifetime:
    """Start and end of workers, store and application, once each, on one event loop."""

    def __init__(
        self, settings: Settings, pool: ProcessPool, store: StateStore, make_app: Callable[[], ASGIApp]
    ) -> None:
        self.settings, self.pool, self.store = settings, pool, store
        self._make_app = make_app

    async def start(self) -> ASGIApp:
        """Start everything; return the application when workers are ready and the state is loaded.

        Raises RuntimeError for the device or the state; call `close` in that case too.
        """
        settings, pool, store = self.settings, self.pool, self.store
        allow_descriptors(max_descriptors(settings))
        starting = asyncio.create_task(pool.start())
        try:
            await asyncio.sleep(0)  # spawns the workers, which start while the application is made
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
        """Accept nothing new; finish what was accepted."""
        self.pool.drain()
        self.store.drain()

    async def close(self, grace: float) -> bool:
        """Write pending changes and end the workers within `grace` seconds; return whether nothing is left running."""
        written = await self.store.close(max(grace, FINAL_SECONDS))
        ended = await self.pool.close(grace)
        return ended and written
