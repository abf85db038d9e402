"""Lifetimes of a plan's memory: the part that stays from run to run, and the part that comes and goes with each."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from engine.oplib.source import Source
from engine.planning.plan import Plan, Step

#: what is copied is smaller: beyond it, binding a few calls anew is cheaper
SMALL_BYTES: Final = 1 << 16
#: copies and constants may take so much beside what was planned
BESIDE_BYTES: Final = 1 << 18


class Lasting(Enum):
    """Time for which a step's arrays are the same: for good, until a result is handed out for good, or for one run."""

    ALWAYS = 0
    UNTIL_KEPT = 1
    ONE_RUN = 2


class Root(NamedTuple):
    """Owner of memory: a slot, and which of its results it is, where it has several."""

    slot: int
    which: int


class Lifetimes:
    """Feeds that are copied in, steps that are constants made once, and buffers that are handed out.

    `copied` and `constant` are slots: of feeds, and of results that no result of the plan looks at. `handed` are the
    buffers that go to the caller as they are; smaller kept results are copied out. `beside` counts the bytes of all
    copies, and of constants that are not the plan's own tensors. `roots` say what owns the results' memory, `passing`
    are the slots of the feeds that are not copied and, once `lasting` has seen all steps, of views of them.
    """

    def __init__(self, plan: Plan) -> None:
        self.beside = 0
        self.roots = roots_of(plan)
        types, kept = plan.feed_types, {root.slot for root in self.roots}
        self.copied = {slot for feed, slot in plan.feeds.items() if self._takes(types[feed].nbytes)}
        self.handed = {k for k, nbytes in enumerate(plan.buffers) if k and not self._takes(nbytes)}
        sources = [step for step in plan.steps if not step.operands and step.result not in kept]
        self.constant = {
            step.result
            for step in sources
            if isinstance(step.op, Source) and ("value" in step.attrs or self._takes(step.types[0].nbytes))
        }
        self.passing = {slot for slot in plan.feeds.values() if slot not in self.copied}
        self._kept_at = {step.result: step.places for step in plan.steps if step.result in kept}
        self._lent: set[int] = set()

    def lasting(self, step: Step) -> Lasting:
        """How long the arrays of a step last; asked of all steps in their order."""
        if not (self.passing or self.handed):
            return Lasting.ALWAYS
        reads_fed = not self.passing.isdisjoint(step.operands)
        reads_lent = not self._lent.isdisjoint(step.operands)
        if reads_fed and not step.places:
            self.passing.add(step.result)
        if self.is_handed(step) or (reads_lent and not step.places):
            self._lent.add(step.result)
        if reads_fed:
            return Lasting.ONE_RUN
        return Lasting.UNTIL_KEPT if reads_lent or step.result in self._lent else Lasting.ALWAYS

    def is_handed(self, step: Step) -> bool:
        """Whether a step writes to memory that is handed out."""
        return bool(self.handed) and any(place.buffer in self.handed for place in step.places)

    def is_copied_out(self, k: int) -> bool:
        """Whether the k-th result lies in memory that serves again. It may come of a step that hands out others."""
        slot, which = self.roots[k]
        return self._kept_at[slot][which].buffer not in self.handed

    def _takes(self, nbytes: int) -> bool:
        fits = nbytes < SMALL_BYTES and self.beside + nbytes <= BESIDE_BYTES
        self.beside += nbytes if fits else 0
        return fits


def roots_of(plan: Plan) -> list[Root]:
    """What each result looks at, or is itself."""
    seen = {step.result: Root(step.operands[0], step.attrs.get("index", 0)) for step in plan.steps if not step.places}
    roots = list[Root]()
    for slot in plan.results:
        root = Root(slot, 0)
        # Several results are read through `get_output` alone: only the last look can be at one of them.
        while root.slot in seen:
            root = seen[root.slot]
        roots.append(root)
    return roots
