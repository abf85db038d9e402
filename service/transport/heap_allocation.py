"""Memory of this process alone, where nobody else has to see it."""

from __future__ import annotations

import numpy as np


class HeapAllocation:
    """Memory of a body or of a tensor, as this process gives it."""

    buffer = None

    def __init__(self, nbytes: int) -> None:
        # Not a bytearray, which writes zeros: what is announced and never sent takes addresses, but no memory.
        self.view = memoryview(np.empty(nbytes, np.uint8).data)

    def reserve(self, nbytes: int) -> int:
        """All of it: what embeds the service has no budget of bytes."""
        return len(self.view)

    def pin(self) -> None:
        """Nothing: it is never taken back."""

    def give_back(self) -> None:
        """Let go of it."""
        self.view = memoryview(b"")
