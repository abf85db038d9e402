"""A fleet in a cluster of Ray's own: what dies is replaced, and callers are answered meanwhile.

Run by test_fleet.py in namespaces of its own for the network and for processes; prints what was found as JSON.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
# As in deploy: all of Ray's processes, and nobody else, have its token.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token_hex(32))

import httpx
import ray
from ray import serve
from ray.cluster_utils import Cluster

from service.cluster.fleet.application import ingress
from service.cluster.fleet.application import servers as servers_of

PORT, METRICS = 18_800, 18_805
CALLERS = 4
#: of a request: on a machine that does much else beside it, nothing here is late
TIMEOUT_MS = 120_000
SETTINGS = {
    "timeout_ms": TIMEOUT_MS, "workers": 1, "device": "cpu", "state": "memory", "insecure": "on",
    "log_level": "error", "cache_dir": "none",
}  # fmt: skip
GRAPH = {"nodes": [{"op": "input"}, {"op": "square", "operands": [0]}]}
REQUEST = {"graph": GRAPH, "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [1], "data": [3]}}]}
MACHINE = {"num_cpus": 2, "object_store_memory": 100 << 20}
#: seconds for which callers are answered without Ray's head
HEADLESS = 31.0


def deploy(version: int) -> None:
    """Two servers; another version has another setting, so that both are replaced."""
    stated = servers_of({**SETTINGS, "shutdown_grace": 10 + version})
    stated._bound_deployment = stated._bound_deployment.options(num_replicas=2)
    serve.run(stated, name="servers", route_prefix=None)


def processes(like: str) -> set[int]:
    """Those whose command line is like this."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found |= {int(folder.name)} if re.search(like, command) else set()
    return found


def servers() -> set[int]:
    return processes("-m service serve ")


def haproxies() -> set[int]:
    return processes("/haproxy.cfg -db")


def nodes() -> set[int]:
    return processes("ServeReplica:servers:Node")


def ready() -> int:
    """How many servers HAProxy sends requests to."""
    try:
        told = httpx.get(f"http://127.0.0.1:{METRICS}/metrics", timeout=5, trust_env=False).text
    except httpx.HTTPError:
        return 0
    return len(re.findall(r'haproxy_server_status\{proxy="servers",server="gs\d+",state="UP"\} 1', told))


class Callers:
    """Some who call all the time, and count what they get."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        #: what those were told who were not answered
        self.refused: set[str] = set()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(number,)) for number in range(CALLERS)]
        for each in self._threads:
            each.start()

    def _call(self, number: int) -> None:
        stated = {"Authorization": f"Bearer {number}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{PORT}", headers=stated, timeout=180, trust_env=False) as client:
            while not self._over.is_set():
                try:
                    got = client.post("/v1/forward", json=REQUEST)
                    right = got.status_code != 200 or got.json()["values"][0]["tensor"]["data"] == [9.0]
                    self.counts[str(got.status_code) if right else "wrong"] += 1
                    if got.status_code != 200:
                        self.refused.add(f"{got.status_code} {got.json()['detail']}")
                except httpx.HTTPError as error:
                    self.counts[type(error).__name__] += 1
                self._over.wait(0.02)

    def stop(self) -> dict[str, int]:
        self._over.set()
        for each in self._threads:
            each.join()
        return dict(self.counts)


def await_(holds: Callable[[], bool], what: str, seconds: float = 180.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"not within {seconds:g} s: {what}")
        time.sleep(0.1)


def during(what: Callable[[], None], until: Callable[[], bool], name: str) -> dict[str, Any]:
    """What callers get while something happens, until it is over."""
    callers, began = Callers(), time.monotonic()
    try:
        what()
        await_(until, name)
    finally:
        took, counts = time.monotonic() - began, callers.stop()
        print(name, round(took, 1), counts, sorted(callers.refused), file=sys.stderr, flush=True)
    return {"seconds": round(took, 1), "answers": counts}


def kill(pid: int) -> Callable[[], None]:
    return lambda: os.kill(pid, signal.SIGKILL)


def replaced(before: set[int], after: Callable[[], set[int]]) -> bool:
    """Whether there are two others: HAProxy alone may not have seen yet that one is gone."""
    return before.isdisjoint(after()) and len(whole()) == 2 and ready() == 2


def settled() -> bool:
    """Whether Serve has seen all replicas run: one that it takes to be starting still is killed by an update."""
    return all(each.status == "RUNNING" for each in serve.status().applications.values())


def started() -> Cluster:
    """Two machines, a server on each, and an ingress on the head, which is not lost with the other one."""
    cluster = Cluster(
        initialize_head=True, head_node_args={**MACHINE, "resources": {"ingress": 1}, "include_dashboard": False}
    )
    cluster.add_node(**MACHINE)
    ray.init(address=cluster.address, log_to_driver=False)
    serve.start(proxy_location="Disabled")
    stated = {"port": PORT, "metrics": f"127.0.0.1:{METRICS}", "timeout_ms": TIMEOUT_MS}
    front = ingress(stated)
    placed = {"num_cpus": 0.1, "resources": {"ingress": 1}}
    front._bound_deployment = front._bound_deployment.options(ray_actor_options=placed)
    serve.run(front, name="ingress", route_prefix=None)
    deploy(1)
    return cluster


def stopped(cluster: Cluster) -> None:
    """End all of it in order."""
    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


def main() -> None:
    """What callers get while one thing after the other is lost."""
    cluster = started()
    second = next(node for node in cluster.worker_nodes)
    await_(lambda: ready() == 2, "two servers")
    found: dict[str, Any] = {}

    gone = whole()
    first = {min(gone)}
    found["server"] = during(kill(min(gone)), lambda: replaced(first, servers), "a server is replaced")
    actor = {min(nodes())}
    child = {pid for pid in whole() if parent(pid) in actor}
    found["replica"] = during(
        kill(min(actor)), lambda: replaced(actor, nodes) and child.isdisjoint(servers()), "a replica is replaced"
    )
    await_(settled, "Serve has seen that all replicas run")
    before = servers()
    found["update"] = during(lambda: deploy(2), lambda: replaced(before, servers), "an update")
    fallen = haproxies()
    kill(min(fallen))()
    await_(lambda: haproxies().isdisjoint(fallen) and ready() == 2, "HAProxy is replaced")
    found["raylet"] = during(
        lambda: cluster.remove_node(second, allow_graceful=False), lambda: ready() == 1, "a machine is gone"
    )
    began = time.monotonic()
    found["head"] = during(
        cluster.head_node.kill_gcs_server, lambda: time.monotonic() - began > HEADLESS, "serving without a head"
    )
    print(json.dumps(found), flush=True)
    os._exit(0)  # without its head, Ray does not end by itself; all processes end with the namespace


def whole() -> set[int]:
    """Of the processes of servers, those that replicas have started."""
    all_ = servers()
    return {pid for pid in all_ if parent(pid) not in all_}


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return 0


if __name__ == "__main__":
    main()
