"""Descriptions of calls, as the front knows them, found by walking this package.

What may live here: descriptions of calls, and the classes of their messages. What may not: the engine, the execution of
calls (`service.workers.executions`), HTTP (`service.web`), or lists of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from service.api.calls.description import CallDescription, ComputingDescription
from service.core.discovery import classes_in


@lru_cache(maxsize=1)
def calls() -> Mapping[str, type[CallDescription]]:
    """Return all calls by name, in the order in which people see them."""
    classes = classes_in(__path__, __name__, CallDescription, "name")
    return MappingProxyType({call.name: call for call in sorted(classes, key=lambda call: (call.position, call.name))})


def computing_calls() -> Mapping[str, type[ComputingDescription]]:
    """Return the calls that run a graph."""
    return {name: call for name, call in calls().items() if issubclass(call, ComputingDescription)}
