"""Run random requests on every execution path: `python -m tests.fuzz --seconds 600`.

    values, attributes            numbers, and attributes of ops
    drawing, functions, graphs    a request from a seed
    asking, written_out, tiers    its plan, equivalent plans, and the ways to run them
    differing                     the tolerance for their results
    trying, children              one request, and many, in processes that may crash
    shrink, keeping               findings, shrunk and stored

The seed is printed, so that a finding can be reproduced: `--seed S --first N --graphs 1`.
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

#: seconds for shrinking a finding
SHRINKING: Final = 120.0
#: seconds between lines of progress
PROGRESS_EVERY: Final = 60.0
#: most findings of one request that are printed
MAX_PRINTED: Final = 4


@dataclass
class Report:
    """The progress so far."""

    seed: int
    graphs: int = 0
    runs: int = 0
    failures: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    ran: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)

    def count(self, drawn: Drawn) -> None:
        """Count a request."""
        self.graphs += 1
        tried = drawn.tried
        self.calls[random_request(self.seed, drawn.number).call] += 1
        self.runs += len({way for _, way in tried.ran})
        self.ran.update(tried.ran)
        if tried.refused is not None:
            self.refused[tried.refused.code] += 1

    @property
    def line(self) -> str:
        """A summary line."""
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
    """Run the fuzzer, and store failures; return 1 if there were any."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to go on (default %(default)g)")
    parser.add_argument("--graphs", type=int, default=10**9, help="requests to end after")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32), help="by default a new one each time")
    parser.add_argument("--first", type=int, default=0, help="the number of the first request")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at work (default %(default)s)")
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"), help="where to write what is found")
    parser.add_argument("--kept", action="store_true", help="try what is kept, and nothing else")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as kernels:
        failures = try_stored(Path(kernels)) if arguments.kept else try_random(arguments, Path(kernels))
    return 1 if failures else 0


def try_stored(folder: Path) -> int:
    """Run the stored findings on every path; return the number that fail again."""
    failures = 0
    for path in kept_files():
        stored = Kept.read(path)
        findings = stored.differs(tried_alone(stored.request, ways(), folder, stored.results))
        failures += bool(findings)
        for finding in findings:
            print(f"{path.name}: {finding.way}: {finding.message}")
    print(f"{len(kept_files())} kept, {failures} failures")
    return failures


def try_random(arguments: argparse.Namespace, folder: Path) -> int:
    """Run random requests, and store failures; return their number."""
    print(f"seed {arguments.seed}", flush=True)
    report, until = Report(arguments.seed), time.monotonic() + arguments.seconds
    printed = time.monotonic()

    def ended() -> bool:
        return time.monotonic() > until or report.graphs >= arguments.graphs

    for drawn in campaign(arguments.seed, arguments.first, arguments.jobs, folder, ended):
        report.count(drawn)
        if drawn.tried.findings:
            report.failures += 1
            report_finding(report.seed, drawn, arguments.findings, folder)
        if time.monotonic() > printed + PROGRESS_EVERY:
            print(report.line, flush=True)
            printed = time.monotonic()
    print(report)
    return report.failures


def report_finding(seed: int, drawn: Drawn, findings: Path, folder: Path) -> None:
    """Print a finding, shrink it, and store it."""
    request = random_request(seed, drawn.number)
    print(f"seed {seed}, number {drawn.number}, {request.call}:", flush=True)
    for finding in drawn.tried.findings[:MAX_PRINTED]:
        print(f"  {finding.way}: {finding.message}", flush=True)
    chosen = failing_ways(drawn.tried.findings)

    def fails(candidate: Request) -> bool:
        again = tried_alone(candidate, chosen, folder)
        return any(one.way in {DEATH, *(way.name for way in chosen)} for one in again.findings)

    small = shrunk(request, fails, SHRINKING) if fails(request) else request
    again = tried_alone(small, chosen, folder)
    comment = "; ".join(f"{one.way}: {one.message}" for one in (again.findings or drawn.tried.findings)[:3])
    findings.mkdir(parents=True, exist_ok=True)
    path = findings / f"{seed}-{drawn.number}.json"
    Kept(comment, small, again.refused, again.results).write(path)
    print(f"  kept as {path}: {[node['op'] for node in small.body['graph']['nodes']]}", flush=True)


def failing_ways(findings: list[Finding]) -> list[Way]:
    """The ways to try again: all, if a process died."""
    named = {finding.way for finding in findings}
    chosen = [way for way in ways() if way.name in named or way.family in {w.family for w in ways() if w.name in named}]
    return list(ways()) if DEATH in named or not chosen else chosen


if __name__ == "__main__":
    sys.exit(main())
