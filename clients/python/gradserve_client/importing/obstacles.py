"""What cannot be said: collected while a model is read, and raised at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gradserve_client.errors import InputError
from gradserve_client.importing.notes import Tally

#: how many of the places where an op stands are told
_PLACES: Final = 3


class Blocked(Exception):
    """Raised by a rule that cannot say an op: why, in half a sentence, and a way round it where there is one.

    `reads` are the inputs of the model whose values would have to be part of the graph for it to be said.
    """

    def __init__(self, reason: str, way_round: str = "", reads: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.way_round = way_round
        self.reads = tuple(reads)


@dataclass(frozen=True)
class Obstacle:
    """An op that cannot be said, for one reason, and all places in the source where it stands."""

    op: str
    reason: str
    way_round: str
    places: tuple[str, ...]
    reads: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = len(self.places)
        shown = ", ".join(self.places[:_PLACES]) + (", …" if count > _PLACES else "")
        where = f"{count} times, at {shown}" if count > 1 else f"at {shown}"
        return f"{self.op} ({where}): {self.reason}" + (f"; {self.way_round}" if self.way_round else "")


class ImportRefused(InputError):
    """A model that cannot be said, with all that is in the way: `obstacles`, in the order of their first places.

    `tally` counts all ops of the model, where the importer has counted them.
    """

    def __init__(self, model: str, obstacles: Sequence[Obstacle], tally: Tally | None = None) -> None:
        self.model = model
        self.tally = tally
        self.obstacles = tuple(obstacles)
        what = "one thing" if len(self.obstacles) == 1 else f"{len(self.obstacles)} things"
        lines = "".join(f"\n  {obstacle}" for obstacle in self.obstacles)
        super().__init__(f"{what} of {model} cannot be said:{lines}")

    def __reduce__(self) -> tuple[type[ImportRefused], tuple[str, tuple[Obstacle, ...], Tally | None]]:
        return type(self), (self.model, self.obstacles, self.tally)


class Obstacles:
    """Those that were met so far. The same reason for the same op is one obstacle, in several places."""

    def __init__(self) -> None:
        self._met: dict[tuple[str, str, str], tuple[list[str], tuple[str, ...]]] = {}

    def __len__(self) -> int:
        return len(self._met)

    def __iter__(self) -> Iterator[Obstacle]:
        for (op, reason, way_round), (places, reads) in self._met.items():
            yield Obstacle(op, reason, way_round, tuple(places), reads)

    def meet(self, op: str, place: str, blocked: Blocked) -> None:
        """Note that an op cannot be said at a place."""
        places, _ = self._met.setdefault((op, blocked.reason, blocked.way_round), ([], blocked.reads))
        places.append(place)

    def raise_all(self, model: str, tally: Tally | None = None) -> None:
        """Raise ImportRefused where there are any; `model` is what the sentence calls the model."""
        if self._met:
            raise ImportRefused(model, [*self], tally)
