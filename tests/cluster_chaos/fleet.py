"""Faults of Ray while callers continue: losing an actor, a raylet and the head.

`python -m tests.cluster_chaos.fleet FILE QUIET`.

Runs two servers under Ray, behind an ingress, in separate namespaces; writes rows into a file, and exits.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from pathlib import Path

from service.core.keys.caller import new_key
from tests.cluster_chaos.faults import Fault
from tests.cluster_chaos.run import observe, print_row
from tests.cluster_chaos.servers import NAMESPACES, TIMEOUT_MS
from tests.service.cluster.fleet import in_a_cluster as fleet
from tests.service.cluster.fleet.cluster_demo import BUCKET, start_s3
from tests.service.core.keys.cases import record, write


class Fleet:
    """Two Ray nodes with a server on each, and the ingress on the head node."""

    addresses = (("127.0.0.1", fleet.PORT),)

    def __init__(self) -> None:
        self.keys = {name: new_key() for name in NAMESPACES}
        folder = Path(tempfile.mkdtemp(prefix="gradserve-chaos-"))
        file = write(folder / "keys.json", [record(name, key) for name, key in self.keys.items()])
        start_s3()
        os.environ["GRADSERVE_KEYS_FILE"] = str(file)
        fleet.SETTINGS = {
            "timeout_ms": TIMEOUT_MS, "workers": 1, "device": "cpu", "compile": "off", "cache_dir": "none",
            "log_level": "error", "cluster": "on", "state": f"s3://{BUCKET}/of/gradserve",
        }  # fmt: skip
        self._ray = fleet.started()
        self._gone: set[int] = set()
        self._expected = 2
        self.settle()

    def faults(self) -> list[Fault]:
        """The faults in order. After the last one, Ray starts nothing."""
        return [
            Fault("`kill -9` of a Ray actor", self._kill_actor),
            Fault("`kill -9` of a raylet", self._kill_raylet),
            Fault("Ray's head is down", self._ray.head_node.kill_gcs_server, fleet.HEADLESS),
        ]

    def settle(self) -> None:
        """Return when all expected servers get requests, and the lost processes have exited."""
        fleet.await_(
            lambda: self._gone.isdisjoint(fleet.servers()) and fleet.ready() == self._expected == len(fleet.whole()),
            "all servers are ready again",
        )

    def _kill_actor(self) -> None:
        actor = min(fleet.nodes())
        self._gone = {pid for pid in fleet.whole() if fleet.parent(pid) == actor}
        fleet.kill(actor)()

    def _kill_raylet(self) -> None:
        self._expected = 1
        self._ray.remove_node(next(iter(self._ray.worker_nodes)), allow_graceful=False)


def main() -> None:
    """Run the faults in order."""
    file, quiet = Path(sys.argv[1]), float(sys.argv[2])
    chance, servers, rows = random.Random(0), Fleet(), []
    for fault in servers.faults():
        rows.append(observe(servers, fault, quiet, chance))
        print_row(rows[-1])
    file.write_text(json.dumps([row.as_json() for row in rows]), "utf-8")
    sys.stderr.flush()
    os._exit(0)  # without its head, Ray does not exit by itself; all processes end with the namespace


if __name__ == "__main__":
    main()
