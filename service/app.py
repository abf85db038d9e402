"""The composition root: settings in, application out. The only place that knows all parts."""

from __future__ import annotations

from itertools import chain

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from engine import Registry, registry, warm
from schemas import Vocabulary, components
from schemas.registered import GraphList, RegisteredGraph, RegisterGraphRequest, without_graph
from service.calls import calls
from service.calls.computing import computing_calls
from service.compute.pool import Pool
from service.compute.threads import ThreadPool
from service.compute.worker import Worker
from service.errors import Refusal
from service.graphs import GraphStore
from service.pages.catalogue import catalogue_of
from service.pages.documentation import add_pages
from service.pages.openapi import document
from service.pages.openapi30 import version30
from service.settings import Settings
from service.web.graph_routes import graph_router
from service.web.middleware.cors import Cors
from service.web.middleware.envelope import Envelope
from service.web.middleware.guard import BodyLimits, Guard
from service.web.middleware.slashes import Slashes
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
    app.include_router(graph_router)
    known = registry()
    example_worker = Worker(settings.model_copy(update={"device": "cpu", "compile": "off"}))
    described = document(app.routes, components(vocabulary(known), messages()), example_worker)
    add_pages(app, described)
    app.add_middleware(Slashes, routes=app.routes)
    documents = orjson.dumps(described), orjson.dumps(version30(described))
    graphs = GraphStore(settings.max_graphs, settings.max_graph_bytes)
    app.state.service = State(settings, known, pool, graphs, catalogue_of(known), *documents)
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
        calls=tuple(computing_calls()),
    )


def messages() -> list[type]:
    """What the calls take and answer, and what is said of registered graphs."""
    of_calls = [(call.request, without_graph(call.request), call.answer) for call in calls().values()]
    return [*chain.from_iterable(of_calls), RegisterGraphRequest, RegisteredGraph, GraphList]
