"""The composition root: settings in, application out. The only place that knows all parts."""

from __future__ import annotations

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from engine import Registry, registry, warm
from schemas import Vocabulary, components
from service.calls import calls
from service.calls.computing import computing_calls
from service.compute.pool import Pool
from service.compute.process_pool import ProcessPool
from service.compute.threads import ThreadPool
from service.compute.worker import Worker
from service.errors import Refusal
from service.observe.exposition import Exposition
from service.observe.tally import Tally
from service.pages.catalogue import catalogue_of
from service.pages.documentation import add_pages
from service.pages.openapi import document
from service.pages.openapi30 import version30
from service.settings import Settings
from service.web.middleware.cors import Cors
from service.web.middleware.envelope import Envelope
from service.web.middleware.guard import Guard
from service.web.middleware.slashes import Slashes
from service.web.readiness import Readiness
from service.web.responses import on_error
from service.web.routes import router
from service.web.state import State


def create_app(settings: Settings | None = None, pool: Pool | None = None) -> ASGIApp:
    """The ASGI application, ready to serve. Raises RuntimeError when the device cannot be had."""
    settings = settings or Settings()
    return wrap(create_routes(settings, pool or open_pool(settings)), settings)


def assemble(settings: Settings) -> tuple[ASGIApp, ThreadPool]:
    """The application and its workers, ready to serve. Raises RuntimeError when the device cannot be had."""
    pool = open_pool(settings)
    app = wrap(create_routes(settings, pool), settings)
    # Before the server listens: it is 0.1 to 0.2 s of the second that a start takes, and beside requests it would slow
    # them, as Python's threads take turns.
    warm(registry())
    return app, pool


def open_processes(settings: Settings) -> ProcessPool:
    """Workers that are processes, to be started on the event loop."""
    return ProcessPool(settings)


def open_pool(settings: Settings) -> ThreadPool:
    """Workers that are threads of this process."""
    worker = Worker(settings)
    return ThreadPool(worker, worker.device, settings.workers, settings.queue)


def create_routes(settings: Settings, pool: Pool, tally: Tally | None = None) -> FastAPI:
    """The paths, and what they share. What /metrics tells of requests is counted in `tally`, by whoever serves."""
    app = FastAPI(title="gradserve", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    for kind in (Refusal, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, on_error)
    app.include_router(router)
    known = registry()
    example_worker = Worker(settings.model_copy(update={"device": "cpu", "compile": "off"}))
    described = document(app.routes, components(vocabulary(known), messages()), example_worker)
    add_pages(app, described)
    app.add_middleware(Slashes, routes=app.routes)
    documents = orjson.dumps(described), orjson.dumps(version30(described))
    app.state.service = State(
        settings=settings,
        registry=known,
        pool=pool,
        catalogue=catalogue_of(known),
        document=documents[0],
        document30=documents[1],
        readiness=Readiness(pool),
        metrics=Exposition(tally or Tally(), pool.stats, pool.device),
    )
    return app


def wrap(app: ASGIApp, settings: Settings) -> ASGIApp:
    """`app` behind the middleware, the outermost last."""
    app = Guard(app, settings)
    if settings.cors_origins:
        app = Cors(app, settings.cors_origins)
    return Envelope(app)


def vocabulary(known: Registry) -> Vocabulary:
    """The registry's words, as plain data."""
    docs: dict[str, list[str]] = {name: [] for name in known.attributes}
    for op in known.ops.values():
        for name, attr in op.attrs.items():
            docs[name].append(f"{op.name}: {attr.doc}")
    return Vocabulary(
        ops=tuple(known.ops),
        attributes=known.attributes,
        docs={name: "; ".join(lines) for name, lines in docs.items()},
        calls=tuple(computing_calls()),
    )


def messages() -> list[type]:
    """What the calls take and answer."""
    return [message for call in calls().values() for message in (call.request, call.answer)]
