from __future__ import annotations

import numpy as np


class HeapAllocation:
    """Memory of a tensor, as this process gives it."""

    buffer = None

    def __init__(self, nbytes: int) -> None:
        # Not a bytearray, which writes zeros: what is announced and never sent takes addresses, but no memory.
        self.view = memoryview(np.empty(nbytes, np.uint8).data)

    def give_back(self) -> None:
        """Let go of it."""
        self.view = memoryview(b"")
