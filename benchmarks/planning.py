"""How long plans take to make, and to run once, in a warm process; beside another checkout, the two taking turns."""

from __future__ import annotations

import argparse
import inspect
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from benchmarks.problems.loops import PLANNED as LOOPS
from benchmarks.record import DEFAULT, Results
from benchmarks.turns import bursts, median_of_ratios, ratio_of_medians, spread

#: workloads that are planned: many nodes; a network; what people send; few steps and many, and one without a loop
PLANNED: Final = ("W2", "W4n", "W6", *LOOPS)
ROUNDS, SECONDS = 25, 10.0


class Planner:
    """A process that makes plans with the engine of one checkout. To be closed."""

    def __init__(self, checkout: Path, *, runs: bool = False) -> None:
        """`runs`: each plan is run once, and that counts."""
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, str(checkout), runs), daemon=True)
        self._process.start()

    def seconds(self, name: str, count: int) -> float:
        """Of one plan, of `count` made one after the other from the statements of a client."""
        self._connection.send((name, count))
        found: float = self._connection.recv()
        return found

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(10)
        self._process.kill()


def _serve(connection: Connection, checkout: str, runs: bool) -> None:
    sys.path.insert(0, checkout)  # from where `engine` is then loaded, and the benchmarks from here
    import engine  # noqa: PLC0415

    sys.path.remove(checkout)
    assert Path(checkout) in Path(str(engine.__file__)).parents, f"{engine.__file__} is of another checkout"
    makers: dict[str, Callable[[], object]] = {}
    while True:
        try:
            name, count = connection.recv()
        except EOFError:
            return
        make = makers.get(name) or makers.setdefault(name, _maker(name, runs=runs))
        start = time.perf_counter()
        for _ in range(count):
            make()
        connection.send((time.perf_counter() - start) / count)


def _maker(name: str, *, runs: bool) -> Callable[[], object]:
    """What makes the plan anew, through a compiler that knows nothing yet."""
    from benchmarks.sides import LIMITS, recorded  # noqa: PLC0415 - only once it is settled whose engine it is
    from benchmarks.suite import find  # noqa: PLC0415
    from engine import Compiler, Program, open_executor, registry  # noqa: PLC0415

    work = find(name)()
    program, types, asked = recorded(work)
    named: dict[str, Any] = {"threads": len(os.sched_getaffinity(0)), "determinism": "fast", "compile": "on"}
    known = inspect.signature(open_executor).parameters  # those of an older checkout
    executor = open_executor("cpu", **{key: value for key, value in named.items() if key in known})
    feeds: dict[Hashable, Any] = dict(enumerate(work.arrays))

    def make() -> object:
        fresh = Program(registry(), program.statements, LIMITS, opset=program.opset, functions=program.functions)
        plan = Compiler(LIMITS).compile(fresh, types, asked).plan
        return executor.execute(plan, feeds) if runs else plan

    return make


@contextmanager
def planners(checkouts: dict[str, Path], *, runs: bool = False) -> Iterator[dict[str, Planner]]:
    """A process for each."""
    started = {name: Planner(path.resolve(), runs=runs) for name, path in checkouts.items()}
    try:
        yield started
    finally:
        for planner in started.values():
            planner.close()


def measure(names: Sequence[str], started: Mapping[str, Planner]) -> dict[str, dict[str, Any]]:
    """Milliseconds of a plan of each, all in turns, and the ratio to the baseline's where there is one."""
    sides = {f"{name} {side}": _burst_of(planner, name) for name in names for side, planner in started.items()}
    times = bursts(sides, ROUNDS, SECONDS * len(names))
    return {name: _row({side: times[f"{name} {side}"] for side in started}) for name in names}


def _row(times: Mapping[str, list[float]]) -> dict[str, Any]:
    row: dict[str, Any] = {side: vars(spread(each)) for side, each in times.items()}
    if "baseline" in times:
        row["ratio"] = ratio_of_medians(times["gradserve"], times["baseline"])
        row["paired"] = median_of_ratios(times["gradserve"], times["baseline"])
    return row


def in_groups(names: Sequence[str]) -> list[list[str]]:
    """Those of loops together, since they are compared with one another; the others by themselves."""
    loops = [name for name in names if name in LOOPS]
    return [*[[name] for name in names if name not in LOOPS], *[loops] * bool(loops)]


def _burst_of(planner: Planner, name: str) -> Callable[[int], float]:
    return lambda count: planner.seconds(name, count)


def line(name: str, row: dict[str, Any]) -> str:
    """One row."""
    shown = f"{name:12} {row['gradserve']['median']:9.2f} ms"
    if "ratio" not in row:
        return shown
    return f"{shown}  baseline {row['baseline']['median']:9.2f} ms, ratio {row['ratio']:.2f}"


def main() -> None:
    """Measure the workloads, print a line for each, and keep them with the other results."""
    parser = argparse.ArgumentParser(description="Time how long plans take to make in a warm process.")
    parser.add_argument("--baseline", type=Path, help="another checkout, to be compared with")
    parser.add_argument("--only", default=",".join(PLANNED), help="names of workloads, with commas between them")
    parser.add_argument("--run", action="store_true", help="run each plan once, and count that")
    parser.add_argument("--output", type=Path, default=DEFAULT)
    options = parser.parse_args()
    checkouts = {"gradserve": Path(__file__).parents[1]}
    if options.baseline:
        checkouts["baseline"] = options.baseline
    results = Results(options.output, "cpu")
    with planners(checkouts, runs=options.run) as started:
        for names in in_groups(options.only.split(",")):
            for name, row in measure(names, started).items():
                results.add("first calls" if options.run else "planning", name, row)
                print(line(name, row), flush=True)


if __name__ == "__main__":
    main()
