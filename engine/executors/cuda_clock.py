"""A card's clock for candidates: events on a stream of its own, and memory of the pool, while no run is under way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

from engine.cards.card_runs import CardRuns

#: how long it waits for a run to end
_PATIENCE_SECONDS: Final = 0.1
#: of the memory that the pool may still take, one part in so many is used: a run that begins meanwhile has the rest
_SHARE: Final = 2
#: what lies there: floats of any width that are neither 0 nor infinite
_FILLING: Final = 0x3C
_MILLISECOND: Final = 1e-3


class CudaClock:
    """Clock of the current card, a `CandidateClock` for one thread at a time."""

    def __init__(self, cupy: Any, runs: CardRuns) -> None:
        """What is launched on the card enters `runs`, and is on the stream that is current now."""
        self._cupy, self._runs = cupy, runs
        self._stream_of_runs = cupy.cuda.get_current_stream()
        self._stream: Any = None
        self._begun = 0
        self._in_use = Lock()

    @contextmanager
    def memory(self, sizes: Sequence[int]) -> Iterator[Sequence[int] | None]:
        """Addresses, while the clock's stream is current; None where a run is under way. Raises MemoryError."""
        begun = self._runs.wait_for_none(_PATIENCE_SECONDS)
        if begun is None:
            yield None
            return
        self._begun, cuda = begun, self._cupy.cuda
        if self._stream is None:
            self._stream = cuda.Stream(non_blocking=True)
        ran = self._stream_of_runs.record(cuda.Event(disable_timing=True))
        ran.synchronize()
        with self._in_use, self._stream:
            self._demand_memory(sum(sizes))
            held: list[Any] = []
            try:
                held.extend(map(self._filled, sizes))
                yield [pointer.ptr for pointer in held]
            finally:
                self._stream.synchronize()
                held.clear()
                self._pool().free_all_blocks(self._stream)

    def seconds(self, launch: Callable[[int], object]) -> float | None:
        """What a launch takes on the card; None where a run has begun since there was memory."""
        if self._runs.begun != self._begun:
            return None
        before = self._stream.record()
        launch(self._stream.ptr)
        after = self._stream.record()
        after.synchronize()
        found = _MILLISECOND * float(self._cupy.cuda.get_elapsed_time(before, after))
        return found if self._runs.begun == self._begun else None

    def await_memory(self) -> None:
        """Wait until it has given back its memory, which it does as soon as a run has begun."""
        with self._in_use:
            pass

    def _filled(self, nbytes: int) -> Any:
        found = self._cupy.cuda.alloc(nbytes)
        if nbytes:
            found.memset_async(_FILLING, nbytes)
        return found

    def _demand_memory(self, nbytes: int) -> None:
        pool = self._pool()
        limit = int(pool.get_limit())
        if limit and _SHARE * nbytes > limit - int(pool.total_bytes()):
            raise MemoryError(f"the pool has no room for {nbytes} bytes, and for runs")

    def _pool(self) -> Any:
        return self._cupy.get_default_memory_pool()
