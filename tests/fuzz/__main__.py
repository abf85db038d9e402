"""Random requests, every way that there is, for as long as one likes: `python -m tests.fuzz --seconds 600`.

    values, attributes            numbers, and what ops say beside their operands
    drawing, functions, graphs    a request from a seed
    asking, written_out, tiers    its plan, others that say the same, and the ways to run that
    differing                     what those may give
    trying, children              one request, and many, in processes that may die
    shrink, keeping               what was found, made small and kept

The seed is printed, so that what was found is found again: `--seed S --first N --graphs 1`.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from engine import registry
from tests.fuzz.children import DEATH, Drawn, campaign, tried_alone
from tests.fuzz.graphs import Request, random_request
from tests.fuzz.keeping import Kept, kept_files
from tests.fuzz.shrink import shrunk
from tests.fuzz.tiers import Way, ways
from tests.fuzz.trying import Finding

#: seconds in which a finding is made small
SHRINKING: Final = 120.0
#: seconds from one line to the next
SAID_EVERY: Final = 60.0
#: findings of one request that are printed
MOST_SAID: Final = 4


@dataclass
class Report:
    """What has been done so far."""

    seed: int
    graphs: int = 0
    runs: int = 0
    failures: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    ran: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)

    def count(self, drawn: Drawn) -> None:
        """One more request."""
        self.graphs += 1
        tried = drawn.tried
        self.calls[random_request(self.seed, drawn.number).call] += 1
        self.runs += len({way for _, way in tried.ran})
        self.ran.update(tried.ran)
        if tried.refused is not None:
            self.refused[tried.refused.code] += 1

    @property
    def line(self) -> str:
        """The most important of it."""
        return f"seed {self.seed}: {self.graphs} graphs, {self.runs} times run some way, {self.failures} failures"

    def __str__(self) -> str:
        ops = {name for name in registry().ops if name not in ("input", "parameter")}
        names = [way.name for way in ways()[1:]]
        pairs = sum((op, name) in self.ran for op in ops for name in names)
        missing = sorted(op for op in ops if not any((op, name) in self.ran for name in names))
        lines = [
            self.line,
            f"calls: {', '.join(f'{name} {n}' for name, n in self.calls.most_common())}",
            f"refused: {', '.join(f'{code} {n}' for code, n in self.refused.most_common()) or 'none'}",
            f"ops and ways: {pairs} of {len(ops) * len(names)}; ops never run: {', '.join(missing) or 'none'}",
        ]
        return "\n".join(lines)


def main() -> int:
    """Try, print, and keep what fails; 1 where anything did."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to go on (default %(default)g)")
    parser.add_argument("--graphs", type=int, default=10**9, help="requests to end after")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32), help="by default a new one each time")
    parser.add_argument("--first", type=int, default=0, help="the number of the first request")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at work (default %(default)s)")
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"), help="where to write what is found")
    parser.add_argument("--kept", action="store_true", help="try what is kept, and nothing else")
    stated = parser.parse_args()
    with tempfile.TemporaryDirectory() as kernels:
        failures = try_kept(Path(kernels)) if stated.kept else try_random(stated, Path(kernels))
    return 1 if failures else 0


def try_kept(folder: Path) -> int:
    """Try what was found before, every way there is; how many of them fail again."""
    failures = 0
    for path in kept_files():
        kept = Kept.read(path)
        findings = kept.differs(tried_alone(kept.request, ways(), folder, kept.results))
        failures += bool(findings)
        for finding in findings:
            print(f"{path.name}: {finding.way}: {finding.said}")
    print(f"{len(kept_files())} kept, {failures} failures")
    return failures


def try_random(stated: argparse.Namespace, folder: Path) -> int:
    """Try what is drawn, and keep what fails; how many do."""
    print(f"seed {stated.seed}", flush=True)
    report, until = Report(stated.seed), time.monotonic() + stated.seconds
    said = time.monotonic()

    def ended() -> bool:
        return time.monotonic() > until or report.graphs >= stated.graphs

    for drawn in campaign(stated.seed, stated.first, stated.jobs, folder, ended):
        report.count(drawn)
        if drawn.tried.findings:
            report.failures += 1
            found(report.seed, drawn, stated.findings, folder)
        if time.monotonic() > said + SAID_EVERY:
            print(report.line, flush=True)
            said = time.monotonic()
    print(report)
    return report.failures


def found(seed: int, drawn: Drawn, findings: Path, folder: Path) -> None:
    """Say what was found, make it small, and write it down."""
    request = random_request(seed, drawn.number)
    print(f"seed {seed}, number {drawn.number}, {request.call}:", flush=True)
    for finding in drawn.tried.findings[:MOST_SAID]:
        print(f"  {finding.way}: {finding.said}", flush=True)
    chosen = failing_ways(drawn.tried.findings)

    def fails(candidate: Request) -> bool:
        again = tried_alone(candidate, chosen, folder)
        return any(one.way in {DEATH, *(way.name for way in chosen)} for one in again.findings)

    small = shrunk(request, fails, SHRINKING) if fails(request) else request
    again = tried_alone(small, chosen, folder)
    said = "; ".join(f"{one.way}: {one.said}" for one in (again.findings or drawn.tried.findings)[:3])
    findings.mkdir(parents=True, exist_ok=True)
    path = findings / f"{seed}-{drawn.number}.json"
    Kept(said, small, again.refused, again.results).write(path)
    print(f"  kept as {path}: {[node['op'] for node in small.body['graph']['nodes']]}", flush=True)


def failing_ways(findings: list[Finding]) -> list[Way]:
    """Those to try again: all, where a process died."""
    named = {finding.way for finding in findings}
    chosen = [way for way in ways() if way.name in named or way.family in {w.family for w in ways() if w.name in named}]
    return list(ways()) if DEATH in named or not chosen else chosen


if __name__ == "__main__":
    sys.exit(main())
