"""The application in the test's own process, with threads as workers."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.types import ASGIApp

from service import app
from service.core.keys.authentication import Gate
from service.core.settings import Settings
from service.observe.store import StoreService
from service.observe.tally import Tally
from service.workers.pool import Pool
from service.workers.worker import Worker
from tests.service.thread_pool import ThreadPool


def create_app(settings: Settings | None = None, pool: Pool | None = None) -> ASGIApp:
    """Create the application, ready to serve."""
    settings = settings or Settings()
    ring, tally, pool = app.open_ring(settings), Tally(), pool or open_pool(settings)
    store = app.open_store(settings, pool, tally, ring)
    store.restore(store.load())
    return wrap(app.create_routes(settings, pool, store, tally), settings, Gate(ring, tally.count_denial))


def open_pool(settings: Settings) -> ThreadPool:
    """Open a pool whose workers are threads of this process."""
    worker = Worker(settings)
    return ThreadPool(worker, worker.device, settings.workers, settings.queue)


def create_routes(settings: Settings, pool: Pool, store: StoreService | None = None) -> FastAPI:
    """Create the routes on this pool, with the contents of `store`, or empty."""
    tally = Tally()
    if store is None:
        store = app.open_store(settings, pool, tally)
        store.restore(store.load())
    return app.create_routes(settings, pool, store, tally)


def wrap(routes: FastAPI, settings: Settings, gate: Gate | None = None) -> ASGIApp:
    """Put the middleware in front of these routes; without a gate, no key is required."""
    return app.wrap(routes, settings, gate or Gate())
