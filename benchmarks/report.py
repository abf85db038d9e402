"""Time workloads, the sides taking turns; print a line for each, and keep what was found as JSON."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.compare import Differs, largest_difference
from benchmarks.peers import NOT_ASKED, SIDES, installed_sides
from benchmarks.record import DEFAULT, Results
from benchmarks.suite import chosen, find
from benchmarks.turns import bursts, median_of_ratios, ratio_of_medians, spread
from benchmarks.worker import Ready, Worker
from benchmarks.workload import Unsupported

Row = dict[str, Any]


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds and seconds of a workload at the most."""

    rounds: int
    seconds: float


#: groups whose rows are of one thread
ONE_THREAD = ("ops", "loops")
#: an op's row is beside eager PyTorch alone
OPS_SIDES = ("gradserve", "torch")
QUICK, FULL = Effort(7, 2.0), Effort(25, 12.0)


def measure(name: str, workers: Mapping[str, Worker], effort: Effort) -> Row:
    """Everything about one workload. Raises Differs."""
    work = find(name)()
    ready, without = _prepared(name, workers)
    ours = ready["gradserve"].results
    apart = {
        side: largest_difference(ours, each.results, work.dtype, work.precision, work.vanishing)
        for side, each in ready.items()
        if side != "gradserve"
    }
    times = bursts({side: workers[side].burst for side in ready}, effort.rounds, effort.seconds)
    found = {side: _found(each, times[side], times["gradserve"]) for side, each in ready.items()}
    return {"title": work.title, "extent": work.extent, "sides": found, "without": without, "apart": apart}


def _prepared(name: str, workers: Mapping[str, Worker]) -> tuple[dict[str, Ready], dict[str, str]]:
    """The sides that can be asked, ready; and of the others, why not: what a peer cannot do is no fault of the run."""
    ready, without = {}, {}
    for side, worker in workers.items():
        try:
            ready[side] = worker.prepare(name)
        except (Unsupported, RuntimeError) as error:
            if side == "gradserve":
                raise
            without[side] = str(error)
    return ready, without


def _found(side: Ready, times: list[float], ours: list[float]) -> Row:
    return {
        **asdict(spread(times)),
        "seconds": side.seconds,
        "bytes": side.bytes,
        "ratio": ratio_of_medians(ours, times),
        "paired": median_of_ratios(ours, times),
    }


def line(name: str, row: Row) -> str:
    """One row: our time, and how many times ours is of each peer's."""
    if "failed" in row:
        return f"{name:22} {row['failed']}"
    sides = row["sides"]
    ours = sides["gradserve"]
    cells = [f"{ours['median']:10.4f} ms ({ours['lower']:.4f} to {ours['upper']:.4f})"]
    cells += [
        f"{peer} {each['median']:.4f} ms, ratio {each['ratio']:.2f} ({each['paired']:.2f})"
        for peer, each in sides.items()
        if peer != "gradserve"
    ]
    cells += [f"{peer}: {why}" for peer, why in row["without"].items() if why != NOT_ASKED]
    plan = 1000 * ours["seconds"].get("plan", 0.0)
    return f"{name:22} plan {plan:7.1f} ms  run {'  '.join(cells)}"


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description="Time workloads beside the peers that are installed.")
    parser.add_argument("--only", default="", help="names of workloads and groups, with commas between them")
    parser.add_argument("--sides", default="", help=f"of {', '.join(SIDES)}; by default those that are installed")
    parser.add_argument("--quick", action="store_true", help="a few bursts: one row in seconds")
    parser.add_argument("--threads", type=int, default=0, help="cores that each side may use; by default all")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--output", type=Path, default=DEFAULT, help="results, merged into what the file has")
    return parser


@contextmanager
def workers(sides: Sequence[str], device: str, threads: int) -> Iterator[dict[str, Worker]]:
    """A process for each side, on so many cores."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[-threads:])
    os.environ["OPENBLAS_NUM_THREADS"] = str(len(os.sched_getaffinity(0)))
    started = {side: Worker(side, device) for side in sides}
    os.sched_setaffinity(0, cores)
    try:
        yield started
    finally:
        for worker in started.values():
            worker.close()


def shared(names: Mapping[str, str], *, quick: bool) -> Iterator[tuple[str, list[str]]]:
    """Groups, and names that are measured in the same processes: all ops, and all of a group where it must be quick."""
    for group, members in groupby(names, names.__getitem__):
        if quick or group == "ops":
            yield group, list(members)
        else:
            yield from ((group, [name]) for name in members)


def no_caches() -> None:
    """Let every compiler compile: what another run left on the disk would hide how long it takes."""
    os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
    os.environ.setdefault("GRADSERVE_CACHE_DIR", tempfile.mkdtemp(prefix="gradserve-bench-"))


def main() -> None:
    """Measure what was chosen."""
    options = arguments().parse_args()
    no_caches()
    asked = [each for each in options.sides.split(",") if each]
    sides = list(dict.fromkeys(["gradserve", *asked])) if asked else installed_sides()
    effort = QUICK if options.quick else FULL
    results = Results(options.output, options.device)
    print(results.heading(), flush=True)
    names = chosen([each for each in options.only.split(",") if each])
    for group, together in shared(names, quick=options.quick):
        threads = 1 if group in ONE_THREAD else options.threads
        with workers([s for s in sides if group != "ops" or s in OPS_SIDES], options.device, threads) as started:
            for name in together:
                row = attempt(name, started, effort) | {"threads": threads or len(os.sched_getaffinity(0))}
                results.add(group, name, row)
                print(line(name, row), flush=True)


def attempt(name: str, started: Mapping[str, Worker], effort: Effort) -> Row:
    """A row, or why there is none: one workload that fails does not end the run."""
    try:
        return measure(name, started, effort)
    except (Differs, RuntimeError) as error:
        return {"title": name, "failed": str(error)}


if __name__ == "__main__":
    main()
