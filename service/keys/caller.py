"""Identity of a request's sender: the credential in its head, the caller, and the tenant that it counts for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from service.errors import Refusal


class KeyScope(StrEnum):
    """Use that a key may be good for."""

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
    scopes: frozenset[KeyScope]

    def require(self, needed: KeyScope) -> None:
        """Raises Refusal (forbidden) where these scopes are without it."""
        if needed not in self.scopes:
            raise lacking(needed, self.scopes)


def lacking(needed: KeyScope, held: Collection[KeyScope]) -> Refusal:
    """The report for a key that has scopes, but not the one that is needed."""
    shown = ", ".join(scope for scope in KeyScope if scope in held)
    detail = f"this needs a key of the scope {needed}, and the one that came has {shown}"
    return Refusal("forbidden", detail, expected=needed.value, got=shown)


#: everybody, where no keys are asked for
ANYONE: Final = Caller("", "", frozenset(KeyScope))
