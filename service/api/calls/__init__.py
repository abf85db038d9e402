"""Descriptions of calls for the front-end process, discovered by walking this package.

Each module describes a call and refers to the classes of its messages. This package imports neither the engine nor the
execution of calls (`service.workers.executions`) nor HTTP (`service.web`), and it has no list of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from service.api.calls.description import CallDescription, ComputingDescription
from service.core.discovery import classes_in


@lru_cache(maxsize=1)
def calls() -> Mapping[str, type[CallDescription]]:
    """Return all calls by name, in the order in which documentation lists them."""
    classes = classes_in(__path__, __name__, CallDescription, "name")
    return MappingProxyType({call.name: call for call in sorted(classes, key=lambda call: (call.position, call.name))})


def computing_calls() -> Mapping[str, type[ComputingDescription]]:
    """Return the calls that run a graph."""
    return {name: call for name, call in calls().items() if issubclass(call, ComputingDescription)}
