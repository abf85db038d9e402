"""The large answers of a worker process: written into slabs of its own, which the front sends from and gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from service.transport import frames
from service.transport.slabs import Passage, Slab, Slabs

#: bytes of slabs that wait for the next answer
_KEEP: Final = 32 << 20


class AnswerSlabs:
    """The slabs of this process that the front has, by number."""

    def __init__(self, passage: Passage, tell: Callable[[int, int], None]) -> None:
        self._passage = passage
        self._tell = tell
        self._slabs = Slabs(_KEEP, self._dropped)
        self._away: dict[int, Slab] = {}

    def written(self, pieces: Sequence[bytes | memoryview], nbytes: int) -> int:
        """The number of the slab that holds the pieces now, which the front can see."""
        slab = self._slabs.take(nbytes)
        slab.used = nbytes
        at = 0
        with memoryview(slab.memory) as memory:
            for piece in pieces:
                memory[at : at + len(piece)] = piece
                at += len(piece)
        self._away[slab.number] = slab
        self._passage.show(slab)
        return slab.number

    def released(self, number: int) -> None:
        """The front has sent what is in the slab, or nobody wants it."""
        slab = self._away.pop(number)
        if slab.pooled:
            slab.clear()
        self._slabs.put(slab)

    @property
    def waiting(self) -> bool:
        """Whether memory waits for the next answer."""
        return self._slabs.waiting

    def trim(self) -> None:
        """Give it back to the system, where nobody used it for a while."""
        self._slabs.trim()

    def _dropped(self, slab: Slab) -> None:
        self._passage.hide(slab.number)
        self._tell(frames.FORGET, slab.number)
        slab.drop()
