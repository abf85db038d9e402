"""Run the conformance cases against all clients: `python -m clients.conformance.run`.

Print a line for each failed case and one for each language. The exit status is 1 if a case fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from clients.conformance.cases import KINDS, Case, cases
from clients.conformance.faults import caught, faults_of
from clients.conformance.languages import LANGUAGES
from clients.conformance.programs import ProgramError, build
from clients.conformance.verdicts import Servers, servers, verdicts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    options = _arguments(arguments)
    chosen = list(cases(options.kind or KINDS, options.case))
    with servers(live=any(case["kind"] == "live" for case in chosen), future=options.future) as running:
        if options.faults:
            return 0 if _all_caught(options.faults, chosen, running) else 1
        passed = [_passes(name, chosen, running) for name in options.only or LANGUAGES]
    return 0 if chosen and all(passed) else 1


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m clients.conformance.run", description=__doc__)
    parser.add_argument("--only", action="append", choices=LANGUAGES, help="this language; more than once for several")
    parser.add_argument("--kind", action="append", choices=KINDS, help="the cases of this kind")
    parser.add_argument("--case", default="", metavar="PREFIX", help="the cases whose id begins so")
    parser.add_argument("--future", action="store_true", help="ask servers that have grown")
    parser.add_argument("--faults", choices=LANGUAGES, help="make mistakes in this client, and have each caught")
    return parser.parse_args(arguments)


def _passes(name: str, chosen: Sequence[Case], running: Servers) -> bool:
    """Return whether a client passes all cases, and print those that it fails."""
    try:
        build(LANGUAGES[name])
    except (ProgramError, OSError) as error:
        print(f"{name}: cannot be built: {error}")
        return False
    failed = 0
    for verdict in verdicts(LANGUAGES[name], chosen, running):
        if verdict.fault is not None:
            failed += 1
            print(f"{name}: {verdict.case['id']}: {verdict.fault}", flush=True)
    print(f"{name}: {len(chosen)} cases, {failed} failed", flush=True)
    return not failed


def _all_caught(name: str, chosen: Sequence[Case], running: Servers) -> bool:
    """Return whether every seeded fault of a language is caught, and print the case that catches it."""
    build(LANGUAGES[name])
    missed = 0
    for fault in faults_of(LANGUAGES[name]):
        verdict = caught(LANGUAGES[name], fault, chosen, running)
        missed += verdict is None
        shown = "NOT CAUGHT" if verdict is None else f"caught by {verdict.case['id']}: {verdict.fault}"
        print(f"{name}: {fault.name}: {shown}", flush=True)
    return not missed


if __name__ == "__main__":
    sys.exit(main())
