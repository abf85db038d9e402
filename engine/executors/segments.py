"""Calls in a row. Between two segments a run looks at the clock; an error inside one is told from its position."""

from __future__ import annotations

from collections.abc import Sequence
from operator import length_hint
from typing import Final

from engine.graph.errors import EngineError
from engine.graph.ir import Origin
from engine.graph.op import KernelCall
from engine.planning.plan import Step

#: a segment ends where it has so many calls, or takes so long, at a nanosecond a FLOP and a byte that is written
MOST_CALLS: Final = 256
MOST_NANOSECONDS: Final = 5_000_000


class Segment:
    """Calls in their order, and for each the node that it comes from."""

    __slots__ = ("calls", "origins")

    def __init__(self) -> None:
        self.calls: list[KernelCall] = []
        self.origins: list[Origin | None] = []

    def make(self) -> None:
        """Make the calls. Raises what a kernel finds in its data, with its node."""
        remaining = iter(self.calls)
        try:
            for function, arguments in remaining:
                function(*arguments)
        except EngineError as error:
            origin = self.origins[len(self.calls) - length_hint(remaining) - 1]
            raise at_origin(error, origin) from None


class Segments(list[Segment]):
    """Segments as they grow, by a few milliseconds each: a run that is late is noticed as late.

    The way back, from the first step that differentiation wrote, begins with a segment of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self._left = 0
        self._turn: int | None = None

    @property
    def ways(self) -> tuple[list[Segment], list[Segment]]:
        """What goes forth, and from where on it goes back."""
        return self[: self._turn], [] if self._turn is None else self[self._turn :]

    def add(self, step: Step, calls: Sequence[KernelCall]) -> tuple[Segment, int]:
        """Append the calls of a step. Where they lie: the segment, and the first one's position in it."""
        if self._turn is None and step.origin is not None and step.origin.backward:
            self._turn, self._left = len(self), 0
        if self._left <= 0 or len(self[-1].calls) >= MOST_CALLS:
            self.append(Segment())
            self._left = MOST_NANOSECONDS
        segment = self[-1]
        position = len(segment.calls)
        for call in calls:
            segment.calls.append(call)
            segment.origins.append(step.origin)
        self._left -= step.flops + step.types[0].nbytes * len(step.types)
        return segment, position


def at_origin(error: EngineError, origin: Origin | None) -> EngineError:
    """The error at the client's node that the step comes from."""
    return error if origin is None else error.at(origin.node, origin.op)
