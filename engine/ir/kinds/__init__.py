"""Kinds of attributes, one class each. To add a kind, add a file here: this package is searched for classes.

A kind defines valid values and their representations. Attributes of ops name a kind, and are declared by the ops.
Constraints between several values do not belong here.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from engine.ir.kinds.kind import AttributeKind


def _discover() -> Iterator[AttributeKind]:
    for module_info in pkgutil.walk_packages(__path__, f"{__name__}."):
        module = importlib.import_module(module_info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            # A class without its own `name` is a base class.
            if issubclass(cls, AttributeKind) and cls.__module__ == module.__name__ and "name" in vars(cls):
                yield cls()


#: all kinds by name, in the order of the documentation
ATTRIBUTE_KINDS: Final[Mapping[str, AttributeKind]] = MappingProxyType(
    {kind.name: kind for kind in sorted(_discover(), key=lambda kind: (kind.position, kind.name))}
)
_KIND_BY_TYPE: Final = {form: kind for kind in ATTRIBUTE_KINDS.values() for form in kind.forms}


def key(value: Any) -> Hashable:
    """Return a hashable key of an attribute value that distinguishes types and bits.

    In Python, 1 == True == 1.0 and 0.0 == -0.0; nodes that differ only in this must not be merged.
    """
    kind = _KIND_BY_TYPE.get(type(value)) or _inherited_kind(*type(value).__mro__)
    return (type(value).__name__, value) if kind is None else kind.key(value)


def is_cacheable(value: Any) -> bool:
    """Return whether the key of a value is cheap to compute and to hold. Only exact types count.

    A NumPy float is excluded, since it computes differently from Python's.
    """
    kind = _KIND_BY_TYPE.get(type(value))
    return value is None if kind is None else kind.is_cacheable(value)


@lru_cache(maxsize=256)
def _inherited_kind(*forms: type) -> AttributeKind | None:
    """Return the kind that a type's values belong to by inheritance, if any."""
    return next((_KIND_BY_TYPE[form] for form in forms if form in _KIND_BY_TYPE), None)
