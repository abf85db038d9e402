"""Requests in processes of their own: a crash or a timeout is a finding as well."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Final, NamedTuple

from engine.codegen.native.machine_code import KernelStore
from tests.engine.ir.verified import verified
from tests.fuzz.graphs import Request, random_request
from tests.fuzz.tiers import Way, share_small_work, ways
from tests.fuzz.trying import Finding, Tried, try_request
from tests.fuzz.values import Array

#: limit of processor seconds for a request
COMPUTES: Final = 120.0
#: limit of wall-clock seconds, for requests that no longer compute: the machine may be busy
WAITS: Final = 1200.0
#: seconds after which a process is replaced, so that its memory is fresh
LIFE: Final = 60.0
#: the way of findings that end a process
DEATH: Final = "any"
#: the message for a process that had to be killed
LATE: Final = f"no answer in {COMPUTES:g} seconds of a processor, or {WAITS:g} of waiting"
_fork: Final = get_context("fork")


class Drawn(NamedTuple):
    """The number of a request, and its outcome."""

    number: int
    tried: Tried


class Watch:
    """Watches whether the current request of a process takes too long."""

    def __init__(self, pid: int) -> None:
        self._clock = ~pid << 3 | 2  # Linux's clock id for the processor time of a process
        self.begin()

    def begin(self) -> None:
        """Restart the watch for a new request."""
        self._since, self._computed = time.monotonic(), self._had()

    def is_late(self) -> bool:
        """Whether the process computes or waits for too long."""
        return self._had() - self._computed > COMPUTES or time.monotonic() - self._since > WAITS

    def _had(self) -> float:
        try:
            return time.clock_gettime(self._clock)
        except OSError:  # the process is gone
            return 0.0


class Lane:
    """A sequence of processes that run the requests `numbers` of a seed; kernels are cached in `folder`."""

    def __init__(self, seed: int, numbers: Iterator[int], folder: Path) -> None:
        self._seed, self._numbers, self._folder = seed, numbers, folder
        self._number = next(numbers)
        self._begin()

    def receive(self) -> Drawn | None:
        """Return the outcome of the current request, and begin the next; None if a process has reached its lifetime."""
        try:
            outcome = self.connection.recv()
        except EOFError:
            self._process.join()
            exitcode = self._process.exitcode
            if not exitcode:
                self._begin()
                return None
            return self._dead(f"the process died by {_cause(exitcode)}")
        return self._next(outcome)

    def is_late(self) -> bool:
        """Whether the current request takes too long."""
        return self._watch.is_late()

    def end_late(self) -> Drawn:
        """Give up the current request."""
        self.close()
        return self._dead(LATE)

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()

    def _begin(self) -> None:
        self.connection, theirs = _fork.Pipe(duplex=False)
        self._process = _fork.Process(target=self._work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._watch = Watch(self._process.pid or 0)

    def _work(self, connection: Connection) -> None:
        """Run requests in the child process."""
        until = time.monotonic() + LIFE
        with share_small_work(), verified():
            number = self._number
            while time.monotonic() < until:
                request = random_request(self._seed, number)
                connection.send(try_request(request, ways(), KernelStore(self._folder)))
                number = next(self._numbers)

    def _dead(self, message: str) -> Drawn:
        outcome = self._next(Tried([Finding(DEATH, message)]))
        self._begin()
        return outcome

    def _next(self, tried: Tried) -> Drawn:
        done, self._number = self._number, next(self._numbers)
        self._watch.begin()
        return Drawn(done, tried)


def campaign(seed: int, first: int, lanes: int, folder: Path, ended: Callable[[], bool]) -> Iterator[Drawn]:
    """Yield the outcomes of the requests of a seed until `ended`, several in parallel."""
    working = [Lane(seed, count(first + k, lanes), folder) for k in range(lanes)]
    try:
        while not ended():
            ready = wait([lane.connection for lane in working], timeout=1.0)
            for lane in working:
                outcome = lane.receive() if lane.connection in ready else lane.end_late() if lane.is_late() else None
                if outcome is not None:
                    yield outcome
    finally:
        for lane in working:
            lane.close()


def tried_alone(request: Request, chosen: Sequence[Way], folder: Path, results: Sequence[Array] = ()) -> Tried:
    """Run one request in a process of its own, like `try_request`."""
    ours, theirs = _fork.Pipe(duplex=False)
    process = _fork.Process(target=_try_one, args=(theirs, request, chosen, folder, results), daemon=True)
    process.start()
    theirs.close()
    try:
        watch = Watch(process.pid or 0)
        while not ours.poll(1.0):
            if watch.is_late():
                return Tried([Finding(DEATH, LATE)])
        outcome: Tried = ours.recv()
    except EOFError:
        process.join()
        return Tried([Finding(DEATH, f"the process died by {_cause(process.exitcode or 0)}")])
    else:
        return outcome
    finally:
        process.kill()
        process.join()


def _try_one(
    connection: Connection, request: Request, chosen: Sequence[Way], folder: Path, results: Sequence[Array]
) -> None:
    with share_small_work(), verified():
        connection.send(try_request(request, chosen, KernelStore(folder), results))


def _cause(exitcode: int) -> str:
    return signal.Signals(-exitcode).name if exitcode < 0 else f"exit {exitcode}"
