"""Composition root: settings in, application out. The only module that knows all parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from service.core.errors import Refusal
from service.core.installed import needs_extra
from service.core.keys.authentication import Gate, KeyRing
from service.core.settings import Settings
from service.facades.protocols import facades_of
from service.observe.exposition import Exposition
from service.observe.request_log import Lines, RequestLog, log_message_formatter
from service.observe.store import StateStore, StoreService
from service.observe.tally import Tally
from service.store.places import open_state
from service.web.facade_routes import facade_router
from service.web.graph_routes import graph_router
from service.web.listening import bind_socket, monitor_settings
from service.web.middleware import Cors, Envelope, Guard, OriginCheck, ProtocolErrors, TrailingSlash
from service.web.model_routes import model_router
from service.web.observer import Recorder
from service.web.pages.catalogue import shipped_catalogue
from service.web.pages.documentation import add_pages
from service.web.pages.openapi import document_router, documents, shipped_document
from service.web.responses import on_error
from service.web.routes import health_router, metrics_router, router
from service.web.server import serve
from service.web.server_state import Lifetime
from service.web.state import Readiness, State
from service.web.tensor_routes import tensor_router
from service.workers.confinement import forbid_tracing
from service.workers.pool import Pool
from service.workers.process_pool import ProcessPool
from service.workers.sums import PeerServers

if TYPE_CHECKING:
    from service.cluster.composition import Cluster
    from service.observe.tracing import Tracing

#: seconds to write the last lines of the log, and to export the last spans
_CLOSE_SECONDS: Final = 2.0


class Composition(NamedTuple):
    """Parts of a server that the holder of its connections uses."""

    lifetime: Lifetime
    recorder: Recorder
    gate: Gate
    make_monitor: Callable[[], ASGIApp]


def run_server(settings: Settings) -> None:
    """Serve until a signal.

    Raises OSError if the address is not available, RuntimeError for the device, the keys, the TLS files, or the metrics
    address.
    """
    # The port comes first: a second server that differs in nothing is told about it, and not about the state folder.
    with bind_socket(settings.host, settings.port) as listening, composed(settings) as parts:
        serve(parts.lifetime, listening, parts.recorder, parts.gate, parts.make_monitor)


@contextmanager
def composed(settings: Settings) -> Iterator[Composition]:
    """Compose a server with worker processes, metrics and a log, without starting it.

    Raises RuntimeError for the keys, or if the state is not available.
    """
    if settings.confine == "on":
        forbid_tracing()
    cluster = load_cluster()(settings) if settings.cluster == "on" else None
    tally, pool = Tally(), ProcessPool(settings) if cluster is None else cluster.pool
    if settings.ingress is not None:
        pool.peers = load_ingress()(settings.ingress)
    key_ring = open_ring(settings)
    gate, store = Gate(key_ring, tally.count_denial), open_store(settings, pool, tally, key_ring, cluster)
    tracing = None if settings.trace_endpoint is None else load_tracing()(settings.trace_endpoint)
    log_format = settings.log_format
    lines = (
        Lines(sys.stderr.write, log_message_formatter(log_format)) if settings.log_level in ("debug", "info") else None
    )
    recorder = Recorder(tally, RequestLog(lines, log_format) if lines else None, tracing)
    routes = cache(partial(create_routes, settings, pool, store, tally))
    try:
        yield Composition(
            Lifetime(settings, pool, store, lambda: wrap(routes(), settings, gate, cluster)),
            recorder,
            gate,
            lambda: create_monitor(routes(), settings),
        )
    finally:
        if lines is not None:
            lines.close(_CLOSE_SECONDS)
        if tracing is not None:
            tracing.close(_CLOSE_SECONDS)


def load_tracing() -> Callable[[str], Tracing]:
    """Import the function that opens traces to a collector. Raises RuntimeError if OpenTelemetry is not installed."""
    with needs_extra("--trace-endpoint", "OpenTelemetry", "otel"):
        from service.observe.tracing import tracing_to  # noqa: PLC0415 - an extra, and slow to load
    return tracing_to


def load_cluster() -> type[Cluster]:
    """Import the parts of a server in a cluster. Raises RuntimeError without aiohttp."""
    with needs_extra("--cluster on", "aiohttp", "cluster"):
        from service.cluster.composition import Cluster  # noqa: PLC0415 - an HTTP client, which no other server needs
    return Cluster


def load_ingress() -> Callable[[str], PeerServers]:
    """Import the client for other servers, which compute pieces of sums. Raises RuntimeError without aiohttp."""
    with needs_extra("--ingress", "aiohttp", "cluster"):
        from service.cluster.remote_pieces import IngressPieces  # noqa: PLC0415 - as above
    return IngressPieces


def open_store(
    settings: Settings, pool: Pool, tally: Tally, ring: KeyRing | None = None, cluster: Cluster | None = None
) -> StateStore:
    """Open the store that the settings name; `tally` counts it, and `ring` limits the share of each key.

    Raises RuntimeError if the place is not available.
    """
    key_limits = None if ring is None else ring.storage_limit
    if cluster is not None:
        shared = cluster.open_store(tally.count_commit, key_limits)
        tally.holdings, tally.cluster = shared.holdings, shared.stats
        return shared
    store = StoreService(
        settings, pool, open_state(settings.state, settings.lease_ms / 1000), tally.count_commit, key_limits
    )
    tally.holdings = store.holdings
    return store


def open_ring(settings: Settings) -> KeyRing | None:
    """Read the keys, if any are set. Raises RuntimeError with one sentence if they cannot be read."""
    if not settings.requires_keys:
        return None
    key = settings.api_key
    return KeyRing(settings.keys_file, None if key is None else key.get_secret_value())


def create_routes(settings: Settings, pool: Pool, store: StateStore, tally: Tally) -> FastAPI:
    """Make the application of all routes and their shared state. `tally` has the request counts for /metrics."""
    metrics = [metrics_router] if settings.metrics_port is None else []
    facades = facade_router(facades_of(settings.facades))
    app = _app_of_routers([
        router, health_router, *metrics, graph_router, tensor_router, model_router, document_router, facades
    ])  # fmt: skip
    document = shipped_document()
    add_pages(app, document, playground=settings.playground == "on")
    _add_head(app)
    app.state.service = State(
        settings=settings,
        pool=pool,
        store=store,
        catalogue=shipped_catalogue(),
        documents=documents(document),
        readiness=Readiness(pool, store.current),
        metrics=Exposition(tally, pool, settings),
    )
    return app


def create_monitor(routes: FastAPI, settings: Settings) -> ASGIApp:
    """Make the application of the metrics listener: metrics and health of the server with these routes."""
    app = _app_of_routers([health_router, metrics_router])
    _add_head(app)
    app.state.service = routes.state.service
    return Envelope(OriginCheck(app, monitor_settings(settings), app.routes))


def _app_of_routers(routers: Iterable[APIRouter]) -> FastAPI:
    """Make an application of these routes, whose errors are problem reports."""
    app = FastAPI(title="gradserve", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    for exception in (Refusal, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(exception, on_error)
    for api_router in routers:
        app.router.routes.extend(api_router.routes)  # flat, so that middleware can match them
    app.add_middleware(TrailingSlash, routes=app.routes)
    return app


def _add_head(app: FastAPI) -> None:
    """Let every route that takes GET take HEAD, for which the HTTP server leaves out the body."""
    for i, route in enumerate(app.routes):
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
            app.routes[i] = reading = copy(route)  # the routers are shared, and the OpenAPI documents leave out HEAD
            reading.methods = {"GET", "HEAD"}


def wrap(routes: FastAPI, settings: Settings, gate: Gate, cluster: Cluster | None = None) -> ASGIApp:
    """Wrap the routes in the middleware, the outermost last."""
    guarded: ASGIApp = Guard(routes if cluster is None else cluster.in_front_of(routes), settings, gate)
    app = guarded
    if settings.cors_origins:
        app = Cors(app, settings.cors_origins)
    app = OriginCheck(app, settings, routes.routes)
    app = Envelope(app)
    if settings.facades:
        app = ProtocolErrors(app, facades_of(settings.facades))
    return app if cluster is None else cluster.between(app, Envelope(guarded), routes.routes)
