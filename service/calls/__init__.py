"""The calls: one definition each, found by walking this package.

    definition → computing → forward, gradients, vjp, …
               → plan, check, differentiate

What may live here: what a call takes, asks of the engine and answers, and what is said about it. What may not: HTTP
(`service.web`), the shape of messages (`schemas`), or lists of calls.

Files:
    batch           One graph on many examples
    cached_request  A request that comes again with other numbers: all that its shape decides was decided the first time
    check           A certificate for gradients
    computing       Base of the calls that run a graph: one engine call each, and answers of one form
    definition      The contract of a call: all of it but its messages, in one file
    differentiate   The gradient as a graph
    estimate        Estimate of what a task takes, before it is done
    forward         Values of nodes
    gradients       Values, and the gradients of one node
    hessian         Whole Hessians
    hvp             The Hessian times vectors
    jacobian        Whole Jacobians
    jvp             The Jacobian times tangents
    plan            What a request would take
    sample          The graph that the examples of all calls share: a mean of squares
    vjp             Cotangents times the Jacobian
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
