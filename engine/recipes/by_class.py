"""Tables by class of ops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from engine.graph.op import Kernel

_Entry = TypeVar("_Entry")


def of_class(table: Mapping[type[Kernel], _Entry], op: Kernel) -> _Entry | None:
    """The entry of an op's class, or of the nearest of its bases that has one; else None."""
    return next((table[base] for base in type(op).__mro__ if base in table), None)
