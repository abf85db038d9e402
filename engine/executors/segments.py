"""Segments of a plan: calls in a row, of which neighbouring native ones are made as one, a region.

Between two segments a run looks at the clock. An error inside a segment is told from its position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import length_hint
from typing import Final, cast

from engine.executors.regions import NativeStep, Region, RegionWatch
from engine.executors.witness import place_named
from engine.graph.errors import DeadlineExceeded, EngineError
from engine.graph.ir import Origin, at_origin
from engine.graph.op import KernelCall
from engine.native.calls import joined
from engine.native.native_call import NativeCall, NativeGuard
from engine.native.runner import Runner
from engine.planning.plan import Step

#: a segment ends where it has so many calls, or takes so long, at a nanosecond a FLOP and a byte that is written
MOST_CALLS: Final = 256
MOST_NANOSECONDS: Final = 5_000_000
#: in the place of calls that are bound with each run
_LATER: Final[KernelCall] = (lambda: None, ())


@dataclass(eq=False, slots=True)
class StepCalls:
    """A step of a segment. Its calls stay as they are; or are `renewed` with each run, and then made as one."""

    calls: Sequence[KernelCall]
    origin: Origin | None
    nanoseconds: int
    renewed: bool = False
    #: where a renewed one is among the calls of its segment
    position: int = 0


class Segment:
    """Steps in their order, and what is called for them: regions, and calls with the node that each comes from."""

    __slots__ = ("_members", "_origins", "calls", "size")

    def __init__(self) -> None:
        self._members: list[StepCalls] = []
        #: calls of the steps
        self.size = 0
        #: empty until all steps are there
        self.calls: list[KernelCall] = []
        self._origins: list[Origin | None] = []

    def add(self, member: StepCalls) -> None:
        """Append a step, whose calls may be filled in later."""
        self._members.append(member)
        self.size += max(1, len(member.calls))

    def renew(self, member: StepCalls, calls: Sequence[KernelCall] = (_LATER,)) -> None:
        """Put calls in the place of a renewed step's; by default, let go of them."""
        self.calls[member.position] = joined(calls)

    def gather(self, runner: Runner | None, watch: RegionWatch) -> None:
        """Make regions of neighbouring native calls, if there is a runner for them: no step is added any more."""

        def is_native(each: tuple[StepCalls, KernelCall]) -> bool:
            member, (function, _) = each
            return runner is not None and not member.renewed and isinstance(function, NativeCall | NativeGuard)

        for are_native, flat in groupby(self._flat(), is_native):
            if are_native:
                assert runner is not None
                native = [*flat]
                steps = [
                    NativeStep(cast("NativeCall", call[0]), member.nanoseconds, member.origin)
                    for member, call in native
                ]
                # The nodes that the calls come from, in their order, each once.
                origins = [member.origin for member, _ in native if member.origin is not None]
                nodes = dict.fromkeys(f"{origin.op} (node {origin.node})" for origin in origins)
                self._append((Region(runner, watch, steps, place_named(", ".join(nodes))), ()), None)
            else:
                for member, call in flat:
                    member.position = len(self.calls)
                    self._append(call, member.origin)
        for member in self._members:
            member.calls = ()
        self._members.clear()

    def make(self) -> None:
        """Make the calls. Raises what a kernel finds in its data, with its node."""
        remaining = iter(self.calls)
        try:
            for function, arguments in remaining:
                function(*arguments)
        except DeadlineExceeded:
            raise  # the fault of no node
        except EngineError as error:
            origin = self._origins[len(self.calls) - length_hint(remaining) - 1]
            raise at_origin(error, origin) from None

    def _flat(self) -> Iterator[tuple[StepCalls, KernelCall]]:
        for member in self._members:
            calls = (joined(member.calls),) if member.renewed else member.calls
            yield from ((member, call) for call in calls)

    def _append(self, call: KernelCall, origin: Origin | None) -> None:
        self.calls.append(call)
        self._origins.append(origin)


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

    def add(self, step: Step, calls: Sequence[KernelCall] = ()) -> tuple[Segment, StepCalls]:
        """Append a step with its calls; without, they are to be filled in before the segment is gathered."""
        if self._turn is None and step.origin is not None and step.origin.backward:
            self._turn, self._left = len(self), 0
        if self._left <= 0 or self[-1].size >= MOST_CALLS:
            self.append(Segment())
            self._left = MOST_NANOSECONDS
        nanoseconds = step.flops + step.types[0].nbytes * len(step.types)
        self._left -= nanoseconds
        member = StepCalls(calls, step.origin, nanoseconds)
        self[-1].add(member)
        return self[-1], member
