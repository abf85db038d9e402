"""Autotuning: choose the fastest of a library's algorithms for a computation by timing.

Each computation is timed once, on the GPU itself while no plan runs there, and the choice is stored. `Choices` asks for
the candidates of a computation (`Contest`) if its key is new, and `CudaClock` times them on its own stream. `CardRuns`
counts the runs of plans: a timing is repeated if a run began during it.
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

#: maximum number of candidates that are timed for one computation
MAX_CANDIDATES: Final = 4
#: timings of each candidate, of which the shortest counts; one untimed launch precedes them, to load the kernel
_TIMINGS: Final = 5
#: maximum number of a plan's timings that may be interrupted by runs before the heuristics' first candidates are used
_MAX_INTERRUPTED: Final = 64
#: minimum fraction of the first candidate's time that another one has to save: smaller differences are noise
_MIN_SAVED: Final = 0.03
#: seconds that the clock waits for a run to end
_PATIENCE_SECONDS: Final = 0.1
#: reciprocal of the share of the pool's free memory that the clock may use; the rest is for a run that begins
_SHARE: Final = 2
#: fill byte of that memory: floats of any width made of it are neither 0 nor infinite
_FILLING: Final = 0x3C
_MILLISECOND: Final = 1e-3

_logger = logging.getLogger("gradserve.kernels")

#: launches a computation on the stream with this address
StreamLaunch = Callable[[int], object]


class Candidate(NamedTuple):
    """Algorithm: its serialized form `code`, and a function that binds it to addresses of the contest's buffers.

    Binding and launching raise if the library refuses it.
    """

    code: bytes
    bind: Callable[[Sequence[int]], StreamLaunch]


class Contest(NamedTuple):
    """Candidates for one computation, in the order of the library's heuristics, and the bytes of each operand."""

    candidates: Sequence[Candidate]
    sizes: Sequence[int]


