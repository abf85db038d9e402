"""Kinds of attributes: one class a kind. Adding a kind is adding a file here and nothing else.

What may live here: what a value is, and how it is written, found by walking this package. What may not: attributes of
ops, which name kinds, or what several values have to do with each other.
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
            # A class without a name of its own is a base.
            if issubclass(cls, AttributeKind) and cls.__module__ == module.__name__ and "name" in vars(cls):
                yield cls()


#: all kinds by name, in the order in which people are shown them
ATTRIBUTE_KINDS: Final[Mapping[str, AttributeKind]] = MappingProxyType(
    {kind.name: kind for kind in sorted(_discover(), key=lambda kind: (kind.position, kind.name))}
)
_OWNERS: Final = {form: kind for kind in ATTRIBUTE_KINDS.values() for form in kind.forms}


def key(value: Any) -> Hashable:
    """A hashable stand-in for an attribute value that tells types and bits apart.

    Python holds 1 == True == 1.0 and 0.0 == -0.0; two nodes that differ only so must not be merged.
    """
    owner = _OWNERS.get(type(value)) or _inherited(*type(value).__mro__)
    return (type(value).__name__, value) if owner is None else owner.key(value)


def is_remembered(value: Any) -> bool:
    """Whether a value is told apart in no time, and takes no memory to speak of: of these types, and of none like them.

    A float of NumPy's computes otherwise than Python's.
    """
    owner = _OWNERS.get(type(value))
    return value is None if owner is None else owner.is_remembered(value)


@lru_cache(maxsize=256)
def _inherited(*forms: type) -> AttributeKind | None:
    """The kind that values of a type and its bases are of, if there is one."""
    return next((_OWNERS[form] for form in forms if form in _OWNERS), None)
