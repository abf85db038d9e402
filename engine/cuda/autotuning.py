"""Autotuning: of a library's algorithms for one computation, the quickest is chosen by timing.

Each computation is timed once, on the GPU itself while no plan runs there, and the choice is stored. `Choices` asks for
the candidates of a computation (`Contest`) when its key is new, and `CudaClock` times them on a stream of its own.
`CardRuns` counts the runs of plans: a timing during which a run began is repeated.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, Lock
from types import TracebackType
from typing import Any, Final, NamedTuple

from engine.codegen.native.machine_code import KernelStore

#: candidates of one computation that are timed
MOST_CANDIDATES: Final = 4
#: timings of each, of which the least counts; a launch before them loads it
_TIMINGS: Final = 5
#: timings of a plan's candidates that may be lost to runs, before the first candidate of each is used
_MOST_LOST: Final = 64
#: part of the first one's time that another candidate has to save: less is chance
_LEAST_SAVED: Final = 0.03
#: seconds that the clock waits for a run to end
_PATIENCE_SECONDS: Final = 0.1
#: of the memory that the pool may still take, the clock uses one part in so many: the rest is for a run that begins
_SHARE: Final = 2
#: filling of that memory: floats of any width that are neither 0 nor infinite
_FILLING: Final = 0x3C
_MILLISECOND: Final = 1e-3

_logger = logging.getLogger("gradserve.kernels")

#: launches something on the stream with this address
StreamLaunch = Callable[[int], object]


class Candidate(NamedTuple):
    """One algorithm: the `code` that it is stored as, and a function that binds it to addresses of its contest's sizes.

    Binding and launch raise if the library refuses it.
    """

    code: bytes
    bind: Callable[[Sequence[int]], StreamLaunch]


class Contest(NamedTuple):
    """Candidates for one computation, in the order of the library's heuristics, and the bytes of each operand."""

    candidates: Sequence[Candidate]
    sizes: Sequence[int]