class Choices:
    """Chosen candidates of one plan, by key. Without a clock there are none: the heuristics' first candidates are used.

    Unknown keys are timed while it is open. After `close` it no longer changes, and so the plan's results stay the same
    bit for bit. A key includes everything that a choice depends on, such as GPU and versions.
    """

    def __init__(
        self, store: KernelStore | None = None, clock: CudaClock | None = None, stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Choices are stored in `store`. Nothing more is timed once `stop` returns True."""
        self._store, self._clock, self._stop = store, clock, stop
        self._codes: dict[str, bytes | None] = {}
        self._interrupted = 0

    def close(self) -> None:
        """Stop making new choices."""
        self._clock = None

    def find(self, key: str, contest: Callable[[], Contest | None]) -> bytes | None:
        """Return the code of the chosen candidate; None means the heuristics' first. Time a new key's `contest`."""
        if self._store is not None and self._clock is not None and key not in self._codes:
            self._codes[key] = self._store.get(key) or self._time_and_store(key, contest, self._store, self._clock)
        return self._codes.get(key)

    def _time_and_store(
        self, key: str, contest: Callable[[], Contest | None], store: KernelStore, clock: CudaClock
    ) -> bytes | None:
        """Time the candidates now, and store the fastest; None if that fails, since a choice is optional."""
        try:
            entry = contest()
            winner = None if entry is None else self._fastest(entry, clock)
        except Exception:  # out of memory, or a bug in a library or in our code
            _logger.debug("candidates were not timed", exc_info=True)
            return None
        if winner is not None:
            store.put(key, winner.code)
        return winner and winner.code

    def _fastest(self, contest: Contest, clock: CudaClock) -> Candidate | None:
        candidates = contest.candidates[:MAX_CANDIDATES]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        timings = _Timings(candidates)
        while timings.has_remaining:
            if self._interrupted >= _MAX_INTERRUPTED or self._stop():
                return None
            with clock.memory(contest.sizes) as addresses:
                if addresses is None or not timings.run_remaining(addresses, clock):
                    self._interrupted += 1
        return timings.winner()


#: choices if nothing is timed
NO_CHOICES: Final = Choices()


class _Timings:
    """Timings of candidates, which are interleaved so that clock drift affects all of them equally."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._candidates = candidates
        self._shortest = dict.fromkeys(range(len(candidates)), math.inf)
        #: remaining timings: index of the candidate, and whether the time counts
        self._turns = [(k, bool(turn)) for turn in range(1 + _TIMINGS) for k in self._shortest]

    @property
    def has_remaining(self) -> bool:
        return bool(self._turns)

    def run_remaining(self, addresses: Sequence[int], clock: CudaClock) -> bool:
        """Make the remaining timings; return False if a run interrupted one, which is then repeated."""
        launches: dict[int, StreamLaunch] = {}
        while self._turns:
            k, counts = self._turns[0]
            try:
                launch = launches[k] = launches.get(k) or self._candidates[k].bind(addresses)
                seconds = clock.seconds(launch)
            except Exception:  # whatever the library raises, drop this candidate
                _logger.debug("a candidate was refused", exc_info=True)
                del self._shortest[k]
                self._turns = [turn for turn in self._turns if turn[0] != k]
                continue
            if seconds is None:
                return False
            self._turns.pop(0)
            if counts:
                self._shortest[k] = min(self._shortest[k], seconds)
        return True

    def winner(self) -> Candidate | None:
        """Return the first candidate unless another is faster by more than noise; None if all were refused."""
        if not self._shortest:
            return None
        first, quickest = next(iter(self._shortest)), min(self._shortest, key=self._shortest.__getitem__)
        saved = self._shortest[first] - self._shortest[quickest]
        return self._candidates[quickest if saved > _MIN_SAVED * self._shortest[first] else first]


class CardRuns:
    """Runs of plans on a GPU in this process. Each run enters this context while it launches. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ended = Condition(self._lock)
        self._waiting = 0
        self._active = 0
        #: number of runs so far
        self.started = 0

    def __enter__(self) -> None:
        with self._lock:
            self.started += 1
            self._active += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._active -= 1
            if self._waiting:
                self._ended.notify_all()

    def wait_until_idle(self, seconds: float) -> int | None:
        """Wait until no run is active, and return the number of runs so far; None after `seconds`."""
        with self._lock:
            self._waiting += 1
            is_idle = self._ended.wait_for(lambda: not self._active, seconds)
            self._waiting -= 1
            return self.started if is_idle else None


class CudaClock:
    """Timer on the current GPU, with events on its own stream. Used by one thread at a time."""

    def __init__(self, cupy: Any, runs: CardRuns) -> None:
        """All runs on the GPU enter `runs` and use the stream that is current now."""
        self._cupy, self._runs = cupy, runs
        self._stream_of_runs = cupy.cuda.get_current_stream()
        self._stream: Any = None
        self._started_at_loan = 0
        self._in_use = Lock()

    @contextmanager
    def memory(self, sizes: Sequence[int]) -> Iterator[Sequence[int] | None]:
        """Lend addresses of buffers while the clock's stream is current; None if a run is active.

        Raises MemoryError.
        """
        started = self._runs.wait_until_idle(_PATIENCE_SECONDS)
        if started is None:
            yield None
            return
        self._started_at_loan, cuda = started, self._cupy.cuda
        if self._stream is None:
            self._stream = cuda.Stream(non_blocking=True)
        # No run launches now, but the GPU may still execute what earlier ones have launched.
        event = self._stream_of_runs.record(cuda.Event(disable_timing=True))
        event.synchronize()
        pool, nbytes = self._cupy.get_default_memory_pool(), sum(sizes)
        with self._in_use, self._stream:
            limit = int(pool.get_limit())
            if limit and _SHARE * nbytes > limit - int(pool.total_bytes()):
                raise MemoryError(f"the pool has no room for {nbytes} bytes, and for runs")
            pointers: list[Any] = []
            try:
                pointers.extend(map(self._filled, sizes))
                yield [pointer.ptr for pointer in pointers]
            finally:
                self._stream.synchronize()
                pointers.clear()
                pool.free_all_blocks(self._stream)

    def seconds(self, launch: Callable[[int], object]) -> float | None:
        """Return the time of a launch on the GPU; None if a run has begun since the memory was lent."""
        if self._runs.started != self._started_at_loan:
            return None
        before = self._stream.record()
        launch(self._stream.ptr)
        after = self._stream.record()
        after.synchronize()
        seconds = _MILLISECOND * float(self._cupy.cuda.get_elapsed_time(before, after))
        return seconds if self._runs.started == self._started_at_loan else None

    def await_memory(self) -> None:
        """Wait until the clock has released its memory, which it does as soon as a run has begun."""
        with self._in_use:
            pass

    def _filled(self, nbytes: int) -> Any:
        pointer = self._cupy.cuda.alloc(nbytes)
        if nbytes:
            pointer.memset_async(_FILLING, nbytes)
        return pointer
