"""Executions of calls: how each is read, planned, run and answered. Only workers import them.

    execution → computing → derivatives, batch
              → graph_analysis

An execution knows which call of the engine to make, and the body of the answer. It does not know HTTP
(`service.web`). The call is described in `service.api.calls`, and the shape of its messages in `schemas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from service.api.calls import calls
from service.core.discovery import classes_in
from service.workers.executions.execution import AnyExecution, CallExecution


@lru_cache(maxsize=1)
def executions() -> Mapping[str, AnyExecution]:
    """Return the executions of all calls by name, in the order of the calls."""
    classes = classes_in(__path__, __name__, CallExecution, "description")  # type: ignore[type-abstract]
    by_description = {cls.description: cls() for cls in classes}
    return MappingProxyType({name: by_description[call] for name, call in calls().items()})
