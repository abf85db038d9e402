"""A plan made ready to run on a card again and again: memory of its own, and all that it launches, bound to it."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.executors.cuda_binding import CudaBinder
from engine.executors.cuda_capture import CudaCall, CudaRecorder, CudaSegment, in_segments
from engine.executors.cuda_flags import CudaFlags
from engine.executors.feeds import fed
from engine.executors.instance_pool import ReadyPlan
from engine.executors.interpreter import Buffer, Executor
from engine.executors.prepared_plan import CALL_BYTES, binding_into
from engine.graph.limits import NO_DEADLINE, Deadline
from engine.graph.op import Array, View
from engine.graph.precision import IEEE, Precision, coarsest
from engine.oplib.index_notes import INDEX_NOTES
from engine.oplib.source import Source
from engine.planning.plan import Plan, Step

#: sets of addresses that a plan is ready for at a time
MOST_VARIANTS: Final = 3
#: sets that were made: from then on, what is fed is copied to where one of them looks
MOST_MADE: Final = 12


class LoopOutOfRange(Exception):
    """An argument for which a kernel has no formula: the plan is to be run by other means."""


class CudaPreparedPlan:
    """A plan on memory of its own, for one thread at a time. It refers to no feed once a run is over, nor to the plan.

    What is recorded has addresses in it. So a plan is bound to where its feeds lie, which callers who feed the same
    arrays again, or new ones in memory that the pool had back, leave as it is; and anew where they lie elsewhere, or
    somebody still holds the results of an earlier run.
    """

    def __init__(self, plan: Plan, executor: Executor, binder: CudaBinder, workspace: Array) -> None:
        """`workspace` is the worker's: one of its own is made where a loop wants more."""
        self._executor, self._binder, self._steps = executor, binder, plan.steps
        self._feeds, self._feed_types, self._slots = plan.feeds, plan.feed_types, plan.slots
        self._results, self._types = plan.results, plan.result_types
        self._borrowed = _borrowed(plan)
        self._kept = plan.buffers[1:]
        self._arena = [executor.allocate(nbytes) for nbytes in plan.buffers[:1]]
        wanted = max(map(binder.workspace, plan.steps), default=0)
        own = wanted if wanted > workspace.nbytes else 0
        self._context = executor.context(workspace=executor.xp.empty(own, "uint8") if own else workspace)
        self._inner: dict[Plan, ReadyPlan] = {}
        self._context.bind_plan = binding_into(self._inner, executor, binder)
        #: how its products and convolutions may read float32, and the coarsest way in which one does
        self._allowed: Precision = plan.precision
        self._read: Precision = IEEE
        self._flags = CudaFlags(executor.xp, plan.steps)
        self._constants: dict[int, Array] = {}
        self._variants: list[_Variant] = []
        self._made = 0
        self._copies: dict[Hashable, Array] = {}
        self._own_bytes = sum(plan.buffers[:1]) + own

    @property
    def nbytes(self) -> int:
        """What keeping it takes on the card, beside the plan: more for each set of addresses, and for what it runs."""
        of_each = sum(self._kept) + CALL_BYTES * len(self._steps)
        inner = sum(ready.nbytes for ready in self._inner.values())
        return self._own_bytes + inner + sum(of_each + variant.recorder.nbytes for variant in self._variants)

    def run(self, feeds: Mapping[Hashable, Array], deadline: Deadline = NO_DEADLINE) -> list[Array]:
        """As `Executor.execute`. After an error it can be called again. Raises LoopOutOfRange."""
        variant = self._variant(self._there(feeds))
        token = INDEX_NOTES.set(self._flags)
        self._context.deadline = deadline
        try:
            with np.errstate(all="ignore"):
                self._flags.begin()
                for segment in variant.segments:
                    deadline.check()
                    segment.launch()
                if not self._flags.end():
                    raise LoopOutOfRange
        finally:
            INDEX_NOTES.reset(token)
            self._context.deadline = NO_DEADLINE
        deadline.check()
        deadline.multiplied(self._read)
        results = variant.hand_out(self._executor.xp)
        for k, feed in self._borrowed.items():
            results[k] = feeds[feed].reshape(self._types[k].shape)
        return results

    def _there(self, feeds: Mapping[Hashable, Array]) -> dict[Hashable, Array]:
        """What is fed, dense, in memory that is read: its own, unless too many were bound to already."""
        xp, found = self._executor.xp, dict[Hashable, Array]()
        for feed in self._feeds:
            array = fed(feeds, feed, self._feed_types[feed])
            if self._made > MOST_MADE:
                if feed not in self._copies:
                    self._copies[feed] = xp.empty(array.shape, array.dtype)
                self._copies[feed][...] = array
                array = self._copies[feed]
            found[feed] = array
        return found

    def _variant(self, feeds: Mapping[Hashable, Array]) -> _Variant:
        addresses = tuple(array.data.ptr for array in feeds.values())
        for variant in self._variants:
            if variant.addresses == addresses and variant.is_free():
                return variant
        self._made += 1
        del self._variants[: max(0, len(self._variants) + 1 - MOST_VARIANTS)]
        self._variants.append(self._new(feeds, addresses))
        return self._variants[-1]

    def _new(self, feeds: Mapping[Hashable, Array], addresses: tuple[int, ...]) -> _Variant:
        xp = self._executor.xp
        buffers = [*self._arena, *map(self._executor.allocate, self._kept)]
        slots: list[Array] = [None] * self._slots
        for feed, slot in self._feeds.items():
            slots[slot] = _looking_at(xp, feeds[feed])
        calls: list[CudaCall] = []
        for number, step in enumerate(self._steps):
            calls += self._bound(number, step, slots, buffers)
        recorder, results = CudaRecorder(xp), [slots[slot] for slot in self._results]
        segments = in_segments(calls, recorder, self._flags.enter)
        return _Variant(addresses, recorder, segments, results, buffers[1:])

    def _bound(self, number: int, step: Step, slots: list[Array], buffers: Sequence[Buffer]) -> list[CudaCall]:
        operands = [slots[i] for i in step.operands]
        if not step.places and isinstance(step.op, View):
            slots[step.result] = step.op.view(self._executor.xp, operands[0], **step.attrs)
            return []
        if isinstance(step.op, Source) and step.result not in self._results:
            if step.result not in self._constants:
                self._constants[step.result] = step.op.tensor(self._context, step.types[0], **step.attrs)
            slots[step.result] = self._constants[step.result]
            return []
        out = slots[step.result] = self._executor.result(step, buffers)
        address = self._flags.address(number)
        found = self._binder.launches(self._context, step, operands, out, address, self._allowed)
        self._read = coarsest(self._read, found.precision)
        if found.notes:
            self._flags.watch()
        return [CudaCall(number, step, call, found.is_captured) for call in found.calls]


