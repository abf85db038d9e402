"""Run thousands of histories, and fewer with each rule removed, and print a table of those not linearizable.

Servers that take one state from each other come first, and then those that share it.

`python -m tests.simulation HISTORIES` runs this many with all rules, and a tenth of them without a lease and without
each rule. `--rules` sets the number of these instead.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import repeat
from typing import NamedTuple

from tests.simulation.checker import is_linearizable
from tests.simulation.cluster_rules import CLUSTER_RULES
from tests.simulation.history import history
from tests.simulation.member import INF
from tests.simulation.rules import RULES, without

#: histories per task of a process
_PORTION = 50


class Toll(NamedTuple):
    """The numbers of operations and answers, and the seeds of histories that are wrong or undecided."""

    asked: int
    answered: int
    wrong: tuple[int, ...]
    undecided: tuple[int, ...]


def toll(
    seeds: Iterable[int], rule: str | None = None, lease: float = 1.0, *, cluster: bool = False, memory: float = INF
) -> Toll:
    """Run these histories, possibly without a rule; of servers that take a state from each other, or of a `cluster`."""
    asked = answered = 0
    wrong, undecided = [], []
    with without(rule, CLUSTER_RULES if cluster else RULES):
        for seed in seeds:
            run = history(seed, lease, cluster=cluster, memory=memory)
            asked, answered = asked + run.asked, answered + run.answered
            explained = is_linearizable(run.operations)
            if run.wrong or explained is False:
                wrong.append(seed)
            elif explained is None:
                undecided.append(seed)
    return Toll(asked, answered, tuple(wrong), tuple(undecided))


def tolls(seeds: range, rule: str | None = None, lease: float = 1.0, *, cluster: bool = False) -> Toll:
    """Run these histories like `toll`, in parallel processes."""
    portions = [seeds[start : start + _PORTION] for start in range(0, len(seeds), _PORTION)]
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1), initializer=_quiet) as processes:
        results = list(processes.map(partial(toll, cluster=cluster), portions, repeat(rule), repeat(lease)))
    return Toll(
        sum(each.asked for each in results),
        sum(each.answered for each in results),
        tuple(seed for each in results for seed in each.wrong),
        tuple(seed for each in results for seed in each.undecided),
    )


def main() -> int:
    """Print the table; return 1 if a history with all rules is wrong, or none is without one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("histories", type=int)
    parser.add_argument("--rules", type=int, default=None)
    parser.add_argument("--from", type=int, default=0, dest="first")
    arguments = parser.parse_args()
    fewer = arguments.histories // 10 if arguments.rules is None else arguments.rules
    rows = [
        row
        for cluster, rules in ((False, RULES), (True, CLUSTER_RULES))
        for row in (
            (None, 1.0, arguments.histories, cluster),
            (None, 0.0, fewer, cluster),
            *((rule, 1.0, fewer, cluster) for rule in rules),
        )
    ]
    failed = False
    sys.stdout.write(
        "| histories | of | operations | answered | not linearizable | undecided |\n|---|---|---|---|---|---|\n"
    )
    for rule, lease, count, cluster in rows:
        if not count:
            continue
        began = time.monotonic()
        total = tolls(range(arguments.first, arguments.first + count), rule, lease, cluster=cluster)
        name = f"all rules, a lease of {lease:g} s" if rule is None else f"without: {rule}"
        name = f"{name} (a cluster)" if cluster and rule is None else name
        first = f" (seeds {', '.join(map(str, total.wrong[:3]))})" if total.wrong else ""
        share = total.answered / max(1, total.asked)
        sys.stdout.write(
            f"| {name} | {count} | {total.asked} | {share:.1%} | {len(total.wrong)}{first} | {len(total.undecided)} |\n"
        )
        sys.stdout.flush()
        sys.stderr.write(f"{time.monotonic() - began:.0f} s\n")
        failed |= bool(total.wrong) == (rule is None)
    return int(failed)


def _quiet() -> None:
    logging.disable(logging.CRITICAL)


if __name__ == "__main__":
    sys.exit(main())
