"""Prepared plan of a GPU: memory of its own, and launches bound to it, which are recorded as CUDA graphs.

The first run makes the calls one by one, so that libraries load and allocate what they need. The second run records
each segment of calls as a CUDA graph, and from then on a run is a few graph launches. A recording has addresses in it,
so a plan has up to MOST_VARIANTS variants, each bound to the addresses of its feeds. From the host, small feeds, flags
and results travel in one exchange (`engine.cuda.transfers`), whose addresses do not change:

    run_from_host    put feeds in pinned memory → launch [send, steps …, fetch] → synchronize → read results
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from engine.compiler.plan import Plan, Step
from engine.cuda.binding import CudaBinder
from engine.cuda.transfers import CudaFlags, Exchange, ExchangedFlags, PinnedMemory, carried
from engine.ir.errors import EngineError
from engine.ir.graph import at_origin
from engine.ir.op import Array, KernelCall, View
from engine.ir.run_context import NO_DEADLINE, Deadline
from engine.ir.run_report import IEEE, Precision, coarsest
from engine.ir.tensor_type import HostArray
from engine.ops.common.numerics import Source
from engine.ops.index.indices import INDEX_NOTES
from engine.runtime.interpreter import Buffer, Executor, ReadyPlan, fed
from engine.runtime.memory_layout import roots_of
from engine.runtime.prepared_plan import CALL_BYTES, binding_into

#: variants of a plan, each for a set of addresses
MOST_VARIANTS: Final = 3
#: variants that were made, from which on feeds are copied to fixed addresses
MOST_MADE: Final = 12

_logger = logging.getLogger("gradserve.kernels")

#: the feeds that are carried, if there is an exchange, and the addresses of the others
_Key = tuple[tuple[Hashable, ...] | None, tuple[int, ...]]


class CudaCall(NamedTuple):
    """A call, its step, and whether its launches may be recorded."""

    number: int
    step: Step
    call: KernelCall
    is_captured: bool

    def beside(self, function: Callable[[], None]) -> CudaCall:
        """Make a call of the same step, which may be recorded if this one may."""
        return self._replace(call=(function, ()))


class CudaRecorder:
    """Recorder of calls as CUDA graphs. What they allocate comes of a pool that lives as long as the graphs.

    Graphs of one recorder are launched one after the other, and share the pool.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._pool = cupy.cuda.MemoryPool()
        self._pool.set_limit(size=cupy.get_default_memory_pool().get_limit())
        #: bytes of the pool
        self.nbytes = 0

    def record(self, make: Callable[[], None]) -> Callable[[], None]:
        """Record the launches of `make` as one launch on the current stream. Raises what CUDA refuses."""
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with self._cupy.cuda.using_allocator(self._pool.malloc), stream:
            stream.begin_capture()
            try:
                make()
            except BaseException:
                try:
                    stream.end_capture()
                except self._cupy.cuda.runtime.CUDARuntimeError as error:  # CUDA reports the failure once more
                    _logger.debug("the end of a recording that failed: %s", error)
                raise
            finally:
                self.nbytes = int(self._pool.total_bytes())
            graph = stream.end_capture()
        launch: Callable[[], None] = graph.launch
        return launch


class CudaSegment:
    """Calls in their order. After a first run, which makes everything ready, they are recorded if possible."""

    def __init__(self, calls: Sequence[CudaCall], recorder: CudaRecorder, enter: Callable[[int], None]) -> None:
        """`enter` is called with the number of the step whose calls come next."""
        self._calls, self._recorder, self._enter = calls, recorder, enter
        self._may_be_recorded = all(call.is_captured for call in calls)
        self._has_run = False
        self._made = 0
        self._launches: list[Callable[[], None]] = []

    @property
    def launches(self) -> int:
        """Number of its launches; 0 if nothing is recorded."""
        return len(self._launches)

    def launch(self) -> None:
        """Make or launch the calls. Raises what an op finds in shapes and on the host, with its node."""
        if self._has_run and self._may_be_recorded and not self._launches:
            self._launches = self._recorded(self._calls)
        for launch in self._launches:
            launch()
        if not self._launches:
            self._make(self._calls)
        self._has_run = True

    def _recorded(self, calls: Sequence[CudaCall]) -> list[Callable[[], None]]:
        """Record as few launches as possible, around calls that CUDA, or CuPy, refuses to record."""
        launches: list[Callable[[], None]] = []
        while calls:
            try:
                return [*launches, self._recorder.record(partial(self._make, calls))]
            except Exception:
                _logger.debug("a call was not recorded", exc_info=True)
                made = min(self._made, len(calls) - 1)
                launches += [self._recorder.record(partial(self._make, calls[:made]))] if made else []
                launches.append(partial(self._make, calls[made : made + 1]))
                calls = calls[made + 1 :]
        return launches

    def _make(self, calls: Sequence[CudaCall]) -> None:
        for self._made, (number, step, (function, arguments), _) in enumerate(calls):
            self._enter(number)
            try:
                function(*arguments)
            except EngineError as error:
                raise at_origin(error, step.origin) from None