class _Variant:
    """A plan on feeds that lie at `addresses`, with memory for its results.

    CuPy makes every array on some memory refer to the object that owns it, so that this one's references tell
    whether there are arrays beside its own.
    """

    def __init__(
        self,
        addresses: tuple[int, ...],
        recorder: CudaRecorder,
        segments: Sequence[CudaSegment],
        results: Sequence[Array],
        buffers: Sequence[Buffer],
    ) -> None:
        self.addresses, self.recorder, self.segments = addresses, recorder, segments
        self._results, self._memory = results, [buffer.mem for buffer in buffers]
        self._own = self._references()

    def is_free(self) -> bool:
        """Whether nobody holds a result of it."""
        return self._references() == self._own

    def hand_out(self, xp: Any) -> list[Array]:
        """The results, as arrays that refer to their memory themselves."""
        self._own = self._references()
        return [xp.ndarray(array.shape, array.dtype, array.data + 0) for array in self._results]

    def _references(self) -> list[int]:
        return [sys.getrefcount(memory) for memory in self._memory]


def _looking_at(xp: Any, array: Array) -> Array:
    """An array in the same memory, which does not keep it; one without elements has none."""
    if not array.size:
        return array
    memory = xp.cuda.UnownedMemory(array.data.ptr, array.nbytes, None)
    return xp.ndarray(array.shape, array.dtype, xp.cuda.MemoryPointer(memory, 0))


def _borrowed(plan: Plan) -> dict[int, Hashable]:
    """The positions of the results that are feeds, or reshapes of one, and which."""
    seen = {step.result: step.operands[0] for step in plan.steps if not step.places}
    feeds = {slot: feed for feed, slot in plan.feeds.items()}
    found: dict[int, Hashable] = {}
    for k in plan.borrowed:
        slot = plan.results[k]
        while slot in seen:
            slot = seen[slot]
        found[k] = feeds[slot]
    return found
