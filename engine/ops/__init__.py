"""The opset: one class an op, in families. Adding an op is adding a class (or a file) here and nothing else.

Each family is a package. What may live here: definitions of ops, found by walking this package, and what they compute
with. What may not: lists of ops, or anything that knows of graphs as a whole.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import lru_cache

from engine.ir.op import Definition, Registry


@lru_cache(maxsize=1)
def registry() -> Registry:
    """All ops of this installation, discovered once."""
    return Registry(_discover())


def _discover() -> Iterator[Definition]:
    for module_info in pkgutil.walk_packages(__path__, f"{__name__}."):
        module = importlib.import_module(module_info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            # A class without a name of its own is a base. Internal ops are emitted by rules alone: they are not made
            # here, and may take arguments.
            if (
                issubclass(cls, Definition)
                and cls.__module__ == module.__name__
                and "name" in vars(cls)
                and not cls.internal
            ):
                yield cls()
