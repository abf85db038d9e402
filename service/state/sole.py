"""The claim to a place that one server has alone, by a lock: nothing has to be looked for, and failures are undone."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress

from service.state.items import Item
from service.state.objects import Data, Exists, Missing, Objects
from service.state.ownership import loss
from service.state.packing import Contents, Damaged, encoded
from service.state.reading import Reading, commit_key, read_head


class Sole:
    """Writer of commits to objects that are exclusively ours."""

    def __init__(self, objects: Objects, place: str) -> None:
        self._objects, self._place = objects, place
        self.next = 1
        self._failed: set[str] = set()  # tokens of objects that may have got the next number, though we were told not
        self._lost = False

    def begin(self, reading: Reading) -> dict[int, Contents]:
        """Implement `Ownership.begin`: nobody else adds any."""
        heads = reading.heads(reading.sequences())
        self.next = max(heads, default=0) + 1
        return heads

    def settle(self) -> None:
        """Implement `Ownership.settle`: nobody else is there."""

    def write_items(self, said: Sequence[tuple[Item, memoryview | None]]) -> Contents:
        """Implement `Ownership.write_items`."""
        if self._lost:
            raise loss(self._place)
        token = secrets.token_hex(8)
        parts, contents = encoded(self.next, token, said)
        try:
            self._create(parts, token)
        except OSError:
            self._failed.add(token)
            with suppress(OSError):  # the next commit looks again
                self._withdraw()
            raise
        self.next += 1
        self._failed.clear()
        return contents

    def holds(self) -> bool:
        """Implement `Ownership.holds`: always."""
        return True

    def look(self) -> None:
        """Implement `Ownership.look`: there is nobody to look for."""

    def stub(self, sequence: int) -> Sequence[Data] | None:
        """Implement `Ownership.stub`: nothing has to stay."""
        return None

    def give_up(self) -> None:
        """Implement `Ownership.give_up`: nothing is tried again."""

    def end(self) -> None:
        """Implement `Ownership.end`: the lock goes with the objects."""

    def _create(self, parts: Sequence[Data], token: str) -> None:
        """Make the next object. What is there already may be one of ours that failed, as we were told: that is undone.

        Anything else is of a server that heeds no lock.
        """
        for _ in range(len(self._failed) + 1):
            try:
                return self._objects.put_new(commit_key(self.next), parts)
            except Exists:
                if self._withdraw() == token:
                    return None
        self._lost = True
        raise loss(self._place)

    def _withdraw(self) -> str | None:
        """Remove what a failed write left under the next number; the token of what is there, if anything is."""
        try:
            found = read_head(self._objects, self.next).token
        except (Missing, Damaged):
            return None
        if found in self._failed:
            self._objects.delete([commit_key(self.next)])
        return found
