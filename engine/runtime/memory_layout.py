"""Memory layout of prepared plans and loop bodies: which arrays stay at their addresses, and which move.

Calls are bound to arrays at fixed addresses, but some arrays change from run to run, or from step to step. `Lifetimes`
classifies the arrays of a prepared plan:

    small feeds       copied to a resident array at each run, so that calls on it stay bound for good
    large feeds       read in place: calls on them are bound again, or pointed to the new array, at each run
    small results     copied out of the plan's memory
    large results     handed out: their buffer is replaced if the caller still holds it at the next run

`BodyLayout` places the arrays of a loop body. Its constants and intermediate values have memory of their own. Feeds and
results move from step to step, and lie in the memory of the loop, which is unknown when the body is bound. They get
addresses in ranges beyond those of any process. Their bytes must never be read there; the addresses only serve to find
the words that the loop has to update (`native_bodies`).

For the same reason, a body can be laid out before there is any memory for it: `body_needs` does so to find the number
of bytes that it takes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from engine.codegen.native.native_call import MOST_AXES, byte_span
from engine.compiler.plan import Plan, Step
from engine.ir.op import View
from engine.ir.run_context import ALIGNMENT, aligned
from engine.ir.tensor_type import HostArray, Strided, TensorType
from engine.ops.common.numerics import NullaryOp
from engine.runtime.binding import Binder

#: bytes below which feeds and results are copied; for larger ones, binding a few calls again is cheaper
SMALL_BYTES: Final = 1 << 16
#: maximum bytes of copies and constants in addition to the planned memory
EXTRA_BYTES: Final = 1 << 18
#: addresses beyond those of any process: for moving arrays, and for memory and constants while sizes are measured
_MOVING, _MEASURED, _STATED = 1 << 60, 1 << 59, 1 << 58


class Lasting(Enum):
    """Lifetime of the arrays of a step: always the same, until the caller keeps a result, or for one run."""

    ALWAYS = 0
    UNTIL_KEPT = 1
    ONE_RUN = 2


class Root(NamedTuple):
    """Owner of memory: a slot, and the index of the result in it."""

    slot: int
    which: int


class Lifetimes:
    """Classification of a plan's arrays by how long they last.

    `copied` are the slots of feeds that are copied in, and `constant` those of steps that are computed once; no result
    is one. `handed_out` are the buffers that go to the caller; smaller outputs are copied out. `extra_bytes` counts the
    bytes of copies and of constants that the plan does not own. `roots` own the memory of the results. `transient` are
    the slots of feeds that are not copied and, once `lasting` has seen all steps, of views of them.
    """

    def __init__(self, plan: Plan) -> None:
        self.extra_bytes = 0
        self.roots = memory_owners(plan)
        types, result_slots = plan.feed_types, {root.slot for root in self.roots}
        self.copied = {slot for feed, slot in plan.feeds.items() if self._reserve(types[feed].nbytes)}
        self.handed_out = {k for k, nbytes in enumerate(plan.buffers) if k and not self._reserve(nbytes)}
        sources = [step for step in plan.steps if not step.operands and step.result not in result_slots]
        self.constant = {
            step.result
            for step in sources
            if isinstance(step.op, NullaryOp) and ("value" in step.attrs or self._reserve(step.types[0].nbytes))
        }
        self.transient = {slot for slot in plan.feeds.values() if slot not in self.copied}
        self._result_places = {step.result: step.places for step in plan.steps if step.result in result_slots}
        self._handed_out_slots: set[int] = set()

    def lasting(self, step: Step) -> Lasting:
        """Return how long the arrays of a step last. Must be called for all steps in order."""
        if not (self.transient or self.handed_out):
            return Lasting.ALWAYS
        # Views propagate both properties to the steps that read them.
        reads_transient = not self.transient.isdisjoint(step.operands)
        reads_handed_out = not self._handed_out_slots.isdisjoint(step.operands)
        if reads_transient and not step.places:
            self.transient.add(step.result)
        if self.is_handed_out(step) or (reads_handed_out and not step.places):
            self._handed_out_slots.add(step.result)
        if reads_transient:
            return Lasting.ONE_RUN
        return Lasting.UNTIL_KEPT if reads_handed_out or step.result in self._handed_out_slots else Lasting.ALWAYS

    def is_handed_out(self, step: Step) -> bool:
        """Whether a step writes to a buffer that is handed out."""
        return bool(self.handed_out) and any(place.buffer in self.handed_out for place in step.places)

    def is_copied_out(self, k: int) -> bool:
        """Whether the memory of the k-th result is reused, so that it has to be copied."""
        slot, which = self.roots[k]
        return self._result_places[slot][which].buffer not in self.handed_out

    def _reserve(self, nbytes: int) -> bool:
        fits = nbytes < SMALL_BYTES and self.extra_bytes + nbytes <= EXTRA_BYTES
        self.extra_bytes += nbytes if fits else 0
        return fits


def memory_owners(plan: Plan) -> list[Root]:
    """Return the owner of each result's memory: the result itself, or what it views."""
    views = {step.result: Root(step.operands[0], step.attrs.get("index", 0)) for step in plan.steps if not step.places}
    roots = list[Root]()
    for slot in plan.results:
        root = Root(slot, 0)
        # Tuples are only read through `get_output`, so only the last view of the chain can have an index.
        while root.slot in views:
            root = views[root.slot]
        roots.append(root)
    return roots


