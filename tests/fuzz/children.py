"""Requests in processes of their own: who dies by a signal, or does not come back, has found something as well."""

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
from tests.fuzz.tiers import Way, little_is_shared_out, ways
from tests.fuzz.trying import Finding, Tried, try_request
from tests.fuzz.values import Array

#: seconds of a processor in which every request is done
COMPUTES: Final = 120.0
#: seconds by the clock, for those that compute nothing any more: a machine may be busy with other things
WAITS: Final = 1200.0
#: seconds after which a process is followed by a new one, whose memory is as it was
LIFE: Final = 60.0
#: the way of what ends a process
DEATH: Final = "any"
#: and what is said of one that had to be ended
LATE: Final = f"no answer in {COMPUTES:g} seconds of a processor, or {WAITS:g} of waiting"
_fork: Final = get_context("fork")


class Drawn(NamedTuple):
    """The request of a number, and what came of it."""

    number: int
    tried: Tried


class Watch:
    """Tells whether what a process is at takes too long."""

    def __init__(self, pid: int) -> None:
        self._clock = ~pid << 3 | 2  # Linux's number for the time that a process has had of the processors
        self.begin()

    def begin(self) -> None:
        """It is at something new."""
        self._since, self._computed = time.monotonic(), self._had()

    def is_late(self) -> bool:
        """Whether it computes for too long, or waits."""
        return self._had() - self._computed > COMPUTES or time.monotonic() - self._since > WAITS

    def _had(self) -> float:
        try:
            return time.clock_gettime(self._clock)
        except OSError:  # it is gone
            return 0.0


class Lane:
    """Processes one after the other, which try the requests `numbers` of a seed; kernels are kept in `folder`."""

    def __init__(self, seed: int, numbers: Iterator[int], folder: Path) -> None:
        self._seed, self._numbers, self._folder = seed, numbers, folder
        self._number = next(numbers)
        self._begin()

    def receive(self) -> Drawn | None:
        """What came of the request that is at work, and the next one begins; None where a process has had its time."""
        try:
            found = self.connection.recv()
        except EOFError:
            self._process.join()
            died = self._process.exitcode
            if not died:
                self._begin()
                return None
            return self._dead(f"the process died by {_cause(died)}")
        return self._next(found)

    def is_late(self) -> bool:
        """Whether the request that is at work does not come back."""
        return self._watch.is_late()

    def end_late(self) -> Drawn:
        """Give up the request that is at work."""
        self.close()
        return self._dead(LATE)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()

    def _begin(self) -> None:
        self.connection, theirs = _fork.Pipe(duplex=False)
        self._process = _fork.Process(target=self._work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._watch = Watch(self._process.pid or 0)

    def _work(self, connection: Connection) -> None:
        """In the child."""
        until = time.monotonic() + LIFE
        with little_is_shared_out(), verified():
            number = self._number
            while time.monotonic() < until:
                request = random_request(self._seed, number)
                connection.send(try_request(request, ways(), KernelStore(self._folder)))
                number = next(self._numbers)

    def _dead(self, said: str) -> Drawn:
        found = self._next(Tried([Finding(DEATH, said)]))
        self._begin()
        return found

    def _next(self, tried: Tried) -> Drawn:
        done, self._number = self._number, next(self._numbers)
        self._watch.begin()
        return Drawn(done, tried)


def campaign(seed: int, first: int, lanes: int, folder: Path, ended: Callable[[], bool]) -> Iterator[Drawn]:
    """What came of the requests of a seed, until `ended`; several at a time."""
    working = [Lane(seed, count(first + k, lanes), folder) for k in range(lanes)]
    try:
        while not ended():
            ready = wait([lane.connection for lane in working], timeout=1.0)
            for lane in working:
                found = lane.receive() if lane.connection in ready else lane.end_late() if lane.is_late() else None
                if found is not None:
                    yield found
    finally:
        for lane in working:
            lane.close()


def tried_alone(request: Request, chosen: Sequence[Way], folder: Path, results: Sequence[Array] = ()) -> Tried:
    """What comes of one request, in a process of its own; as `try_request`."""
    ours, theirs = _fork.Pipe(duplex=False)
    process = _fork.Process(target=_try_one, args=(theirs, request, chosen, folder, results), daemon=True)
    process.start()
    theirs.close()
    try:
        watch = Watch(process.pid or 0)
        while not ours.poll(1.0):
            if watch.is_late():
                return Tried([Finding(DEATH, LATE)])
        found: Tried = ours.recv()
    except EOFError:
        process.join()
        return Tried([Finding(DEATH, f"the process died by {_cause(process.exitcode or 0)}")])
    else:
        return found
    finally:
        process.kill()
        process.join()


def _try_one(
    connection: Connection, request: Request, chosen: Sequence[Way], folder: Path, results: Sequence[Array]
) -> None:
    with little_is_shared_out(), verified():
        connection.send(try_request(request, chosen, KernelStore(folder), results))


def _cause(exitcode: int) -> str:
    return signal.Signals(-exitcode).name if exitcode < 0 else f"exit {exitcode}"