def in_segments(calls: Sequence[CudaCall], recorder: CudaRecorder, enter: Callable[[int], None]) -> list[CudaSegment]:
    """Split calls into segments: those that may be recorded, and those that may not."""
    segments: list[list[CudaCall]] = []
    for call in calls:
        if not segments or segments[-1][-1].is_captured != call.is_captured:
            segments.append([])
        segments[-1].append(call)
    return [CudaSegment(segment, recorder, enter) for segment in segments]


class KernelOutOfRange(Exception):
    """Argument for which a kernel has no formula: the plan has to run step by step."""


class CudaPreparedPlan:
    """A plan on memory of its own, for one thread at a time. It refers to no feed once a run is over, nor to the plan.

    A variant serves again if feeds lie at its addresses, as the same arrays do, and often new ones in memory that the
    pool had back, and if nobody still holds its results.
    """

    def __init__(
        self, plan: Plan, executor: Executor, binder: CudaBinder, workspace: Array, pinned: PinnedMemory
    ) -> None:
        """`workspace` is the worker's; a plan whose kernels need more has its own. `pinned` is for exchanges."""
        self._pinned = pinned
        self._executor, self._binder, self._steps = executor, binder, plan.steps
        self._feeds, self._feed_types, self._slots = plan.feeds, plan.feed_types, plan.slots
        self._results, self._types = plan.results, plan.result_types
        feeds, roots = {slot: feed for feed, slot in plan.feeds.items()}, roots_of(plan)
        #: results that are feeds, or reshapes of one
        self._borrowed = {k: feeds[roots[k].slot] for k in plan.borrowed}
        self._kept = plan.buffers[1:]
        self._kept_small = carried(dict(enumerate(self._kept)))
        self._arena = [executor.allocate(nbytes) for nbytes in plan.buffers[:1]]
        wanted = max(map(binder.workspace, plan.steps), default=0)
        own = wanted if wanted > workspace.nbytes else 0
        self._context = executor.context(workspace=executor.xp.empty(own, "uint8") if own else workspace)
        self._inner: dict[Plan, ReadyPlan] = {}
        self._context.bind_plan = binding_into(self._inner, executor, binder)
        #: how products and convolutions may read float32, and the coarsest way in which one does
        self._allowed: Precision = plan.precision
        self._read: Precision = IEEE
        self._flags = CudaFlags(executor.xp, plan.steps)
        self._constants: dict[int, Array] = {}
        self._variants: list[_Variant] = []
        self._made = 0
        self._copies: dict[Hashable, Array] = {}
        #: feeds on the host → those of them that are carried
        self._carried: dict[tuple[Hashable, ...], tuple[Hashable, ...]] = {}
        self._own_bytes = sum(plan.buffers[:1]) + own
        self._bytes_of_each = sum(self._kept) + CALL_BYTES * len(self._steps)

    @property
    def nbytes(self) -> int:
        """Bytes on the card, with those of its variants, and of the plans that it runs."""
        inner = sum([ready.nbytes for ready in self._inner.values()])
        return self._own_bytes + inner + sum([self._bytes_of_each + variant.nbytes for variant in self._variants])

    def run(self, feeds: Mapping[Hashable, Array], deadline: Deadline = NO_DEADLINE) -> list[Array]:
        """Run the plan, as `Executor.execute` does. After an error it can be called again. Raises KernelOutOfRange."""
        there = self._settled(self._fed(feeds))  # a copy among them is there for as long as it is read
        variant = self._variant(there)
        self._launch(variant, deadline)
        self._end(variant, deadline)
        results = variant.hand_out(self._executor.xp)
        for k, feed in self._borrowed.items():
            results[k] = feeds[feed].reshape(self._types[k].shape)
        return results

    def run_from_host(
        self,
        feeds: Mapping[Hashable, HostArray | Array],
        copied: Callable[[HostArray], Array],
        deadline: Deadline = NO_DEADLINE,
    ) -> list[HostArray]:
        """Run the plan, as `Executor.run` does, on feeds on the host or card. After an error it can be called again.

        Transfers of small feeds and results are recorded. `copied` copies a large feed to the card, which may be under
        way until this returns. Raises KernelOutOfRange, NoPinnedMemory and PinnedMemoryFull.
        """
        xp, given = self._executor.xp, self._fed(feeds)
        carries = self._carries(given)
        others = [feed for feed in given if feed not in carries]
        try:
            there = {feed: x if isinstance(x := given[feed], xp.ndarray) else copied(x) for feed in others}
            variant = self._variant(self._settled(there), carries)
            variant.put(given)
            self._launch(variant, deadline)
        finally:  # after an error, too: what is under way reads what was fed
            xp.cuda.get_current_stream().synchronize()
        self._end(variant, deadline)
        results: list[HostArray] = variant.read_results(xp, self._borrowed)
        for k, feed in self._borrowed.items():
            results[k] = self._seen(k, given[feed])
        return results

    def _fed(self, feeds: Mapping[Hashable, Array]) -> dict[Hashable, Array]:
        return {feed: fed(feeds, feed, planned) for feed, planned in self._feed_types.items()}

    def _carries(self, feeds: Mapping[Hashable, Array]) -> tuple[Hashable, ...]:
        """Choose the feeds that an exchange carries: small ones on the host."""
        on_card = self._executor.xp.ndarray
        on_host = tuple(feed for feed, array in feeds.items() if not isinstance(array, on_card))
        if on_host not in self._carried:
            self._carried[on_host] = (*carried({feed: self._feed_types[feed].nbytes for feed in on_host}),)
        return self._carried[on_host]

    def _settled(self, feeds: Mapping[Hashable, Array]) -> dict[Hashable, Array]:
        """Return feeds on the card, copied to fixed addresses once too many variants were made."""
        if self._made <= MOST_MADE:
            return dict(feeds)
        for feed, array in feeds.items():
            if feed not in self._copies:
                self._copies[feed] = self._executor.xp.empty(array.shape, array.dtype)
            self._copies[feed][...] = array
        return {feed: self._copies[feed] for feed in feeds}

    def _launch(self, variant: _Variant, deadline: Deadline) -> None:
        token = INDEX_NOTES.set(variant.flags)
        self._context.deadline = deadline
        try:
            with np.errstate(all="ignore"):
                variant.flags.begin()
                for segment in variant.segments:
                    deadline.check()
                    segment.launch()
        finally:
            INDEX_NOTES.reset(token)
            self._context.deadline = NO_DEADLINE

    def _end(self, variant: _Variant, deadline: Deadline) -> None:
        """Check flags and deadline. Raises what kernels have found in the data."""
        if not variant.flags.end():
            raise KernelOutOfRange
        deadline.check()
        deadline.multiplied(self._read)

    def _seen(self, k: int, feed: HostArray | Array) -> HostArray:
        """Return the k-th result, which is a feed, on the host and read-only."""
        xp = self._executor.xp
        here: HostArray = xp.asnumpy(feed) if isinstance(feed, xp.ndarray) else feed
        seen = here.reshape(self._types[k].shape).view()
        seen.flags.writeable = False
        return seen

    def _variant(self, feeds: Mapping[Hashable, Array], carries: tuple[Hashable, ...] | None = None) -> _Variant:
        """Find or make the variant for feeds on the card, with an exchange for those that it `carries`."""
        key = carries, tuple(array.data.ptr for array in feeds.values())
        for variant in self._variants:
            if variant.key == key and variant.is_free():
                return variant
        del self._variants[: max(0, len(self._variants) + 1 - MOST_VARIANTS)]
        exchange = None if carries is None else self._exchange(carries)
        self._made += 1
        self._variants.append(self._new(key, feeds, exchange))
        return self._variants[-1]

    def _exchange(self, carries: Sequence[Hashable]) -> Exchange:
        fed = {feed: self._feed_types[feed] for feed in carries}
        results = [self._kept[k] for k in self._kept_small]
        return Exchange(self._executor.xp, self._pinned, fed, max(1, len(self._steps)), results)

    def _new(self, key: _Key, feeds: Mapping[Hashable, Array], exchange: Exchange | None) -> _Variant:
        xp = self._executor.xp
        there = feeds if exchange is None else {**feeds, **exchange.feeds}
        flags = self._flags if exchange is None else ExchangedFlags(xp, self._steps, exchange)
        fetched = {} if exchange is None else dict(zip(self._kept_small, exchange.buffers, strict=True))
        own = {k: self._executor.allocate(nbytes) for k, nbytes in enumerate(self._kept) if k not in fetched}
        buffers = [*self._arena, *((fetched | own)[k] for k in range(len(self._kept)))]
        slots: list[Array] = [None] * self._slots
        for feed, slot in self._feeds.items():
            slots[slot] = _looking_at(xp, there[feed])
        calls: list[CudaCall] = []
        for number, step in enumerate(self._steps):
            calls += self._bound(number, step, slots, buffers, flags)
        if exchange is not None and calls:
            calls.insert(0, calls[0].beside(exchange.send))
            calls.append(calls[-1].beside(exchange.fetch))
        recorder, results = CudaRecorder(xp), [slots[slot] for slot in self._results]
        segments = in_segments(calls, recorder, flags.enter)
        return _Variant(key, recorder, segments, results, [*own.values()], flags, exchange)

    def _bound(
        self, number: int, step: Step, slots: list[Array], buffers: Sequence[Buffer], flags: CudaFlags
    ) -> list[CudaCall]:
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
        address = flags.address(number)
        found = self._binder.launches(self._context, step, operands, out, address, self._allowed)
        self._read = coarsest(self._read, found.precision)
        if found.notes:
            flags.watch()
        return [CudaCall(number, step, call, found.is_captured) for call in found.calls]


