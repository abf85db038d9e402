"""Memory layout of prepared plans and loop bodies: which arrays stay where they are, and which move.

Arrays of a plan last from run to run, or come and go with each run (`Lifetimes`). Results of a loop body move from step
to step (`BodyLayout`). Until a loop says where they lie, they have addresses at which there is no memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from engine.codegen.native.native_call import MOST_AXES, reach
from engine.compiler.plan import Plan, Step
from engine.ir.op import View
from engine.ir.run_context import ALIGNMENT, aligned
from engine.ir.tensor_type import HostArray, Strided, TensorType
from engine.ops.common.numerics import Source
from engine.runtime.binding import Binder

#: feeds and results below this size are copied; for larger ones, binding a few calls anew is cheaper
SMALL_BYTES: Final = 1 << 16
#: bytes that copies and constants may take beside what was planned
BESIDE_BYTES: Final = 1 << 18
#: addresses beyond all that a process has: of what moves, of what is only measured, and of constants in a measurement
_NO_MEMORY, _MEASURED, _STATED = 1 << 60, 1 << 59, 1 << 58


class Lasting(Enum):
    """How long a step's arrays stay the same: for good, until somebody keeps a result, or for one run."""

    ALWAYS = 0
    UNTIL_KEPT = 1
    ONE_RUN = 2


class Root(NamedTuple):
    """Owner of memory: a slot, and the number of the result in it."""

    slot: int
    which: int


class Lifetimes:
    """Feeds that are copied in, steps that are constants made once, and buffers that are handed out.

    `copied` and `constant` are slots: of feeds, and of results that no result of the plan views. `handed` are the
    buffers that go to the caller as they are; smaller kept results are copied out. `beside` counts the bytes of all
    copies, and of constants that are not the plan's own tensors. `roots` own the results' memory. `passing` are the
    slots of the feeds that are not copied and, once `lasting` has seen all steps, of views of them.
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
        """Find how long the arrays of a step last; called for all steps in their order."""
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
        """Whether the k-th result lies in memory that is used again. Its step may hand out other results."""
        slot, which = self.roots[k]
        return self._kept_at[slot][which].buffer not in self.handed

    def _takes(self, nbytes: int) -> bool:
        fits = nbytes < SMALL_BYTES and self.beside + nbytes <= BESIDE_BYTES
        self.beside += nbytes if fits else 0
        return fits


def roots_of(plan: Plan) -> list[Root]:
    """Find the owner of each result's memory: the result itself, or what it views."""
    seen = {step.result: Root(step.operands[0], step.attrs.get("index", 0)) for step in plan.steps if not step.places}
    roots = list[Root]()
    for slot in plan.results:
        root = Root(slot, 0)
        # Several results are read through `get_output` alone: only the last look can be at one of them.
        while root.slot in seen:
            root = seen[root.slot]
        roots.append(root)
    return roots


class _Memory(Protocol):
    def take_bytes(self, nbytes: int) -> Any:
        """Take the next so many bytes."""


class NativeMemory:
    """Memory that is given out piece by piece."""

    def __init__(self, whole: HostArray) -> None:
        self._whole = whole
        self._start = -whole.ctypes.data % ALIGNMENT

    def take_bytes(self, nbytes: int) -> HostArray:
        """Take the next so many bytes."""
        start, self._start = self._start, self._start + aligned(nbytes)
        assert self._start <= len(self._whole) + ALIGNMENT
        return self._whole[start : start + nbytes]


class _Elsewhere:
    """Addresses at which there is no memory, for arrays that are not read before a loop says where they lie."""

    def __init__(self, first: int) -> None:
        self._next = first

    def take_bytes(self, nbytes: int) -> Any:
        address, self._next = self._next, self._next + aligned(max(1, nbytes))
        return memory_at(address, nbytes)


class ConstView(NamedTuple):
    """View of a const that a step reads: the feed, bytes from its first, and an array with the same layout."""

    feed: int
    offset: int
    alike: HostArray


class Laid(NamedTuple):
    """Arrays of the operands and results of a step that computes."""

    operands: list[Any]
    out: Any
    results: Sequence[HostArray]


class BodyLayout:
    """Arrays of all that a body computes, as its steps are put one after the other.

    Results that are not `fixed` move, and so do feeds; the first `consts` feeds stay while a loop runs.
    """

    def __init__(self, plan: Plan, fixed: Sequence[int], consts: int, memory: _Memory) -> None:
        away, moved = _Elsewhere(_NO_MEMORY), _away(plan, fixed)
        self._buffers = [(away if k in moved else memory).take_bytes(nbytes) for k, nbytes in enumerate(plan.buffers)]
        #: arrays of the feeds
        self.fed: dict[Any, HostArray] = {
            feed: array_on(type, away.take_bytes(type.nbytes)) for feed, type in plan.feed_types.items()
        }
        self.slots: list[Any] = [None] * plan.slots
        for feed, slot in plan.feeds.items():
            self.slots[slot] = self.fed[feed]
        #: destinations of results that do not lie in memory of their own
        self.copies = [
            None if owned else array_on(type, (memory if k in fixed else away).take_bytes(type.nbytes))
            for k, (owned, type) in enumerate(zip(_owned(plan), plan.result_types, strict=True))
        ]
        self._consts = consts

    def put(self, step: Step, constant: Callable[[Step], HostArray]) -> Laid | None:
        """Lay out the next step; None for a view, and for a `constant`."""
        operands = [self.slots[i] for i in step.operands]
        if not step.places and isinstance(step.op, View):
            self.slots[step.result] = step.op.view(np, operands[0], **step.attrs)
            return None
        if isinstance(step.op, Source):
            self.slots[step.result] = constant(step)
            return None
        placed = zip(step.types, step.places, strict=True)
        results = [array_on(type, self._buffers[place.buffer], place.offset) for type, place in placed]
        self.slots[step.result] = tuple(results) if step.op.several else results[0]
        return Laid(operands, self.slots[step.result], results)

    def const(self, array: HostArray) -> ConstView | None:
        """Find the const that an array views; None if it views none."""
        address = array.ctypes.data
        for feed, whole in self.fed.items():
            offset = address - whole.ctypes.data
            if feed < self._consts and 0 <= offset < max(1, whole.nbytes):
                return ConstView(feed, offset, array)
        return None

    def is_copied(self, operand: HostArray) -> bool:
        """Whether an operand moves and is no const."""
        return moves(operand) and self.const(operand) is None


