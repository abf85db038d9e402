"""State that the routes share: made once, read by every request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from service.observe.exposition import Exposition
from service.pages.catalogue import OpCatalogue
from service.pool.pool import Pool
from service.settings import Settings
from service.state.conditions import Condition, of_headers
from service.store import StateStore, StoreService
from service.web.readiness import Readiness


@dataclass(frozen=True)
class State:
    """The settings, the workers, what is kept for callers, and what the server says about itself."""

    settings: Settings
    pool: Pool
    store: StateStore
    catalogue: OpCatalogue
    documents: Mapping[str, bytes]
    readiness: Readiness
    metrics: Exposition


def state_of(request: Request) -> State:
    """What the application was given."""
    state: State = request.app.state.service
    return state


def store_of(request: Request) -> StoreService:
    """What keeps the things of a request: the server's store, or what was found for the request."""
    found = getattr(request.state, "store", None)
    return cast("StoreService", state_of(request).store if found is None else found)


async def current(request: Request, seconds: float | None = None) -> None:
    """Return where what is kept here is what there is, in as many seconds from the arrival as the request has.

    Raises Refusal: not_ready.
    """
    await store_of(request).commits.fence.passed(deadline_of(request, seconds))


def condition_of(request: Request) -> Condition:
    """What the head demands of the version that is there. Raises Refusal: invalid_field."""
    headers = request.headers
    return of_headers(headers.getlist("if-match"), headers.getlist("if-none-match"))


def deadline_of(request: Request, seconds: float | None = None) -> float:
    """When the time of a request is up, on the monotonic clock: after these seconds, or as many as the server gives."""
    arrived: float = request.state.arrived
    return arrived + (state_of(request).settings.timeout_ms / 1000 if seconds is None else seconds)
