"""`python -m tests.bounds.child JOURNAL GROUP…` watches groups of the corpus, in a process that may crash.

It prints each finding on a line, and a summary at the end; the journal has the current step. With `--break NAME`, an
extent is off by one; with `--lanes-of BYTES`, kernels are those for vectors of this width; with `--text`, they are in
C or CUDA, built by the machine's C compiler.
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

#: builds of kernels: whether they check bounds, and which end of memory is guarded
BUILDS: Final = {"checked": (True, True), "guarded ends": (False, True), "guarded beginnings": (False, False)}


def main(argv: Sequence[str]) -> int:
    """Watch the groups; return 0 if nothing was found."""
    arguments = _arguments(argv)
    if arguments.lanes_of:
        wide = register_tile.Vectors(arguments.lanes_of, arguments.lanes_of // 2)
        register_tile.vectors = lambda: wide
    if arguments.broken:
        BREAKS[arguments.broken].install()
    tell, built, started = Journal(arguments.journal), Built(), time.process_time()
    graphs = findings = 0
    for watched in (watched for name in arguments.groups for watched in groups()[name]()):
        graphs += 1
        for finding in (
            _findings_of_text(watched, arguments.text, tell) if arguments.text else _findings(watched, built, tell)
        ):
            findings += 1
            sys.stdout.write(finding + "\n")
            sys.stdout.flush()
    seconds = time.process_time() - started
    sys.stdout.write(f"{graphs} graphs, {built.count} kernels, {findings} found, {seconds:.0f} s\n")
    return int(findings > 0)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("journal")
    parser.add_argument("groups", nargs="+")
    parser.add_argument("--break", dest="broken", choices=[*BREAKS])
    parser.add_argument("--lanes-of", type=int)
    parser.add_argument("--text", choices=["c", "cuda"])
    return parser.parse_args(argv)


def _findings(watched: Watched, built: Built, tell: Tell) -> Iterator[str]:
    """The findings of a graph: accesses out of bounds, or results that differ between builds."""
    results = list[list[Array]]()
    for build, (checked, at_end) in BUILDS.items():
        try:
            results.append(watch(watched, built, lambda said, build=build: tell(f"{build}: {said}"), checked, at_end))
        except Outside as outside:
            yield f"{watched.name}, {build}: {outside}"
    yield from _differing_results(watched, results)


def _findings_of_text(watched: Watched, printer: str, tell: Tell) -> Iterator[str]:
    """The findings of a graph like `_look`, with the text of another printer."""
    yield from _differing_results(watched, [watch_text(watched, printer, tell, at_end) for at_end in (True, False)])


def _differing_results(watched: Watched, results: Sequence[list[Array]]) -> Iterator[str]:
    if not all(_equal(one, other) for one, other in pairwise(results)):
        yield f"{watched.name}: results depend on what lies around memory"


def _equal(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
