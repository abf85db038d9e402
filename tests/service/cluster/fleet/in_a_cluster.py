"""A fleet in a Ray cluster: components that die are replaced, and callers are answered meanwhile.

Run by test_fleet.py in its own network and process namespaces; prints the results as JSON.
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
# As in deploy, only Ray's processes have its token.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token_hex(32))

import httpx
import ray
from ray import serve
from ray.cluster_utils import Cluster

from service.cluster.fleet.application import ingress
from service.cluster.fleet.application import servers as servers_of

PORT, METRICS = 18_800, 18_805
CALLERS = 4
#: timeout of a request, long enough for a busy machine
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
    """Deploy two servers; another version has another setting, so both are replaced."""
    stated = servers_of({**SETTINGS, "shutdown_grace": 10 + version})
    stated._bound_deployment = stated._bound_deployment.options(num_replicas=2)
    serve.run(stated, name="servers", route_prefix=None)


def processes(like: str) -> set[int]:
    """Find the processes whose command line matches a pattern."""
    pids = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            pids |= {int(folder.name)} if re.search(like, command) else set()
    return pids


def servers() -> set[int]:
    return processes("-m service serve ")


def haproxies() -> set[int]:
    return processes("/haproxy.cfg -db")


def nodes() -> set[int]:
    return processes("ServeReplica:servers:Node")


def ready() -> int:
    """Count the servers to which HAProxy sends requests."""
    try:
        metrics = httpx.get(f"http://127.0.0.1:{METRICS}/metrics", timeout=5, trust_env=False).text
    except httpx.HTTPError:
        return 0
    return len(re.findall(r'haproxy_server_status\{proxy="servers",server="gs\d+",state="UP"\} 1', metrics))


class Callers:
    """Clients that call continuously and count their answers."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        #: answers to refused calls
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
                    response = client.post("/v1/forward", json=REQUEST)
                    right = response.status_code != 200 or response.json()["values"][0]["tensor"]["data"] == [9.0]
                    self.counts[str(response.status_code) if right else "wrong"] += 1
                    if response.status_code != 200:
                        self.refused.add(f"{response.status_code} {response.json()['detail']}")
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
    """Count the answers to callers during an event, until a condition holds."""
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
    """Return whether two servers have replaced the earlier ones; HAProxy alone may not have noticed a death yet."""
    return before.isdisjoint(after()) and len(whole()) == 2 and ready() == 2


def settled() -> bool:
    """Return whether Serve reports all replicas as running; an update kills those that it believes to be starting."""
    return all(each.status == "RUNNING" for each in serve.status().applications.values())


def started() -> Cluster:
    """Start two machines with a server each, and an ingress on the head, which survives the other machine."""
    cluster = Cluster(
        initialize_head=True, head_node_args={**MACHINE, "resources": {"ingress": 1}, "include_dashboard": False}
    )
    cluster.add_node(**MACHINE)
    ray.init(address=cluster.address, log_to_driver=False)
    serve.start(proxy_location="Disabled")
    stated = {"port": PORT, "metrics": f"127.0.0.1:{METRICS}", "timeout_ms": TIMEOUT_MS}
    front = ingress(stated)
    options = {"num_cpus": 0.1, "resources": {"ingress": 1}}
    front._bound_deployment = front._bound_deployment.options(ray_actor_options=options)
    serve.run(front, name="ingress", route_prefix=None)
    deploy(1)
    return cluster


def stopped(cluster: Cluster) -> None:
    """Stop everything in order."""
    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


def main() -> None:
    """Count the answers to callers while one component after the other is lost."""
    cluster = started()
    second = next(node for node in cluster.worker_nodes)
    await_(lambda: ready() == 2, "two servers")
    results: dict[str, Any] = {}

    servers_before = whole()
    first = {min(servers_before)}
    results["server"] = during(kill(min(servers_before)), lambda: replaced(first, servers), "a server is replaced")
    actor = {min(nodes())}
    child = {pid for pid in whole() if parent(pid) in actor}
    results["replica"] = during(
        kill(min(actor)), lambda: replaced(actor, nodes) and child.isdisjoint(servers()), "a replica is replaced"
    )
    await_(settled, "Serve has seen that all replicas run")
    before = servers()
    results["update"] = during(lambda: deploy(2), lambda: replaced(before, servers), "an update")
    fallen = haproxies()
    kill(min(fallen))()
    await_(lambda: haproxies().isdisjoint(fallen) and ready() == 2, "HAProxy is replaced")
    results["raylet"] = during(
        lambda: cluster.remove_node(second, allow_graceful=False), lambda: ready() == 1, "a machine is gone"
    )
    began = time.monotonic()
    results["head"] = during(
        cluster.head_node.kill_gcs_server, lambda: time.monotonic() - began > HEADLESS, "serving without a head"
    )
    print(json.dumps(results), flush=True)
    os._exit(0)  # without its head, Ray does not end by itself; all processes end with the namespace


def whole() -> set[int]:
    """Find the server processes that replicas have started."""
    all_ = servers()
    return {pid for pid in all_ if parent(pid) not in all_}


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return 0


if __name__ == "__main__":
    main()