class Choices:
    """Candidates that were chosen for one plan, by key; without a clock, none, and the first candidate of each is used.

    Unknown keys are timed while this is open. Once closed it stays the same, and so do the plan's bits. A key has all
    that a choice depends on, including card and versions.
    """

    def __init__(
        self, store: KernelStore | None = None, clock: CudaClock | None = None, stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Choices are kept in `store`. Nothing more is timed once `stop` comes true."""
        self._store, self._clock, self._stop = store, clock, stop
        self._chosen: dict[str, bytes | None] = {}
        self._lost = 0

    def close(self) -> None:
        """Choose no more."""
        self._clock = None

    def find(self, key: str, contest: Callable[[], Contest | None]) -> bytes | None:
        """Find the code of the chosen candidate; None is the heuristics' first. A new key is timed by its `contest`."""
        if self._store is not None and self._clock is not None and key not in self._chosen:
            self._chosen[key] = self._store.get(key) or self._won(key, contest, self._store, self._clock)
        return self._chosen.get(key)

    def _won(
        self, key: str, contest: Callable[[], Contest | None], store: KernelStore, clock: CudaClock
    ) -> bytes | None:
        """Time candidates now, and store the quickest; None if that fails for any reason: nothing depends on it."""
        try:
            entered = contest()
            won = None if entered is None else self._quickest(entered, clock)
        except Exception:  # no memory, or a fault of a library's, or of ours
            _logger.debug("candidates were not timed", exc_info=True)
            return None
        if won is not None:
            store.put(key, won.code)
        return won and won.code

    def _quickest(self, contest: Contest, clock: CudaClock) -> Candidate | None:
        candidates = contest.candidates[:MOST_CANDIDATES]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        timings = _Timings(candidates)
        while timings.are_left:
            if self._lost >= _MOST_LOST or self._stop():
                return None
            with clock.memory(contest.sizes) as addresses:
                if addresses is None or not timings.go_on(addresses, clock):
                    self._lost += 1
        return timings.winner()


#: choices if nothing is timed
NO_CHOICES: Final = Choices()


class _Timings:
    """Timings of candidates, which take turns, so that drift affects all alike."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._candidates = candidates
        self._least = dict.fromkeys(range(len(candidates)), math.inf)
        #: the timings to come: number of the candidate, and whether its time counts
        self._turns = [(k, bool(turn)) for turn in range(1 + _TIMINGS) for k in self._least]

    @property
    def are_left(self) -> bool:
        return bool(self._turns)

    def go_on(self, addresses: Sequence[int], clock: CudaClock) -> bool:
        """Make the timings that are left; False if a run came in between, whose timing is made again."""
        launches: dict[int, StreamLaunch] = {}
        while self._turns:
            k, counts = self._turns[0]
            try:
                launch = launches[k] = launches.get(k) or self._candidates[k].bind(addresses)
                seconds = clock.seconds(launch)
            except Exception:  # whatever a library says: this one is out of it
                _logger.debug("a candidate was refused", exc_info=True)
                del self._least[k]
                self._turns = [turn for turn in self._turns if turn[0] != k]
                continue
            if seconds is None:
                return False
            self._turns.pop(0)
            if counts:
                self._least[k] = min(self._least[k], seconds)
        return True

    def winner(self) -> Candidate | None:
        """Return the first, unless another is quicker by more than chance; None if all were refused."""
        if not self._least:
            return None
        first, quickest = next(iter(self._least)), min(self._least, key=self._least.__getitem__)
        saved = self._least[first] - self._least[quickest]
        return self._candidates[quickest if saved > _LEAST_SAVED * self._least[first] else first]


class CardRuns:
    """Runs of plans on a card in this process. Each enters this context while it launches. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ended = Condition(self._lock)
        self._waiting = 0
        self._under_way = 0
        #: number of runs so far
        self.begun = 0

    def __enter__(self) -> None:
        with self._lock:
            self.begun += 1
            self._under_way += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._under_way -= 1
            if self._waiting:
                self._ended.notify_all()

    def wait_for_none(self, seconds: float) -> int | None:
        """Wait until no run is under way, and return the number of `begun` ones; None after so many seconds."""
        with self._lock:
            self._waiting += 1
            is_alone = self._ended.wait_for(lambda: not self._under_way, seconds)
            self._waiting -= 1
            return self.begun if is_alone else None


class CudaClock:
    """Clock of the current card, for one thread at a time: events on a stream of its own."""

    def __init__(self, cupy: Any, runs: CardRuns) -> None:
        """All runs on the card enter `runs`, and use the stream that is current now."""
        self._cupy, self._runs = cupy, runs
        self._stream_of_runs = cupy.cuda.get_current_stream()
        self._stream: Any = None
        self._begun = 0
        self._in_use = Lock()

    @contextmanager
    def memory(self, sizes: Sequence[int]) -> Iterator[Sequence[int] | None]:
        """Lend addresses while the clock's stream is current; None if a run is under way. Raises MemoryError."""
        begun = self._runs.wait_for_none(_PATIENCE_SECONDS)
        if begun is None:
            yield None
            return
        self._begun, cuda = begun, self._cupy.cuda
        if self._stream is None:
            self._stream = cuda.Stream(non_blocking=True)
        ran = self._stream_of_runs.record(cuda.Event(disable_timing=True))
        ran.synchronize()
        pool, nbytes = self._cupy.get_default_memory_pool(), sum(sizes)
        with self._in_use, self._stream:
            limit = int(pool.get_limit())
            if limit and _SHARE * nbytes > limit - int(pool.total_bytes()):
                raise MemoryError(f"the pool has no room for {nbytes} bytes, and for runs")
            held: list[Any] = []
            try:
                held.extend(map(self._filled, sizes))
                yield [pointer.ptr for pointer in held]
            finally:
                self._stream.synchronize()
                held.clear()
                pool.free_all_blocks(self._stream)

    def seconds(self, launch: Callable[[int], object]) -> float | None:
        """Time a launch on the card; None if a run has begun since there was memory."""
        if self._runs.begun != self._begun:
            return None
        before = self._stream.record()
        launch(self._stream.ptr)
        after = self._stream.record()
        after.synchronize()
        seconds = _MILLISECOND * float(self._cupy.cuda.get_elapsed_time(before, after))
        return seconds if self._runs.begun == self._begun else None

    def await_memory(self) -> None:
        """Wait until the clock has given back its memory, which it does as soon as a run has begun."""
        with self._in_use:
            pass

    def _filled(self, nbytes: int) -> Any:
        pointer = self._cupy.cuda.alloc(nbytes)
        if nbytes:
            pointer.memset_async(_FILLING, nbytes)
        return pointer
