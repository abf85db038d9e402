"""The calls: one definition each, found by walking this package.

    definition → computing → forward, gradients, vjp, …
               → plan, check, differentiate

What may live here: what a call takes, asks of the engine and answers, and what is said about it. What may not: HTTP
(`service.web`), the shape of messages (`schemas`), or lists of calls.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from service.calls.definition import AnyCall, CallDefinition


@lru_cache(maxsize=1)
def calls() -> Mapping[str, AnyCall]:
    """All calls by name, in the order in which people are shown them."""
    found = sorted(_discover(), key=lambda call: (call.position, call.name))
    return MappingProxyType({call.name: call for call in found})


def _discover() -> Iterator[AnyCall]:
    for module_info in pkgutil.walk_packages(__path__, f"{__name__}."):
        module = importlib.import_module(module_info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            # A class without a name of its own is a base.
            if issubclass(cls, CallDefinition) and cls.__module__ == module.__name__ and "name" in vars(cls):
                yield cls()