class _Memory(Protocol):
    def take_bytes(self, nbytes: int) -> Any:
        """Return the next `nbytes` bytes."""


class NativeMemory:
    """Memory that is given out piece by piece."""

    def __init__(self, memory: HostArray) -> None:
        self._memory = memory
        self._start = -memory.ctypes.data % ALIGNMENT

    def take_bytes(self, nbytes: int) -> HostArray:
        """Return the next `nbytes` bytes, aligned."""
        start, self._start = self._start, self._start + aligned(nbytes)
        assert self._start <= len(self._memory) + ALIGNMENT
        return self._memory[start : start + nbytes]


class _PlaceholderMemory:
    """Addresses without memory, for arrays that are not read before a loop sets their real addresses."""

    def __init__(self, first: int) -> None:
        self._next = first

    def take_bytes(self, nbytes: int) -> Any:
        address, self._next = self._next, self._next + aligned(max(1, nbytes))
        return memory_at(address, nbytes)


class ConstView(NamedTuple):
    """A view of a const that a step reads: the feed, the offset in bytes, and an array with the same layout."""

    feed: int
    offset: int
    alike: HostArray


class StepArrays(NamedTuple):
    """Arrays of the operands and results of a step."""

    operands: list[Any]
    out: Any
    results: Sequence[HostArray]


class BodyLayout:
    """Arrays of a body, laid out step by step.

    Feeds move, and so do results that are not `fixed`; the first `consts` feeds stay in place while a loop runs.
    """

    def __init__(self, plan: Plan, fixed: Sequence[int], consts: int, memory: _Memory) -> None:
        moving_memory, moving = _PlaceholderMemory(_MOVING), _moving_buffers(plan, fixed)
        self._buffers = [
            (moving_memory if k in moving else memory).take_bytes(nbytes) for k, nbytes in enumerate(plan.buffers)
        ]
        #: arrays of feeds
        self.fed: dict[Any, HostArray] = {
            feed: array_on(type, moving_memory.take_bytes(type.nbytes)) for feed, type in plan.feed_types.items()
        }
        self.slots: list[Any] = [None] * plan.slots
        for feed, slot in plan.feeds.items():
            self.slots[slot] = self.fed[feed]
        #: destinations of results that do not own their memory, and so have to be copied
        self.copies = [
            None if owned else array_on(type, (memory if k in fixed else moving_memory).take_bytes(type.nbytes))
            for k, (owned, type) in enumerate(zip(_results_own_memory(plan), plan.result_types, strict=True))
        ]
        self._consts = consts

    def put(self, step: Step, constant: Callable[[Step], HostArray]) -> StepArrays | None:
        """Lay out the next step; return None for a view, and for a constant, which `constant` makes."""
        operands = [self.slots[i] for i in step.operands]
        if not step.places and isinstance(step.op, View):
            self.slots[step.result] = step.op.view(np, operands[0], **step.attrs)
            return None
        if isinstance(step.op, NullaryOp):
            self.slots[step.result] = constant(step)
            return None
        placed = zip(step.types, step.places, strict=True)
        results = [array_on(type, self._buffers[place.buffer], place.offset) for type, place in placed]
        self.slots[step.result] = tuple(results) if step.op.several else results[0]
        return StepArrays(operands, self.slots[step.result], results)

    def const(self, array: HostArray) -> ConstView | None:
        """Return the const that an array views, or None."""
        address = array.ctypes.data
        for feed, feed_array in self.fed.items():
            offset = address - feed_array.ctypes.data
            if feed < self._consts and 0 <= offset < max(1, feed_array.nbytes):
                return ConstView(feed, offset, array)
        return None

    def is_copied(self, operand: HostArray) -> bool:
        """Whether an operand moves and is not a const, so that a step in Python needs a copy of it."""
        return moves(operand) and self.const(operand) is None


class BodyNeeds(NamedTuple):
    """Bytes of a body: permanent ones, those used within one step, and those that Python allocates in addition."""

    permanent: int
    transient: int
    python_bytes: int

    @property
    def taken(self) -> int:
        """Bytes that the loop allocates for the body."""
        return self.permanent + aligned(self.transient)


