"""Index checks that do not wait: on a device, that an index is outside is noted, and read when the run is over."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Protocol

from engine.graph.op import Array


class IndexNotes(Protocol):
    """Place where it is noted."""

    def note(self, index: Array, extent: int, operand: int, least: int) -> None:
        """Note, on the device, whether an entry of `index`, that operand of the node, is not in [least, extent)."""


#: whoever runs a plan on a device sets it: then no check raises, and a kernel reads and writes somewhere in its arrays
INDEX_NOTES: Final[ContextVar[IndexNotes | None]] = ContextVar("INDEX_NOTES", default=None)
