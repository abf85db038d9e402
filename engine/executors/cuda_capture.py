"""Calls in a row on a card: recorded once as a graph of CUDA, and launched again by one call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from engine.graph.errors import EngineError
from engine.graph.ir import at_origin
from engine.graph.op import KernelCall
from engine.planning.plan import Step

_logger = logging.getLogger("gradserve.kernels")


class CudaCall(NamedTuple):
    """A call, the step that it is part of, and whether what it launches may be recorded."""

    number: int
    step: Step
    call: KernelCall
    is_captured: bool

    def beside(self, function: Callable[[], None]) -> CudaCall:
        """A call before or behind this one, as of its step, and recorded where this one is."""
        return self._replace(call=(function, ()))


class CudaRecorder:
    """Recorder of calls, whose memory stays theirs: what they allocate comes of a pool that lives as long as graphs.

    Graphs of one recorder are launched one after the other, so that they share it.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._pool = cupy.cuda.MemoryPool()
        self._pool.set_limit(size=cupy.get_default_memory_pool().get_limit())
        #: what the pool has taken
        self.nbytes = 0

    def record(self, make: Callable[[], None]) -> Callable[[], None]:
        """What `make` launches, as one launch on the current stream. Raises what CUDA has against it."""
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with self._cupy.cuda.using_allocator(self._pool.malloc), stream:
            stream.begin_capture()
            try:
                make()
            except BaseException:
                self._abandon(stream)
                raise
            finally:
                self.nbytes = int(self._pool.total_bytes())
            graph = stream.end_capture()
        launch: Callable[[], None] = graph.launch
        return launch

    def _abandon(self, stream: Any) -> None:
        """End a recording that has failed: CUDA says so once more."""
        try:
            stream.end_capture()
        except self._cupy.cuda.runtime.CUDARuntimeError as error:
            _logger.debug("the end of a recording that failed: %s", error)


class CudaSegment:
    """Calls in their order. What of them can be recorded is, after a first run, which makes all ready."""

    def __init__(self, calls: Sequence[CudaCall], recorder: CudaRecorder, enter: Callable[[int], None]) -> None:
        """`enter` is told the number of the step whose calls come next."""
        self._calls, self._recorder, self._enter = calls, recorder, enter
        self._may_be_recorded = all(call.is_captured for call in calls)
        self._has_run = False
        self._made = 0
        self._launches: list[Callable[[], None]] = []

    @property
    def launches(self) -> int:
        """How many it takes by now; 0 where nothing is recorded."""
        return len(self._launches)

    def launch(self) -> None:
        """Launch it. Raises what an op finds in shapes and on the host, with its node."""
        if self._has_run and self._may_be_recorded and not self._launches:
            self._launches = self._recorded(self._calls)
        for launch in self._launches:
            launch()
        if not self._launches:
            self._make(self._calls)
        self._has_run = True

    def _recorded(self, calls: Sequence[CudaCall]) -> list[Callable[[], None]]:
        """As few launches as can be: around calls of which CUDA, or CuPy, says that no graph can hold them."""
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
    """The calls in segments, as long as can be: of such as may be recorded, and of such as may not."""
    segments: list[list[CudaCall]] = []
    for call in calls:
        if not segments or segments[-1][-1].is_captured != call.is_captured:
            segments.append([])
        segments[-1].append(call)
    return [CudaSegment(segment, recorder, enter) for segment in segments]
