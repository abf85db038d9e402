"""`make cluster-chaos`: small servers behind HAProxy, and one fault after the other while callers go on.

Reports the answers to callers, and writes them to build/cluster_chaos.json. The exit status is 1 if something
acknowledged was lost, an answer was wrong, a history is not linearizable, or a status above 499 was not 503, 504, 507.
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
#: seconds that all faults take besides the quiet before and after each, and the number of faults
_TAKEN, _FAULTS = 220.0, 13


def main() -> int:
    """Run all faults, and return the exit status."""
    arguments = _arguments()
    if sys.platform != "linux" or os.geteuid() != 0:
        sys.stderr.write("the chaos makes namespaces, as root on Linux\n")
        return 2
    quiet = str(max(2.0, (arguments.seconds - _TAKEN) / (2 * _FAULTS)))
    machines = ["tests.cluster_chaos.machines", quiet, str(arguments.away), str(arguments.seed), arguments.only]
    rows = rows_of(ALONE, machines)
    if find_spec("ray") is None:
        print("without Ray (pip install 'gradserve[ray]'), nothing of its is killed", file=sys.stderr)
    elif not arguments.only:
        rows += rows_of(ALONE_WITH_ADDRESS, ["tests.cluster_chaos.fleet", quiet])
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    report = {"when": when, "where": machine(), "load": round(os.getloadavg()[2], 1), "rows": rows}
    arguments.kept.parent.mkdir(parents=True, exist_ok=True)
    arguments.kept.write_text(json.dumps(report, indent=1), "utf-8")
    faults = [fault for row in rows for fault in row["faults"]]
    print(f"NOT held: {len(faults)} faults" if faults else "held")
    return int(bool(faults))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="that all of it takes, about")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="faults of machines by their short names, with commas")
    parser.add_argument("--away", type=float, default=30.0, help="seconds for which the store is away")
    parser.add_argument("--kept", type=Path, default=REPORT, help="the file that is written")
    return parser.parse_args()


def rows_of(alone: Sequence[str], module: Sequence[str]) -> list[dict[str, Any]]:
    """Run a module in namespaces of its own, and return its rows. Raises SystemExit if the module fails."""
    with tempfile.TemporaryDirectory() as folder:
        file, (name, *words) = Path(folder, "rows.json"), module
        done = subprocess.run([*alone, sys.executable, "-m", name, str(file), *words], cwd=ROOT, check=False)
        if done.returncode:
            raise SystemExit(f"{name} ended with status {done.returncode}")
        rows: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
        return rows


if __name__ == "__main__":
    sys.exit(main())