class _Variant:
    """A plan bound to feeds at the addresses of `key`, or carried in an exchange, with memory for its results.

    Every CuPy array refers to the owner of its memory, so that the owners' reference counts tell whether somebody holds
    a result. With an exchange, results are copied to the host, and nobody holds any.
    """

    def __init__(
        self,
        key: _Key,
        recorder: CudaRecorder,
        segments: Sequence[CudaSegment],
        results: Sequence[Array],
        buffers: Sequence[Buffer],
        flags: CudaFlags,
        exchange: Exchange | None,
    ) -> None:
        self.key, self.recorder, self.segments, self.flags = key, recorder, segments, flags
        self._results, self._memory, self._exchange = results, [buffer.mem for buffer in buffers], exchange
        self._fetched = [None if exchange is None else exchange.fetched(array) for array in results]
        self._exchanged = 0 if exchange is None else exchange.nbytes
        self._own = self._references()

    @property
    def nbytes(self) -> int:
        return self.recorder.nbytes + self._exchanged

    def is_free(self) -> bool:
        return self._exchange is not None or self._references() == self._own

    def put(self, feeds: Mapping[Hashable, HostArray]) -> None:
        assert self._exchange is not None
        self._exchange.put(feeds)

    def hand_out(self, xp: Any) -> list[Array]:
        """Make arrays of the results that refer to their memory themselves."""
        self._own = self._references()
        return [xp.ndarray(array.shape, array.dtype, array.data + 0) for array in self._results]

    def read_results(self, xp: Any, but: Container[int]) -> list[Any]:
        """Copy results to the host, after the stream has been waited for; None for the positions `but`."""
        found = enumerate(zip(self._results, self._fetched, strict=True))
        return [None if k in but else xp.asnumpy(x) if here is None else here.copy() for k, (x, here) in found]

    def _references(self) -> list[int]:
        return [sys.getrefcount(memory) for memory in self._memory]


def _looking_at(xp: Any, array: Array) -> Array:
    """An array in the same memory, which does not keep it; one without elements has none."""
    if not array.size:
        return array
    memory = xp.cuda.UnownedMemory(array.data.ptr, array.nbytes, None)
    return xp.ndarray(array.shape, array.dtype, xp.cuda.MemoryPointer(memory, 0))
