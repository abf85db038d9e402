"""Prepared plan on a GPU: its own memory and the launches bound to it, recorded as CUDA graphs.

The first run makes the calls one by one, so that libraries load and allocate what they need. The second run records
each segment of calls as a CUDA graph, and later runs take a few graph launches. A recording contains addresses, so a
plan has up to MAX_VARIANTS variants, each bound to the addresses of its feeds. For feeds on the host, small feeds,
flags and results are copied in one exchange (`engine.cuda.transfers`), whose addresses are fixed:

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
from engine.cuda.transfers import CudaFlags, Exchange, ExchangedFlags, PinnedMemory, choose_exchanged
from engine.ir.errors import EngineError
from engine.ir.graph import locate_error
from engine.ir.op import Array, KernelCall, View
from engine.ir.run_context import NO_DEADLINE, Deadline
from engine.ir.run_report import IEEE, Precision, coarsest
from engine.ir.tensor_type import HostArray
from engine.ops.common.numerics import NullaryOp
from engine.ops.index.indices import INDEX_ERRORS
from engine.runtime.interpreter import Buffer, Executor, ReadyPlan, checked_feed
from engine.runtime.memory_layout import memory_owners
from engine.runtime.prepared_plan import CALL_BYTES, binding_into

#: maximum number of variants of a plan, each for a set of addresses
MAX_VARIANTS: Final = 3
#: number of variants made after which feeds are copied to fixed addresses
MAX_UNCOPIED_VARIANTS: Final = 12

_logger = logging.getLogger("gradserve.kernels")

#: feeds in the exchange, None without an exchange, and the addresses of the other feeds
_Key = tuple[tuple[Hashable, ...] | None, tuple[int, ...]]


class CudaCall(NamedTuple):
    """Call with its step number and step, and whether its launches may be recorded."""

    number: int
    step: Step
    call: KernelCall
    is_captured: bool

    def with_function(self, function: Callable[[], None]) -> CudaCall:
        """Return a call of `function` for the same step, recorded if this one may be."""
        return self._replace(call=(function, ()))


class CudaRecorder:
    """Recorder of calls as CUDA graphs. Memory that they allocate comes from a pool that lives as long as the graphs.

    Graphs of one recorder are launched one after the other and share the pool.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._pool = cupy.cuda.MemoryPool()
        self._pool.set_limit(size=cupy.get_default_memory_pool().get_limit())
        #: bytes of the pool
        self.nbytes = 0

    def record(self, make: Callable[[], None]) -> Callable[[], None]:
        """Record the launches of `make`, and return a function that launches them on the current stream.

        Raises the errors of CUDA.
        """
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with self._cupy.cuda.using_allocator(self._pool.malloc), stream:
            stream.begin_capture()
            try:
                make()
            except BaseException:
                try:
                    stream.end_capture()
                except self._cupy.cuda.runtime.CUDARuntimeError as error:  # CUDA reports the same failure again
                    _logger.debug("the end of a recording that failed: %s", error)
                raise
            finally:
                self.nbytes = int(self._pool.total_bytes())
            graph = stream.end_capture()
        launch: Callable[[], None] = graph.launch
        return launch


class CudaSegment:
    """Consecutive calls. After a first run, in which libraries initialise, they are recorded if possible."""

    def __init__(self, calls: Sequence[CudaCall], recorder: CudaRecorder, enter: Callable[[int], None]) -> None:
        """`enter` is called with the number of a step before its calls."""
        self._calls, self._recorder, self._enter = calls, recorder, enter
        self._may_be_recorded = all(call.is_captured for call in calls)
        self._is_warm = False
        self._position = 0
        self._launches: list[Callable[[], None]] = []

    @property
    def launches(self) -> int:
        """Number of its launches; 0 if nothing is recorded."""
        return len(self._launches)

    def launch(self) -> None:
        """Make or launch the calls. Raises the errors of ops, with the origin of the node."""
        if self._is_warm and self._may_be_recorded and not self._launches:
            self._launches = self._record_segments(self._calls)
        for launch in self._launches:
            launch()
        if not self._launches:
            self._make(self._calls)
        self._is_warm = True

    def _record_segments(self, calls: Sequence[CudaCall]) -> list[Callable[[], None]]:
        """Record as few launches as possible, around the calls that CUDA or CuPy refuses to record."""
        launches: list[Callable[[], None]] = []
        while calls:
            try:
                return [*launches, self._recorder.record(partial(self._make, calls))]
            except Exception:
                _logger.debug("a call was not recorded", exc_info=True)
                # The call at `_position` failed. Record the calls before it, and make it directly from now on; then
                # try the calls after it.
                succeeded = min(self._position, len(calls) - 1)
                launches += [self._recorder.record(partial(self._make, calls[:succeeded]))] if succeeded else []
                launches.append(partial(self._make, calls[succeeded : succeeded + 1]))
                calls = calls[succeeded + 1 :]
        return launches

    def _make(self, calls: Sequence[CudaCall]) -> None:
        for self._position, (number, step, (function, arguments), _) in enumerate(calls):
            self._enter(number)
            try:
                function(*arguments)
            except EngineError as error:
                raise locate_error(error, step.origin) from None


