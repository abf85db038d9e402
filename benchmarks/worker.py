"""A side in a process of its own, which works when it is asked and otherwise sleeps.

In one process, the thread pools of several libraries would get in each other's way on the same cores. And a process of
its own has a peak of memory of its own.
"""

from __future__ import annotations

import multiprocessing
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.peers import prepare
from benchmarks.sides import Prepared
from benchmarks.suite import find
from benchmarks.turns import burst_of
from benchmarks.workload import Array, Unsupported

#: elements of a result that are compared, evenly spread
COMPARED = 1_000_000


@dataclass(frozen=True)
class Ready:
    """A side after its first runs: what came before by its seconds, memory at the most, and results to compare.

    Memory is known for the first workload of a process: the next ones find what that one left.
    """

    seconds: dict[str, float]
    bytes: int | None
    results: list[Array]


class Worker:
    """One side, for one workload at a time. To be closed."""

    def __init__(self, side: str, device: str = "cpu") -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, side, device), daemon=True)
        self._process.start()
        theirs.close()

    def prepare(self, name: str) -> Ready:
        """This workload instead of the one before. Raises Unsupported, and RuntimeError for what went wrong there."""
        ready: Ready = self._ask("prepare", name)
        return ready

    def burst(self, count: int) -> float:
        """Seconds of one call, of `count` in a row."""
        seconds: float = self._ask("burst", count)
        return seconds

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(10)
        self._process.kill()

    def _ask(self, what: str, argument: str | int) -> Any:
        self._connection.send((what, argument))
        try:
            answer = self._connection.recv()
        except EOFError:
            raise RuntimeError("the process has died: out of memory?") from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def resident(entry: str) -> int:
    """Bytes that /proc tells of this process: VmRSS now, VmHWM at its most since it was last reset."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(entry + ":"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc tells no {entry}")


class _Work:
    """Work of the process: what its side does when it is asked."""

    def __init__(self, side: str, device: str) -> None:
        self._side, self._device = side, device
        self._prepared: Prepared | None = None
        self._fresh = True
        with suppress(Unsupported):
            prepare(side, find("W1")(), device)  # a first workload would pay for what is imported on the way

    def prepare(self, name: str) -> Ready:
        self._prepared = None
        work = find(name)()
        before = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        prepared = prepare(self._side, work, self._device)
        for _ in range(2):
            results = prepared.call()
        grown = max(0, resident("VmHWM") - before) if self._fresh else None
        self._fresh = False
        self._prepared = prepared
        return Ready(prepared.seconds, grown, [sample(a) for a in prepared.read(results)])

    def burst(self, count: int) -> float:
        assert self._prepared is not None
        return burst_of(self._prepared.call, count)


def sample(array: Array) -> Array:
    """At most `COMPARED` of its elements, evenly spread."""
    flat = array.reshape(-1)
    return flat[:: 1 + flat.size // COMPARED].copy()


def _serve(connection: Connection, side: str, device: str) -> None:
    work = _Work(side, device)
    while True:
        try:
            what, argument = connection.recv()
        except EOFError:
            return
        try:
            connection.send(getattr(work, what)(argument))
        except Unsupported as error:
            connection.send(error)
        except Exception as error:  # noqa: BLE001 - told to who asked, whatever it is
            connection.send(RuntimeError(f"{side}: {type(error).__name__}: {error}"[:2000]))
