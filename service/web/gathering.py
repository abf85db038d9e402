"""A body for a worker: a small one in one piece, a large one received straight into a room of the pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from service.compute.job import Room

#: bytes up to which a body is copied once more rather than given a room
SMALL: Final = 64 << 10


class Gathering:
    """A body of `most` bytes at most; of just as many, where that is `announced`. Raises what `rent` does."""

    def __init__(self, rent: Callable[[int], Room], most: int, *, announced: bool) -> None:
        self._rent, self._most = rent, most
        self._small = bytearray()
        self._got = 0
        self.room: Room | None = None
        if announced and most > SMALL:
            self.room = rent(most)

    @property
    def got(self) -> int:
        """Bytes that came so far."""
        return self._got

    @property
    def body(self) -> bytes | memoryview:
        """What came; where it is large, as memory of `room`."""
        return bytes(self._small) if self.room is None else self.room.view[: self._got]

    def put(self, piece: bytes) -> None:
        """The next piece. Raises what `rent` does."""
        if self.room is None and self._got + len(piece) > SMALL:
            self.room = self._rent(self._most)
            self.room.view[: self._got] = self._small
            self._small = bytearray()
        if self.room is None:
            self._small += piece
        else:
            self.room.view[self._got : self._got + len(piece)] = piece
        self._got += len(piece)

    def place(self, most: int) -> memoryview | None:
        """The room that is left, where it is to be had and worth it."""
        if self.room is None or most < SMALL:
            return None
        return self.room.view[self._got : self._got + most]

    def placed(self, nbytes: int) -> None:
        """So many bytes were received there."""
        self._got += nbytes

    def give_back(self) -> None:
        """Nobody wants the body."""
        if self.room is not None:
            self.room.give_back()
