"""The composition root: settings in, application out. The only place that knows all parts."""

from __future__ import annotations

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from engine import Registry, registry
from schemas import Vocabulary, components
from service.documentation import add_pages
from service.errors import Refusal
from service.middleware.cors import Cors
from service.middleware.envelope import Envelope
from service.middleware.guard import BodyLimits, Guard
from service.middleware.slashes import Slashes
from service.openapi import document
from service.openapi30 import version30
from service.pool import Pool, ThreadPool
from service.responses import on_error
from service.routes import router
from service.settings import Settings
from service.state import State, catalogue_of
from service.worker import Worker


def create_app(settings: Settings | None = None, pool: Pool | None = None) -> ASGIApp:
    """The ASGI application, ready to serve. Raises RuntimeError when the device cannot be had."""
    settings = settings or Settings()
    return wrap(create_routes(settings, pool or open_pool(settings)), settings)


def open_pool(settings: Settings) -> ThreadPool:
    """The workers."""
    worker = Worker(settings)
    return ThreadPool(worker, worker.device, settings.workers, settings.queue)


def create_routes(settings: Settings, pool: Pool) -> FastAPI:
    """The paths, and what they share."""
    app = FastAPI(title="gradserve", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    for kind in (Refusal, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, on_error)
    app.include_router(router)
    known = registry()
    example_worker = Worker(settings.model_copy(update={"device": "cpu"}))
    described = document(app.routes, components(vocabulary(known)), example_worker)
    add_pages(app, described)
    app.add_middleware(Slashes, routes=app.routes)
    documents = orjson.dumps(described), orjson.dumps(version30(described))
    app.state.service = State(settings, known, pool, catalogue_of(known), *documents)
    return app


def wrap(app: ASGIApp, settings: Settings) -> ASGIApp:
    """`app` behind the middleware, the outermost last."""
    limits = BodyLimits(
        settings.max_body_bytes,
        settings.max_binary_bytes,
        settings.max_header_bytes,
        settings.body_timeout,
        settings.drain_bytes,
    )
    app = Guard(app, limits)
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
    )
