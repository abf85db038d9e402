"""Whoever sends a request, as far as the server knows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    """What a key may be good for."""

    COMPUTE = "compute"  # the computing calls
    READ = "read"  # graphs and tensors that are kept, and the catalogue of both
    WRITE = "write"  # to keep and to delete them
    ADMIN = "admin"  # the server's own figures


@dataclass(frozen=True, slots=True)
class Caller:
    """A name for logs and figures, what its holder may do, and the namespace of its graphs and tensors.

    Two callers of one namespace see the same; those of different ones see nothing of each other.
    """

    name: str
    namespace: str
    scopes: frozenset[Scope]


#: everybody, where no keys are asked for
ANYONE: Final = Caller("", "", frozenset(Scope))
