"""`make bench-cluster`: all rows, or those that are named, in rounds; and what was found, kept for the page."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Final

from benchmarks.cluster.kept import KEPT, holds, measured
from benchmarks.cluster.rows import rows
from benchmarks.cluster.stage import Stage
from benchmarks.record import ROOT, Results
from benchmarks.service.__main__ import FOLDER
from tests.service.cluster.fleet.test_fleet import ALONE

INSIDE: Final = "--inside"


def main() -> None:
    """Measure, print a line a row, and keep it."""
    parser = argparse.ArgumentParser(description="Time servers of a cluster beside one server.")
    parser.add_argument("rows", nargs="*", help="names of rows; default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a burst of load")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    stage, results = Stage(), Results(KEPT, "cpu")
    print(results.heading(), flush=True)
    try:
        for name, made in rows(stage, options.seconds).items():
            if not options.rows or name in options.rows:
                kept = measured(made(), options.rounds)
                verdict = "met" if holds(kept) else "missed"
                figures = " beside ".join(f"{kept[side]['median']:,.4g}" for side in ("first", "second"))
                sign = "≥" if kept["at_least"] else "≤"
                ratio = f"{kept['ratio']['median']:.3g} {sign} {kept['bound']:g}"
                print(f"{name:14} {figures} {kept['unit']}: {ratio}, {verdict}", flush=True)
                results.add("cluster", name, kept)
    finally:
        stage.close()
        for file in FOLDER.glob("*.body"):
            file.unlink()


if __name__ == "__main__":
    if INSIDE not in sys.argv:
        if sys.platform != "linux" or os.geteuid() != 0:
            raise SystemExit("this makes namespaces, for Ray, as root on Linux")
        command = [*ALONE, sys.executable, "-m", "benchmarks.cluster", INSIDE, *sys.argv[1:]]
        raise SystemExit(subprocess.run(command, cwd=ROOT, check=False).returncode)
    main()