def in_segments(calls: Sequence[CudaCall], recorder: CudaRecorder, enter: Callable[[int], None]) -> list[CudaSegment]:
    """Split calls into segments of calls that may be recorded and calls that may not."""
    segments: list[list[CudaCall]] = []
    for call in calls:
        if not segments or segments[-1][-1].is_captured != call.is_captured:
            segments.append([])
        segments[-1].append(call)
    return [CudaSegment(segment, recorder, enter) for segment in segments]


class KernelOutOfRange(Exception):
    """A kernel got an argument outside the range of its formula: the plan has to run step by step."""


class CudaPreparedPlan:
    """Plan bound to its own memory, used by one thread at a time. After a run it refers to neither feeds nor plan.

    A variant is reused if feeds lie at its addresses and nobody holds its results. The same arrays do, and often new
    ones, since the pool hands out freed memory again.
    """

    def __init__(
        self, plan: Plan, executor: Executor, binder: CudaBinder, workspace: Array, pinned: PinnedMemory
    ) -> None:
        """`workspace` is the worker's; a plan whose kernels need more allocates its own. `pinned` is for exchanges."""
        self._pinned = pinned
        self._executor, self._binder, self._steps = executor, binder, plan.steps
        self._feeds, self._feed_types, self._slots = plan.feeds, plan.feed_types, plan.slots
        self._results, self._types = plan.results, plan.result_types
        feeds, roots = {slot: feed for feed, slot in plan.feeds.items()}, memory_owners(plan)
        #: results that are feeds or reshaped feeds
        self._borrowed = {k: feeds[roots[k].slot] for k in plan.results_in_feeds}
        self._result_buffers = plan.buffers[1:]
        self._exchanged_buffers = choose_exchanged(dict(enumerate(self._result_buffers)))
        self._arena = [executor.allocate(nbytes) for nbytes in plan.buffers[:1]]
        needed = max(map(binder.workspace, plan.steps), default=0)
        own_bytes = needed if needed > workspace.nbytes else 0
        self._context = executor.context(workspace=executor.xp.empty(own_bytes, "uint8") if own_bytes else workspace)
        self._inner: dict[Plan, ReadyPlan] = {}
        self._context.bind_plan = binding_into(self._inner, executor, binder)
        #: precision allowed for float32 operands of products and convolutions, and the lowest precision used
        self._precision: Precision = plan.precision
        self._lowest_precision: Precision = IEEE
        self._flags = CudaFlags(executor.xp, plan.steps)
        self._constants: dict[int, Array] = {}
        self._variants: list[_Variant] = []
        self._variants_made = 0
        self._copies: dict[Hashable, Array] = {}
        #: feeds on the host → those of them in the exchange
        self._exchanged_by_host_feeds: dict[tuple[Hashable, ...], tuple[Hashable, ...]] = {}
        self._fixed_bytes = sum(plan.buffers[:1]) + own_bytes
        self._variant_bytes = sum(self._result_buffers) + CALL_BYTES * len(self._steps)

    @property
    def nbytes(self) -> int:
        """Bytes on the GPU, including its variants and the inner plans that it runs."""
        inner = sum([ready.nbytes for ready in self._inner.values()])
        return self._fixed_bytes + inner + sum([self._variant_bytes + variant.nbytes for variant in self._variants])

    def run(self, feeds: Mapping[Hashable, Array], deadline: Deadline = NO_DEADLINE) -> list[Array]:
        """Run the plan like `Executor.execute`. It can be called again after an error. Raises KernelOutOfRange."""
        on_gpu = self._at_fixed_addresses(self._fed(feeds))  # keeps copies alive until the run ends
        variant = self._variant(on_gpu)
        self._launch(variant, deadline)
        self._end(variant, deadline)
        results = variant.take_results(self._executor.xp)
        for k, feed in self._borrowed.items():
            results[k] = feeds[feed].reshape(self._types[k].shape)
        return results

    def run_from_host(
        self,
        feeds: Mapping[Hashable, HostArray | Array],
        copy: Callable[[HostArray], Array],
        deadline: Deadline = NO_DEADLINE,
    ) -> list[HostArray]:
        """Run the plan like `Executor.run`, on feeds on the host or GPU. It can be called again after an error.

        Transfers of small feeds and results are recorded. `copy` copies a large feed to the GPU; the copy may be in
        progress until this method returns. Raises KernelOutOfRange, NoPinnedMemory and PinnedMemoryFull.
        """
        xp, checked_feeds = self._executor.xp, self._fed(feeds)
        exchanged = self._exchanged_feeds(checked_feeds)
        remaining = [feed for feed in checked_feeds if feed not in exchanged]
        try:
            on_gpu = {feed: x if isinstance(x := checked_feeds[feed], xp.ndarray) else copy(x) for feed in remaining}
            variant = self._variant(self._at_fixed_addresses(on_gpu), exchanged)
            variant.put(checked_feeds)
            self._launch(variant, deadline)
        finally:  # also after an error: running kernels read the feeds
            xp.cuda.get_current_stream().synchronize()
        self._end(variant, deadline)
        results: list[HostArray] = variant.read_results(xp, self._borrowed)
        for k, feed in self._borrowed.items():
            results[k] = self._host_view(k, checked_feeds[feed])
        return results

    def _fed(self, feeds: Mapping[Hashable, Array]) -> dict[Hashable, Array]:
        return {feed: checked_feed(feeds, feed, planned) for feed, planned in self._feed_types.items()}

    def _exchanged_feeds(self, feeds: Mapping[Hashable, Array]) -> tuple[Hashable, ...]:
        """Choose the feeds for an exchange: small ones on the host."""
        on_card = self._executor.xp.ndarray
        on_host = tuple(feed for feed, array in feeds.items() if not isinstance(array, on_card))
        if on_host not in self._exchanged_by_host_feeds:
            self._exchanged_by_host_feeds[on_host] = (
                *choose_exchanged({feed: self._feed_types[feed].nbytes for feed in on_host}),
            )
        return self._exchanged_by_host_feeds[on_host]

    def _at_fixed_addresses(self, feeds: Mapping[Hashable, Array]) -> dict[Hashable, Array]:
        """Return the feeds, copied to fixed addresses if too many variants were made."""
        if self._variants_made <= MAX_UNCOPIED_VARIANTS:
            return dict(feeds)
        for feed, array in feeds.items():
            if feed not in self._copies:
                self._copies[feed] = self._executor.xp.empty(array.shape, array.dtype)
            self._copies[feed][...] = array
        return {feed: self._copies[feed] for feed in feeds}

    def _launch(self, variant: _Variant, deadline: Deadline) -> None:
        token = INDEX_ERRORS.set(variant.flags)
        self._context.deadline = deadline
        try:
            with np.errstate(all="ignore"):
                variant.flags.begin()
                for segment in variant.segments:
                    deadline.check()
                    segment.launch()
        finally:
            INDEX_ERRORS.reset(token)
            self._context.deadline = NO_DEADLINE

    def _end(self, variant: _Variant, deadline: Deadline) -> None:
        """Check flags and deadline. Raises the errors that kernels have found in the data."""
        if not variant.flags.end():
            raise KernelOutOfRange
        deadline.check()
        deadline.record_precision(self._lowest_precision)

    def _host_view(self, k: int, feed: HostArray | Array) -> HostArray:
        """Return the k-th result, which is a feed, as a read-only array on the host."""
        xp = self._executor.xp
        on_host: HostArray = xp.asnumpy(feed) if isinstance(feed, xp.ndarray) else feed
        view = on_host.reshape(self._types[k].shape).view()
        view.flags.writeable = False
        return view

    def _variant(self, feeds: Mapping[Hashable, Array], exchanged: tuple[Hashable, ...] | None = None) -> _Variant:
        """Find or create the variant for these feeds on the GPU, with an exchange for the feeds in `exchanged`."""
        key = exchanged, tuple(array.data.ptr for array in feeds.values())
        for variant in self._variants:
            if variant.key == key and variant.is_free():
                return variant
        # Drop the oldest variants; a recording keeps its memory for as long as it exists.
        del self._variants[: max(0, len(self._variants) + 1 - MAX_VARIANTS)]
        exchange = None if exchanged is None else self._exchange(exchanged)
        self._variants_made += 1
        self._variants.append(self._new_variant(key, feeds, exchange))
        return self._variants[-1]

    def _exchange(self, exchanged: Sequence[Hashable]) -> Exchange:
        fed = {feed: self._feed_types[feed] for feed in exchanged}
        results = [self._result_buffers[k] for k in self._exchanged_buffers]
        return Exchange(self._executor.xp, self._pinned, fed, max(1, len(self._steps)), results)

    def _new_variant(self, key: _Key, feeds: Mapping[Hashable, Array], exchange: Exchange | None) -> _Variant:
        xp = self._executor.xp
        on_gpu = feeds if exchange is None else {**feeds, **exchange.feeds}
        flags = self._flags if exchange is None else ExchangedFlags(xp, self._steps, exchange)
        fetched = {} if exchange is None else dict(zip(self._exchanged_buffers, exchange.buffers, strict=True))
        buffers_by_result = {
            k: self._executor.allocate(nbytes) for k, nbytes in enumerate(self._result_buffers) if k not in fetched
        }
        buffers = [*self._arena, *((fetched | buffers_by_result)[k] for k in range(len(self._result_buffers)))]
        slots: list[Array] = [None] * self._slots
        for feed, slot in self._feeds.items():
            slots[slot] = _borrowed_view(xp, on_gpu[feed])
        calls: list[CudaCall] = []
        for number, step in enumerate(self._steps):
            calls += self._bind_step(number, step, slots, buffers, flags)
        if exchange is not None and calls:
            # Record the transfers together with the first and the last calls, so that a run is one launch.
            calls.insert(0, calls[0].with_function(exchange.send))
            calls.append(calls[-1].with_function(exchange.fetch))
        recorder, results = CudaRecorder(xp), [slots[slot] for slot in self._results]
        segments = in_segments(calls, recorder, flags.enter)
        return _Variant(key, recorder, segments, results, [*buffers_by_result.values()], flags, exchange)

    def _bind_step(
        self, number: int, step: Step, slots: list[Array], buffers: Sequence[Buffer], flags: CudaFlags
    ) -> list[CudaCall]:
        operands = [slots[i] for i in step.operands]
        if not step.places and isinstance(step.op, View):
            slots[step.result] = step.op.view(self._executor.xp, operands[0], **step.attrs)
            return []
        if isinstance(step.op, NullaryOp) and step.result not in self._results:
            if step.result not in self._constants:
                self._constants[step.result] = step.op.tensor(self._context, step.types[0], **step.attrs)
            slots[step.result] = self._constants[step.result]
            return []
        out = slots[step.result] = self._executor.result(step, buffers)
        address = flags.address(number)
        launches = self._binder.launches(self._context, step, operands, out, address, self._precision)
        self._lowest_precision = coarsest(self._lowest_precision, launches.precision)
        if launches.notes:
            flags.watch()
        return [CudaCall(number, step, call, launches.is_captured) for call in launches.calls]


