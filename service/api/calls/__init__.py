"""Calls as the front knows them: one description each, found by walking this package.

What may live here: what is said about a call, and the classes of its messages. What may not: the engine, how a call is
executed (`service.workers.executions`), HTTP (`service.web`), or lists of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from service.api.calls.description import CallDescription, ComputingDescription
from service.core.discovery import classes_in


@lru_cache(maxsize=1)
def calls() -> Mapping[str, type[CallDescription]]:
    """All calls by name, in the order in which people are shown them."""
    found = classes_in(__path__, __name__, CallDescription, "name")
    return MappingProxyType({call.name: call for call in sorted(found, key=lambda call: (call.position, call.name))})


def computing_calls() -> Mapping[str, type[ComputingDescription]]:
    """The calls that run a graph."""
    return {name: call for name, call in calls().items() if issubclass(call, ComputingDescription)}