def body_needs(binder: Binder, plan: Plan, fixed: Sequence[int], consts: int) -> BodyNeeds:
    """Measure the memory that a body needs, before it is allocated."""
    constants = _PlaceholderMemory(_STATED)
    layout = BodyLayout(plan, fixed, consts, _PlaceholderMemory(_MEASURED))
    transient, nested, temporary = 0, 0, 0
    for step in plan.steps:
        transient = max(transient, binder.workspace(step))
        arrays = layout.put(step, lambda step: array_on(step.types[0], constants.take_bytes(step.types[0].nbytes)))
        if arrays is None or is_made_natively(binder, step, arrays):
            continue
        copies = [x for x in arrays.operands if layout.is_copied(x)] + [y for y in arrays.results if moves(y)]
        transient = max(transient, aligned(binder.workspace(step)) + sum(aligned(span(x)) for x in copies))
        # Bytes that the op's own implementation allocates: nested bodies keep them, other ops free them after the step.
        types = [Strided(TensorType.of(x), x.strides) for x in arrays.operands]
        own_bytes = step.op.workspace(step.types if step.op.several else step.types[0], *types, **step.attrs)
        nested, temporary = (nested + own_bytes, temporary) if step.op.runs else (nested, max(temporary, own_bytes))
    moving, own_memory = _moving_buffers(plan, fixed), _results_own_memory(plan)
    permanent = [nbytes for k, nbytes in enumerate(plan.buffers) if k not in moving]
    permanent += [plan.result_types[k].nbytes for k in fixed if not own_memory[k]]
    return BodyNeeds(sum(map(aligned, permanent)), transient, nested + temporary)


def is_made_natively(binder: Binder, step: Step, arrays: StepArrays) -> bool:
    """Whether the runner can run the step, as far as is known before it is bound."""
    if binder.workspace(step) or binder.has_kernel(step):
        return True
    copies = step.op.as_copies(np, arrays.operands, arrays.out, step.attrs)
    return copies is not None and all(len(blocks(*pair)[1]) <= MOST_AXES for pair in copies)


def memory_at(address: int, nbytes: int) -> Any:
    """Return memory at an address, as a buffer for arrays that do not keep it alive."""
    return (ctypes.c_char * max(1, nbytes)).from_address(address)


def array_on(type: TensorType, memory: Any, offset: int = 0) -> HostArray:
    """Return a dense array on memory."""
    return np.ndarray(type.shape, type.dtype, memory, offset)


def moves(array: HostArray) -> bool:
    """Whether an array has a placeholder address, which a loop sets for each step."""
    return int(array.ctypes.data) >= _MOVING


def span(array: HostArray) -> int:
    """Count the bytes from the first to the last byte of an array, including gaps."""
    return sum(byte_span(array))


def blocks(target: HostArray, source: HostArray) -> tuple[int, list[tuple[int, int, int]]]:
    """Split a copy into dense blocks.

    Return the bytes of a block and the axes of blocks, each with its extent and the strides of `target` and `source`.
    """
    axes = [axis for axis in zip(target.shape, target.strides, source.strides, strict=True) if axis[0] != 1]
    block = target.itemsize
    while axes and axes[-1][1:] == (block, block):
        block *= axes.pop()[0]
    return block, axes


def _moving_buffers(plan: Plan, fixed: Sequence[int]) -> set[int]:
    """Find the buffers that lie in the loop's memory: those of results that own their memory and are not `fixed`."""
    own_memory, roots = _results_own_memory(plan), memory_owners(plan)
    moving = {root for k, root in enumerate(roots) if own_memory[k] and k not in fixed}
    places = ((Root(step.result, which), place) for step in plan.steps for which, place in enumerate(step.places))
    return {place.buffer for root, place in places if root in moving}


def _results_own_memory(plan: Plan) -> list[bool]:
    """Tell for each result whether it owns its memory: it is no view of a feed, constant or earlier result.

    A buffer that a larger value used before does not count as owned: in a stack, that value would overwrite the next
    entry.
    """
    sources = {step.result for step in plan.steps if isinstance(step.op, NullaryOp)}
    foreign_slots, own_memory, seen = sources.union(plan.feeds.values()), list[bool](), set[Root]()
    places, used_bytes = {step.result: step.places for step in plan.steps}, _used_bytes(plan)
    for root, type in zip(memory_owners(plan), plan.result_types, strict=True):
        is_own = root not in seen and root.slot not in foreign_slots
        own_memory.append(is_own and used_bytes[places[root.slot][root.which].buffer] <= type.nbytes)
        seen.add(root)
    return own_memory


def _used_bytes(plan: Plan) -> Mapping[int, int]:
    """Compute the number of bytes of each buffer that are ever used."""
    used_bytes: dict[int, int] = {}
    for step in plan.steps:
        for type, place in zip(step.types, step.places, strict=False):
            used_bytes[place.buffer] = max(used_bytes.get(place.buffer, 0), place.offset + type.nbytes)
    return used_bytes