class _Variant:
    """Plan bound to the feeds and exchange of its `key`, with memory for its results.

    Every CuPy array references the owner of its memory, so the owners' reference counts show whether somebody holds a
    result. With an exchange, results are copied to the host, and nobody holds any.
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
        self._fetched = [None if exchange is None else exchange.host_array(array) for array in results]
        self._exchange_bytes = 0 if exchange is None else exchange.nbytes
        self._idle_references = self._references()

    @property
    def nbytes(self) -> int:
        return self.recorder.nbytes + self._exchange_bytes

    def is_free(self) -> bool:
        # As many references as before results were handed out: the caller has dropped them all.
        return self._exchange is not None or self._references() == self._idle_references

    def put(self, feeds: Mapping[Hashable, HostArray]) -> None:
        assert self._exchange is not None
        self._exchange.put(feeds)

    def take_results(self, xp: Any) -> list[Array]:
        """Return new arrays on the memory of the results, so that reference counts show when the caller drops them."""
        self._idle_references = self._references()
        return [xp.ndarray(array.shape, array.dtype, array.data + 0) for array in self._results]

    def read_results(self, xp: Any, skipped: Container[int]) -> list[Any]:
        """Copy results to the host, after the stream was synchronized; None at the positions in `skipped`."""
        results = enumerate(zip(self._results, self._fetched, strict=True))
        return [
            None if k in skipped else xp.asnumpy(x) if host_array is None else host_array.copy()
            for k, (x, host_array) in results
        ]

    def _references(self) -> list[int]:
        return [sys.getrefcount(memory) for memory in self._memory]


def _borrowed_view(xp: Any, array: Array) -> Array:
    """Return an array on the same memory that does not keep it alive. An array without elements has no memory."""
    if not array.size:
        return array
    memory = xp.cuda.UnownedMemory(array.data.ptr, array.nbytes, None)
    return xp.ndarray(array.shape, array.dtype, xp.cuda.MemoryPointer(memory, 0))
