"""`python -m tests.bounds.child JOURNAL GROUP…`: watches groups of the corpus, in a process that may die of it.

What is found is printed, a line each, and in the end how much was watched; the journal has what is at work. With
`--break NAME`, an extent is one off from the beginning; with `--lanes-of BYTES`, kernels are those of a processor whose
vectors are as wide; with `--text`, they are C's, or a card's, built by the machine's C compiler.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from engine.codegen.microkernels import register_tile
from tests.bounds.breaking import BREAKS
from tests.bounds.corpus import Watched, groups
from tests.bounds.watching import Built, Journal, Outside, Tell, watch, watch_text
from tests.contract.cases import Array

#: how kernels are built, and beside what they run: whether they check bounds, and which end of memory is guarded
BUILDS: Final = {"checked": (True, True), "guarded ends": (False, True), "guarded beginnings": (False, False)}


def main(argv: Sequence[str]) -> int:
    """0 where nothing was found."""
    asked = _arguments(argv)
    if asked.lanes_of:
        wide = register_tile.Vectors(asked.lanes_of, asked.lanes_of // 2)
        register_tile.vectors = lambda: wide
    if asked.broken:
        BREAKS[asked.broken].make()
    tell, built, started = Journal(asked.journal), Built(), time.process_time()
    graphs = found = 0
    for watched in (watched for name in asked.groups for watched in groups()[name]()):
        graphs += 1
        for said in _look_at_text(watched, asked.text, tell) if asked.text else _look(watched, built, tell):
            found += 1
            sys.stdout.write(said + "\n")
            sys.stdout.flush()
    seconds = time.process_time() - started
    sys.stdout.write(f"{graphs} graphs, {built.made} kernels, {found} found, {seconds:.0f} s\n")
    return int(found > 0)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("journal")
    parser.add_argument("groups", nargs="+")
    parser.add_argument("--break", dest="broken", choices=[*BREAKS])
    parser.add_argument("--lanes-of", type=int)
    parser.add_argument("--text", choices=["c", "cuda"])
    return parser.parse_args(argv)


def _look(watched: Watched, built: Built, tell: Tell) -> Iterator[str]:
    """What is found of a graph: accesses outside, or other results from one build than from another."""
    results = list[list[Array]]()
    for build, (checked, at_end) in BUILDS.items():
        try:
            results.append(watch(watched, built, lambda said, build=build: tell(f"{build}: {said}"), checked, at_end))
        except Outside as outside:
            yield f"{watched.name}, {build}: {outside}"
    yield from _compared(watched, results)


def _look_at_text(watched: Watched, printer: str, tell: Tell) -> Iterator[str]:
    """As `_look`, of what another printer writes."""
    yield from _compared(watched, [watch_text(watched, printer, tell, at_end) for at_end in (True, False)])


def _compared(watched: Watched, results: Sequence[list[Array]]) -> Iterator[str]:
    if not all(_alike(one, other) for one, other in pairwise(results)):
        yield f"{watched.name}: results depend on what lies around memory"


def _alike(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
