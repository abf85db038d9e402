"""Other servers, as this one asks them: what is asked, what they answer, and whether they are there at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class Answer(NamedTuple):
    """Answer of a server to a question, and the bytes behind it."""

    head: Mapping[str, Any]
    blobs: memoryview


class Moved(Exception):
    """The server has not what it was asked for; as far as it knows, the one at `owner` has."""

    def __init__(self, owner: str | None) -> None:
        super().__init__(owner)
        self.owner = owner


class Unreachable(Exception):
    """The server takes no connections: nothing has reached it."""


class Silent(Exception):
    """The server has not answered, and does not say that it lives; what was sent may have reached it."""


class Slow(Exception):
    """The server lives, and has not answered in time; what was sent has reached it, or will."""


class Peers(Protocol):
    """The other servers by their addresses."""

    async def ask(
        self, address: str, what: str, head: Mapping[str, Any], blobs: Sequence[bytes | memoryview], expires: float
    ) -> Answer:
        """The answer to a question. Raises Moved, Unreachable, Silent, Slow, and what the other server refuses."""

    async def close(self) -> None:
        """Ask nothing more."""
