"""Observe callers before, during and after a fault, and check whether all responses are allowed."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Protocol

from tests.cluster_chaos.callers import Address, Caller, FinishedCall, Tally, running_threads
from tests.cluster_chaos.counting import COMPUTE, WRITE, Count, compute
from tests.cluster_chaos.faults import Fault
from tests.cluster_chaos.registers import History, RegisterCaller

#: number of callers of each kind in each namespace; the two that count race
COMPUTING, COUNTING, USING = 1, 2, 2
#: maximum seconds without a response to a stateless call; these must succeed throughout
MAX_SILENCE = 5.0
_STORED = (200, 201)


@dataclass(frozen=True)
class Row:
    """The responses to callers around a fault.

    `without_writes` are the seconds of the namespace that waited longest; `p99_ms` is the 99th percentile of writes
    before, during and after the fault.
    """

    name: str
    writes: int
    without_writes: float
    computed: int
    without_answers: float
    p99_ms: tuple[float, float, float]
    statuses: dict[str, int]
    operations: int
    faults: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """The row as a JSON object."""
        return asdict(self)


class Place(Protocol):
    """The servers that callers use."""

    @property
    def keys(self) -> Mapping[str, str]:
        """API keys by namespace."""

    @property
    def addresses(self) -> Sequence[Address]:
        """The addresses of the ingresses."""

    def settle(self) -> None:
        """Return when requests are sent to all expected servers. Raises TimeoutError."""


class Traffic:
    """Callers of all kinds in all namespaces, with new histories and counters."""

    def __init__(self, place: Place, name: str, pause: float, chance: random.Random) -> None:
        self.tally = Tally()
        self._addresses, self._pause = place.addresses, pause
        self._callers: list[Caller] = []
        self.histories: list[History] = []
        self._counts: list[tuple[Count, Caller]] = []
        self._threads: list[threading.Thread] = []
        self.namespaces = list(place.keys)
        for namespace, key in place.keys.items():
            self._add_callers(name, namespace, key, chance)

    def _add_callers(self, name: str, namespace: str, key: str, chance: random.Random) -> None:
        def caller() -> Caller:
            self._callers.append(Caller(self.tally, namespace, key, self._addresses))
            return self._callers[-1]

        history, count = History(name), Count(f"{name}.n")
        self.histories.append(history)
        first = caller()
        history.begin(first)
        count.begin(first)
        self._counts.append((count, first))
        for _ in range(COMPUTING):
            self._thread(compute, caller(), random.Random(chance.random()), self._pause)
        for _ in range(COUNTING):
            self._thread(count.add, caller(), self._pause)
        for _ in range(USING):
            using = RegisterCaller(history, caller(), random.Random(chance.random()))
            self._thread(using.call, self._pause)

    def _thread(self, call: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=self._guarded, args=(call, *arguments)))

    def _guarded(self, call: Callable[..., None], *arguments: object) -> None:
        try:
            call(*arguments)
        except Exception as error:  # noqa: BLE001 - a response that a caller cannot handle is a fault
            self.tally.faults[f"{type(error).__name__}: {error}"] += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run all callers until the block ends; then check the stored state against the acknowledged calls."""
        with running_threads(self._threads, self.tally):
            yield
        for (count, caller), history in zip(self._counts, self.histories, strict=True):
            count.check(caller)
            history.check(caller)
        for caller in self._callers:
            caller.close()


def observe(place: Place, fault: Fault, quiet: float, chance: random.Random) -> Row:
    """Observe callers for `quiet` seconds before a fault, until recovery, and for `quiet` seconds after it."""
    traffic = Traffic(place, str(chance.randrange(10**6)), fault.pause, chance)
    began = time.monotonic()
    with traffic.running():
        time.sleep(quiet)
        happened = time.monotonic()
        fault.begin()
        time.sleep(fault.seconds)
        fault.repair()
        place.settle()
        recovered = _await_write(traffic.tally, time.monotonic())
        time.sleep(quiet)
        over = time.monotonic()
    return _row(fault, traffic, (began, happened, recovered, over))


def _await_write(tally: Tally, since: float) -> float:
    """Wait for an acknowledged write that began after `since`, and return the time. Raises TimeoutError."""
    while not any(call.began > since and call.kind == WRITE and call.status in _STORED for call in [*tally.calls]):
        if time.monotonic() - since > 60:
            raise TimeoutError(f"no write succeeds after the fault: {tally.statuses()}")
        time.sleep(0.05)
    return time.monotonic()


def _row(fault: Fault, traffic: Traffic, times: tuple[float, float, float, float]) -> Row:
    tally, (began, happened, recovered, over) = traffic.tally, times
    calls = [call for call in tally.calls if began <= call.began <= over]
    writes = [call for call in calls if call.kind == WRITE and call.status in _STORED]
    writes_by_namespace = [[call for call in writes if call.namespace == namespace] for namespace in traffic.namespaces]
    computed = [call for call in calls if call.kind == COMPUTE and call.status == 200]
    phases = ((began, happened), (happened, recovered), (recovered, over))
    silence = _longest_gap(computed, happened, over)
    if silence > MAX_SILENCE:
        tally.faults[f"no stateless call got a response for {silence:.1f} s"] += 1
    return Row(
        name=fault.name,
        writes=len(writes),
        without_writes=round(max(_longest_gap(each, happened, over) for each in writes_by_namespace), 1),
        computed=len(computed),
        without_answers=round(silence, 1),
        p99_ms=tuple(_p99(writes, *phase) for phase in phases),  # type: ignore[arg-type]
        statuses={str(status): count for status, count in sorted(tally.statuses().items())},
        operations=sum(len(history.operations) for history in traffic.histories),
        faults=[f"{count} times: {fault}" for fault, count in tally.faults.items()],
    )


def _longest_gap(calls: list[FinishedCall], began: float, over: float) -> float:
    """The longest time between the ends of two of these calls."""
    ends = sorted([began, over, *(call.ended for call in calls if began < call.ended < over)])
    return max(after - before for before, after in pairwise(ends))


def _p99(calls: list[FinishedCall], began: float, over: float) -> float:
    """The 99th percentile, in ms, of the calls that began within a period; 0 if there are none."""
    taken = sorted(call.ended - call.began for call in calls if began <= call.began < over)
    return round(1000 * taken[min(len(taken) - 1, int(0.99 * len(taken)))], 1) if taken else 0.0


def print_row(row: Row) -> None:
    """Print a row on one line, and its faults."""
    ms = " / ".join(f"{each:.0f}" for each in row.p99_ms)
    line = f"{row.name}: {row.writes} writes, {row.without_writes} s without; {row.computed} computed, "
    line += f"{row.without_answers} s without; p99 {ms} ms; {row.statuses}; {row.operations} operations"
    print(line, file=sys.stderr, flush=True)
    for fault in row.faults:
        print(f"  FAULT {fault[:600]}", file=sys.stderr, flush=True)
