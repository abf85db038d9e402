"""`make cluster-chaos`: inject one fault after the other into small servers behind HAProxy, while callers continue.

Writes a report of the responses to build/cluster_chaos.json. The exit status is 1 if an acknowledged write was lost, a
response was wrong, a history is not linearizable, or a status above 499 was not 503, 504 or 507.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.record import machine
from tests.cluster_chaos.network import ALONE, ROOT
from tests.service.cluster.fleet.test_fleet import ALONE as ALONE_WITH_ADDRESS

REPORT = ROOT / "build" / "cluster_chaos.json"
#: seconds that all faults take without the quiet times before and after each, and the number of faults
_FAULT_SECONDS, _FAULTS = 360.0, 21


def main() -> int:
    """Run all faults, and return the exit status."""
    arguments = _arguments()
    if sys.platform != "linux" or os.geteuid() != 0:
        sys.stderr.write("cluster-chaos creates network namespaces: run it as root on Linux\n")
        return 2
    quiet = str(max(2.0, (arguments.seconds - _FAULT_SECONDS) / (2 * _FAULTS)))
    machines = ["tests.cluster_chaos.machines", quiet, str(arguments.outage), str(arguments.seed), arguments.only]
    rows = rows_of(ALONE, machines)
    if find_spec("ray") is None:
        print("Ray is not installed (pip install 'gradserve[ray]'): its faults are skipped", file=sys.stderr)
    elif not arguments.only:
        rows += rows_of(ALONE_WITH_ADDRESS, ["tests.cluster_chaos.fleet", quiet])
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    report = {"when": when, "where": machine(), "load": round(os.getloadavg()[2], 1), "rows": rows}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=1), "utf-8")
    faults = [fault for row in rows for fault in row["faults"]]
    print(f"FAILED: {len(faults)} faults" if faults else "passed")
    return int(bool(faults))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="approximate duration of the whole run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="short names of faults, separated by commas, without those of Ray")
    parser.add_argument("--outage", type=float, default=30.0, help="seconds for which the store is unreachable")
    parser.add_argument("--output", type=Path, default=REPORT, help="the file that the report is written to")
    return parser.parse_args()


def rows_of(alone: Sequence[str], module: Sequence[str]) -> list[dict[str, Any]]:
    """Run a module in new namespaces, and return its rows. Raises SystemExit if the module fails."""
    with tempfile.TemporaryDirectory() as folder:
        file, (name, *words) = Path(folder, "rows.json"), module
        done = subprocess.run([*alone, sys.executable, "-m", name, str(file), *words], cwd=ROOT, check=False)
        if done.returncode:
            raise SystemExit(f"{name} ended with status {done.returncode}")
        rows: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
        return rows


if __name__ == "__main__":
    sys.exit(main())
