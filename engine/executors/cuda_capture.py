"""Calls in a row on a card: recorded once as a graph of CUDA, and launched again by one call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from engine.executors.segments import at_origin
from engine.graph.errors import EngineError
from engine.graph.op import KernelCall
from engine.planning.plan import Step

_logger = logging.getLogger("gradserve.kernels")


class CudaCall(NamedTuple):
    """A call, and the step that it is part of."""

    number: int
    step: Step
    call: KernelCall


class Recorder:
    """Records calls, whose memory stays theirs: what they allocate comes of a pool that lives as long as the graphs.

    Graphs of one recorder are launched one after the other, so that they share it.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._pool = cupy.cuda.MemoryPool()

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
    """Calls in their order. Where all of them may be recorded, they are after a first run, which makes all ready."""

    def __init__(self, calls: Sequence[CudaCall], recorder: Recorder, enter: Callable[[int], None]) -> None:
        """`enter` is told the number of the step whose calls come next."""
        self._calls, self._recorder, self._enter = calls, recorder, enter
        self._may_be_recorded = all(call.step.op.is_captured for call in calls)
        self._runs = 0
        self._launch: Callable[[], None] | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether it is one launch by now."""
        return self._launch is not None

    def run(self) -> None:
        """Launch it. Raises what an op finds in shapes and on the host, with its node."""
        if self._launch is None and self._may_be_recorded and self._runs:
            self._record()
        if self._launch is None:
            self._make()
        else:
            self._launch()
        self._runs += 1

    def _record(self) -> None:
        try:
            self._launch = self._recorder.record(self._make)
        except Exception:  # whatever an op does that no graph holds: it is done call by call, as before
            _logger.debug("a segment was not recorded", exc_info=True)
            self._may_be_recorded = False

    def _make(self) -> None:
        for number, step, (function, arguments) in self._calls:
            self._enter(number)
            try:
                function(*arguments)
            except EngineError as error:
                raise at_origin(error, step.origin) from None


def in_segments(calls: Sequence[CudaCall], recorder: Recorder, enter: Callable[[int], None]) -> list[CudaSegment]:
    """The calls in segments, as long as can be: of such as may be recorded, and of such as may not."""
    segments: list[list[CudaCall]] = []
    for call in calls:
        if not segments or segments[-1][-1].step.op.is_captured != call.step.op.is_captured:
            segments.append([])
        segments[-1].append(call)
    return [CudaSegment(segment, recorder, enter) for segment in segments]
