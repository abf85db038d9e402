"""Autotuning: a library has several algorithms for one computation, of which the quickest is chosen by timing.

Each computation is timed once, on the GPU itself while no plan runs there, and the choice is kept.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Condition, Lock
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol

from engine.codegen.native.kernel_store import KernelStore

#: those of one computation that are timed
MOST_CANDIDATES: Final = 4
#: timings of each, of which the least counts; a launch before them loads it
_TIMINGS: Final = 5
#: timings of a plan's candidates that may be lost to runs, before it goes on with the first of each
_MOST_LOST: Final = 64
#: what another one has to save of the time of the first: less is chance
_LEAST_SAVED: Final = 0.03

_logger = logging.getLogger("gradserve.kernels")

#: launches something on the stream with this address
StreamLaunch = Callable[[int], object]


class Candidate(NamedTuple):
    """One way: the `code` that it is kept as, and what binds it to the addresses of memory of its contest's sizes.

    Either raises where the library refuses it.
    """

    code: bytes
    bind: Callable[[Sequence[int]], StreamLaunch]


class Contest(NamedTuple):
    """Candidates for one computation, the first of the library's heuristics first, and bytes of what each works on."""

    candidates: Sequence[Candidate]
    sizes: Sequence[int]


class CandidateClock(Protocol):
    """Clock of a card, whose time counts where no run is beside."""

    def memory(self, sizes: Sequence[int]) -> AbstractContextManager[Sequence[int] | None]:
        """Addresses of so many bytes each, for a while; None where a run is under way. Raises MemoryError."""

    def seconds(self, launch: StreamLaunch) -> float | None:
        """What a launch takes, within `memory`; None where a run has begun since. Raises what the launch raises."""


class Choices:
    """Candidates that were chosen for one plan, by key; without a clock none, and the first of each is used.

    What is not known yet is timed while this is open. Closed, it stays as it is, so that the plan's bits do. A key has
    all that a choice depends on, card and versions with it.
    """

    def __init__(
        self,
        store: KernelStore | None = None,
        clock: CandidateClock | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """What is chosen is kept in `store`. Nothing more is timed once `stop` comes true."""
        self._store, self._clock, self._stop = store, clock, stop
        self._chosen: dict[str, bytes | None] = {}
        self._lost = 0

    def close(self) -> None:
        """Choose no more."""
        self._clock = None

    def find(self, key: str, contest: Callable[[], Contest | None]) -> bytes | None:
        """The code of the one that is chosen; None: the first of the heuristics. `contest` is asked for what is new."""
        if self._store is not None and self._clock is not None and key not in self._chosen:
            self._chosen[key] = self._store.get(key) or self._won(key, contest, self._store, self._clock)
        return self._chosen.get(key)

    def _won(
        self, key: str, contest: Callable[[], Contest | None], store: KernelStore, clock: CandidateClock
    ) -> bytes | None:
        """What is timed now, and kept; None where that cannot be done, for whichever reason: nothing depends on it."""
        try:
            of = contest()
            won = None if of is None else self._quickest(of, clock)
        except Exception:  # no memory, or a fault of a library's, or of ours
            _logger.debug("candidates were not timed", exc_info=True)
            return None
        if won is not None:
            store.put(key, won.code)
        return won and won.code

    def _quickest(self, of: Contest, clock: CandidateClock) -> Candidate | None:
        candidates = of.candidates[:MOST_CANDIDATES]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        timings = _Timings(candidates)
        while timings.are_left:
            if self._lost >= _MOST_LOST or self._stop():
                return None
            with clock.memory(of.sizes) as addresses:
                if addresses is None or not timings.go_on(addresses, clock):
                    self._lost += 1
        return timings.winner()


#: what is chosen where nothing is timed
NO_CHOICES: Final = Choices()


class _Timings:
    """The timings of candidates, which take turns, so that what changes with time changes for all."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._candidates = candidates
        self._least = dict.fromkeys(range(len(candidates)), math.inf)
        #: the next ones: of which candidate, and whether its time counts
        self._turns = [(k, bool(turn)) for turn in range(1 + _TIMINGS) for k in self._least]

    @property
    def are_left(self) -> bool:
        """Whether some are to be made."""
        return bool(self._turns)

    def go_on(self, addresses: Sequence[int], clock: CandidateClock) -> bool:
        """Make those that are left; False where a run came in between: its timing is thrown away, and made again."""
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
        """The first, unless another is quicker by more than chance; None where all were refused."""
        if not self._least:
            return None
        first, quickest = next(iter(self._least)), min(self._least, key=self._least.__getitem__)
        saved = self._least[first] - self._least[quickest]
        return self._candidates[quickest if saved > _LEAST_SAVED * self._least[first] else first]


# Runs of plans on a card in this process: who wants to be alone with the card asks whether there are any.


class CardRuns:
    """Runs, each a context that is entered when its launches begin. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ended = Condition(self._lock)
        self._waiting = 0
        self._under_way = 0
        #: how many there were so far
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
        """As many as were `begun` by when none is under way; None where that took longer than so many seconds."""
        with self._lock:
            self._waiting += 1
            is_alone = self._ended.wait_for(lambda: not self._under_way, seconds)
            self._waiting -= 1
            return self.begun if is_alone else None


# A card's clock for candidates: events on a stream of its own, and memory of the pool, while no run is under way.

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