class BodyNeeds(NamedTuple):
    """Bytes that a body works in, for good and for one step at a time, and bytes that Python allocates beside."""

    lasting: int
    passing: int
    beside: int

    @property
    def taken(self) -> int:
        """Bytes that the loop gives it."""
        return self.lasting + aligned(self.passing)


def body_needs(binder: Binder, plan: Plan, fixed: Sequence[int], consts: int) -> BodyNeeds:
    """Find what a body takes, before there is memory for it."""
    stated = _Elsewhere(_STATED)
    layout = BodyLayout(plan, fixed, consts, _Elsewhere(_MEASURED))
    passing, stays, beside = 0, 0, 0
    for step in plan.steps:
        passing = max(passing, binder.workspace(step))
        laid = layout.put(step, lambda step: array_on(step.types[0], stated.take_bytes(step.types[0].nbytes)))
        if laid is None or is_made_natively(binder, step, laid):
            continue
        still = [x for x in laid.operands if layout.is_copied(x)] + [y for y in laid.results if moves(y)]
        passing = max(passing, aligned(binder.workspace(step)) + sum(aligned(span(x)) for x in still))
        # bytes that the op allocates itself
        types = [Strided(TensorType.of(x), x.strides) for x in laid.operands]
        works_in = step.op.workspace(step.types if step.op.several else step.types[0], *types, **step.attrs)
        stays, beside = (stays + works_in, beside) if step.op.runs else (stays, max(beside, works_in))
    away, owned = _away(plan, fixed), _owned(plan)
    lasting = [nbytes for k, nbytes in enumerate(plan.buffers) if k not in away]
    lasting += [plan.result_types[k].nbytes for k in fixed if not owned[k]]
    return BodyNeeds(sum(map(aligned, lasting)), passing, stays + beside)


def is_made_natively(binder: Binder, step: Step, laid: Laid) -> bool:
    """Whether the runner can make the step, as far as is known before binding."""
    if binder.workspace(step) or binder.has_kernel(step):
        return True
    copies = step.op.as_copies(np, laid.operands, laid.out, step.attrs)
    return copies is not None and all(len(blocks(*pair)[1]) <= MOST_AXES for pair in copies)


def memory_at(address: int, nbytes: int) -> Any:
    """Make memory to place arrays on, which keep nothing alive."""
    return (ctypes.c_char * max(1, nbytes)).from_address(address)


def array_on(type: TensorType, memory: Any, offset: int = 0) -> HostArray:
    """Place an array on memory."""
    return np.ndarray(type.shape, type.dtype, memory, offset)


def moves(array: HostArray) -> bool:
    """Whether a loop says anew for each step where an array lies."""
    return int(array.ctypes.data) >= _NO_MEMORY


def span(array: HostArray) -> int:
    """Count the bytes from the first of an array to the last, gaps included."""
    return sum(reach(array))


def blocks(place: HostArray, source: HostArray) -> tuple[int, list[tuple[int, int, int]]]:
    """Split a copy into dense blocks: bytes of a block, and axes of blocks: extent, and bytes to the next in each."""
    axes = [axis for axis in zip(place.shape, place.strides, source.strides, strict=True) if axis[0] != 1]
    block = place.itemsize
    while axes and axes[-1][1:] == (block, block):
        block *= axes.pop()[0]
    return block, axes


def _away(plan: Plan, fixed: Sequence[int]) -> set[int]:
    """Find the buffers that lie in the loop's memory: of results that are not `fixed` and own their memory."""
    owned, roots = _owned(plan), roots_of(plan)
    moved = {root for k, root in enumerate(roots) if owned[k] and k not in fixed}
    placed = ((Root(step.result, which), place) for step in plan.steps for which, place in enumerate(step.places))
    return {place.buffer for root, place in placed if root in moved}


def _owned(plan: Plan) -> list[bool]:
    """Whether each result owns its memory: not a view of a feed or constant, and no other result's before it.

    Nor is a buffer its own if something larger lies there before: in a stack, that would reach into the next entry.
    """
    sources = {step.result for step in plan.steps if isinstance(step.op, Source)}
    elsewhere, owned, seen = sources.union(plan.feeds.values()), list[bool](), set[Root]()
    places, reached = {step.result: step.places for step in plan.steps}, _reached(plan)
    for root, type in zip(roots_of(plan), plan.result_types, strict=True):
        is_own = root not in seen and root.slot not in elsewhere
        owned.append(is_own and reached[places[root.slot][root.which].buffer] <= type.nbytes)
        seen.add(root)
    return owned


def _reached(plan: Plan) -> Mapping[int, int]:
    """Find the bytes of each buffer that are ever used."""
    reached: dict[int, int] = {}
    for step in plan.steps:
        for type, place in zip(step.types, step.places, strict=False):
            reached[place.buffer] = max(reached.get(place.buffer, 0), place.offset + type.nbytes)
    return reached
