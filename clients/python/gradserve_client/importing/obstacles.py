"""Obstacles: the ops that an importer cannot express, collected while it reads a model, and raised together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gradserve_client.errors import InputError
from gradserve_client.importing.notes import Tally

#: maximum number of places that a message lists
_MAX_PLACES: Final = 3


class Blocked(Exception):
    """Raised by a rule that cannot express an op: the reason, and a workaround if there is one.

    `reads` are the inputs of the model whose values would have to be constants of the graph.
    """

    def __init__(self, reason: str, way_round: str = "", reads: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.way_round = way_round
        self.reads = tuple(reads)


@dataclass(frozen=True)
class Obstacle:
    """An op that cannot be expressed, for one reason, with all places in the source at which it occurs."""

    op: str
    reason: str
    way_round: str
    places: tuple[str, ...]
    reads: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = len(self.places)
        listed = ", ".join(self.places[:_MAX_PLACES]) + (", …" if count > _MAX_PLACES else "")
        where = f"{count} times, at {listed}" if count > 1 else f"at {listed}"
        return f"{self.op} ({where}): {self.reason}" + (f"; {self.way_round}" if self.way_round else "")


class ImportRefused(InputError):
    """A model that cannot be imported, with all `obstacles`, in the order of their first places.

    `tally` counts all ops of the model, if the importer has counted them.
    """

    def __init__(self, model: str, obstacles: Sequence[Obstacle], tally: Tally | None = None) -> None:
        self.model = model
        self.tally = tally
        self.obstacles = tuple(obstacles)
        count = "one obstacle" if len(self.obstacles) == 1 else f"{len(self.obstacles)} obstacles"
        lines = "".join(f"\n  {obstacle}" for obstacle in self.obstacles)
        super().__init__(f"cannot import {model} because of {count}:{lines}")

    def __reduce__(self) -> tuple[type[ImportRefused], tuple[str, tuple[Obstacle, ...], Tally | None]]:
        return type(self), (self.model, self.obstacles, self.tally)


class Obstacles:
    """The obstacles found so far. Occurrences of an op with the same reason are one obstacle, in several places."""

    def __init__(self) -> None:
        self._places_by_obstacle: dict[tuple[str, str, str], tuple[list[str], tuple[str, ...]]] = {}

    def __len__(self) -> int:
        return len(self._places_by_obstacle)

    def __iter__(self) -> Iterator[Obstacle]:
        for (op, reason, way_round), (places, reads) in self._places_by_obstacle.items():
            yield Obstacle(op, reason, way_round, tuple(places), reads)

    def add(self, op: str, place: str, blocked: Blocked) -> None:
        """Add an op that cannot be expressed at a place."""
        places, _ = self._places_by_obstacle.setdefault((op, blocked.reason, blocked.way_round), ([], blocked.reads))
        places.append(place)

    def raise_all(self, model: str, tally: Tally | None = None) -> None:
        """Raise ImportRefused if there are obstacles. `model` is the name of the model in the message."""
        if self._places_by_obstacle:
            raise ImportRefused(model, [*self], tally)
