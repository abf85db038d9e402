"""Opset: one class per op, grouped in a package per family. To add an op, add a class (or a file) here; that is all.

The package contains op definitions, found by walking it, and their implementations. It contains no list of ops, and
nothing that works on whole graphs.
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
    """Return all ops of this installation, discovered once."""
    return Registry(_discover())


def _discover() -> Iterator[Definition]:
    for module_info in pkgutil.walk_packages(__path__, f"{__name__}."):
        module = importlib.import_module(module_info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            # A class without its own `name` is a base. Internal ops are only emitted by rules: they are not in the
            # registry, and their constructors may take arguments.
            if (
                issubclass(cls, Definition)
                and cls.__module__ == module.__name__
                and "name" in vars(cls)
                and not cls.internal
            ):
                yield cls()
