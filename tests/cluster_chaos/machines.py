"""Faults of four servers, each on a separate machine.

`python -m tests.cluster_chaos.machines FILE QUIET OUTAGE SEED FAULTS`.

Needs an empty network namespace; writes rows into a file.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from tests.cluster_chaos.faults import Faults
from tests.cluster_chaos.run import observe, print_row
from tests.cluster_chaos.servers import Cluster


def main() -> None:
    """Run the named faults in order, or all of them."""
    file, quiet, outage, seed, names = sys.argv[1:]
    chance, cluster, rows = random.Random(int(seed)), Cluster(), []
    faults = Faults(cluster, float(outage)).all
    for name in names.split(",") if names else faults:
        rows.append(observe(cluster, faults[name], float(quiet), chance))
        print_row(rows[-1])
    cluster.stop()
    Path(file).write_text(json.dumps([row.as_json() for row in rows]), "utf-8")


if __name__ == "__main__":
    main()
