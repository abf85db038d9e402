"""Histories by the thousand, and by fewer with each rule removed: how many are not linearizable, as a table.

First of servers that take one place from each other, and then of those that share it.

`python -m tests.simulation HISTORIES` tries so many with all rules; and a tenth of them with all rules and without a
lease, and without each rule. `--rules` says how many of these instead.
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
from tests.simulation.rules import RULES, without

#: histories that a process does at a time
_PORTION = 50


class Toll(NamedTuple):
    """How many operations there were, and how many got an answer; seeds of histories that are wrong, or undecided."""

    asked: int
    answered: int
    wrong: tuple[int, ...]
    undecided: tuple[int, ...]


def toll(seeds: Iterable[int], rule: str | None = None, lease: float = 1.0, *, cluster: bool = False) -> Toll:
    """What these histories come to, without a rule; of servers that take a place from others, or of a `cluster`."""
    asked = answered = 0
    wrong, undecided = [], []
    with without(rule, CLUSTER_RULES if cluster else RULES):
        for seed in seeds:
            found = history(seed, lease, cluster=cluster)
            asked, answered = asked + found.asked, answered + found.answered
            explained = is_linearizable(found.operations)
            if found.wrong or explained is False:
                wrong.append(seed)
            elif explained is None:
                undecided.append(seed)
    return Toll(asked, answered, tuple(wrong), tuple(undecided))


def tolls(seeds: range, rule: str | None = None, lease: float = 1.0, *, cluster: bool = False) -> Toll:
    """What these histories come to all together: as `toll`, on the processors that there are."""
    portions = [seeds[start : start + _PORTION] for start in range(0, len(seeds), _PORTION)]
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1), initializer=_quiet) as processes:
        found = list(processes.map(partial(toll, cluster=cluster), portions, repeat(rule), repeat(lease)))
    return Toll(
        sum(each.asked for each in found),
        sum(each.answered for each in found),
        tuple(seed for each in found for seed in each.wrong),
        tuple(seed for each in found for seed in each.undecided),
    )


def main() -> int:
    """Print the table; 1 where a history with all rules is wrong, or none without one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("histories", type=int)
    parser.add_argument("--rules", type=int, default=None)
    parser.add_argument("--from", type=int, default=0, dest="first")
    stated = parser.parse_args()
    fewer = stated.histories // 10 if stated.rules is None else stated.rules
    rows = [
        row
        for cluster, rules in ((False, RULES), (True, CLUSTER_RULES))
        for row in (
            (None, 1.0, stated.histories, cluster),
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
        found = tolls(range(stated.first, stated.first + count), rule, lease, cluster=cluster)
        name = f"all rules, a lease of {lease:g} s" if rule is None else f"without: {rule}"
        name = f"{name} (a cluster)" if cluster and rule is None else name
        first = f" (seeds {', '.join(map(str, found.wrong[:3]))})" if found.wrong else ""
        share = found.answered / max(1, found.asked)
        sys.stdout.write(
            f"| {name} | {count} | {found.asked} | {share:.1%} | {len(found.wrong)}{first} | {len(found.undecided)} |\n"
        )
        sys.stdout.flush()
        sys.stderr.write(f"{time.monotonic() - began:.0f} s\n")
        failed |= bool(found.wrong) == (rule is None)
    return int(failed)


def _quiet() -> None:
    logging.disable(logging.CRITICAL)


if __name__ == "__main__":
    sys.exit(main())
