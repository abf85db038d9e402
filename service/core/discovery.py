"""Discovery of the classes in a package, where each module defines one."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from typing import TypeVar

Base = TypeVar("Base")


def classes_in(paths: Iterable[str], package: str, base: type[Base], attribute: str) -> Iterator[type[Base]]:
    """Import every module of a package and yield the subclasses of `base` that set `attribute` themselves.

    A class that leaves `attribute` to its subclasses is abstract and is skipped.
    """
    for module_info in pkgutil.walk_packages(paths, f"{package}."):
        module = importlib.import_module(module_info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, base) and cls.__module__ == module.__name__ and attribute in vars(cls):
                yield cls
