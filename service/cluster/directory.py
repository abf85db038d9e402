"""Directory of owners: who has a shard, as its last commit tells it."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from service.state.objects import Missing, Objects
from service.state.packing import Contents
from service.state.reading import COMMITS, read_head
from service.state.shards import ShardObjects
from service.state.tenure import PEACE

#: how often a last commit is looked for that is gone when it is read
_TRIES: Final = 10


class Owner(NamedTuple):
    """The server that has a shard, and when it made its opening, in Unix seconds."""

    address: str
    began: float

    def peace(self, today: float) -> float:
        """Seconds for which nobody else should make an opening; not more, whatever a clock says."""
        return min(max(0.0, self.began + PEACE - today), PEACE)


class OwnerDirectory:
    """Reader of last commits; it blocks."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def owner(self, shard: int) -> Owner | None:
        """Who has a shard; None where nobody has, or who had it released it. Raises OSError, Damaged."""
        head = self._last(ShardObjects(self._objects, shard))
        if head is None or head.note.released or head.note.owner is None:
            return None
        return Owner(head.note.owner, time.time() if head.note.began is None else head.note.began)

    @staticmethod
    def _last(objects: Objects) -> Contents | None:
        for _ in range(_TRIES):
            last = max(objects.list(COMMITS), default=None)
            if last is None:
                return None
            try:
                return read_head(objects, int(last.removeprefix(COMMITS)))
            except Missing:
                continue
        raise OSError("the last commit of a shard is listed, and not there")
