"""Server processes of a cluster that tests kill, pause and restart at their addresses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_hex
from socket import socket
from typing import Any

import httpx

ROOT = Path(__file__).parents[3]
ANNOUNCEMENT = "gradserve listening on "
SECRET = "none-but-these-servers-know-this-secret"
#: codes during a takeover: the call was not executed, its outcome is unknown, or it is still under way
PASSING = ("not_ready", "unconfirmed", "conflict", "shutting_down")
_TRIES = 200
ONE: dict[str, Any] = {"dtype": "float64", "shape": [], "data": [1.0]}


class Node:
    """Server of the cluster at a place, which a test must end."""

    def __init__(self, place: str, port: int, *options: str, **variables: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        stated = ["--state", place, "--port", str(port), "--cluster", "on", "--cluster-address", self.url]
        command = [sys.executable, "-m", "service", "serve", *stated, "--workers", "1", "--compile", "off", *options]
        environment = {**os.environ, "GRADSERVE_CLUSTER_SECRET": SECRET, "GRADSERVE_LOG_LEVEL": "warning", **variables}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
        self.client = httpx.Client(base_url=self.url, timeout=30)

    def await_start(self) -> Node:
        """Wait until the server accepts requests."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith(ANNOUNCEMENT)
        return self

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the front process."""
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Stop the server and wait for its end."""
        self.process.send_signal(number)
        self.process.send_signal(signal.SIGCONT)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.client.close()

    def figure(self, name: str) -> float:
        """Read the value of a metric."""
        lines = self.client.get("/metrics").text.splitlines()
        return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))

    def asked(self, method: str, path: str, body: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
        """Send a request, and repeat it during takeovers; writes are executed once."""
        if method not in ("GET", "HEAD"):
            headers = {"Idempotency-Key": token_hex(8)} | headers
        for _ in range(_TRIES):
            answer = self.client.request(method, path, json=body, headers=headers)
            if answer.status_code < 400 or answer.json()["code"] not in PASSING:
                break
        return answer

    def put(self, name: str, value: float, **headers: str) -> httpx.Response:
        """Store a number."""
        return self.asked("PUT", f"/v1/tensors/{name}", {**ONE, "data": [value]}, **headers)

    def get(self, name: str) -> httpx.Response:
        """Get a tensor."""
        return self.asked("GET", f"/v1/tensors/{name}")

    def value(self, name: str) -> float:
        """Read a stored number."""
        number: float = self.get(name).json()["tensor"]["data"][0]
        return number

    def add_one(self, name: str, if_match: str | None = None, **headers: str) -> httpx.Response:
        """Add 1 to a stored number; with `if_match`, only if it still has this version."""
        return self.asked("POST", "/v1/forward", adding_one(name, if_match), **headers)


def adding_one(name: str, if_match: str | None = None) -> dict[str, Any]:
    """Build the request that adds 1 to a stored number."""
    nodes = [{"op": "input"}, {"op": "constant", "attrs": {"value": ONE}}, {"op": "add", "operands": [0, 1]}]
    store = {"node": 2, "tensor_id": name} | ({} if if_match is None else {"if_match": if_match})
    return {"graph": {"nodes": nodes}, "feeds": [{"node": 0, "tensor_id": name}], "outputs": [2], "store": [store]}


def free_port() -> int:
    """Find a port that is free at the moment."""
    with socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def owner_of(*nodes: Node) -> tuple[Node, Node]:
    """Return of two servers the one that owns a shard, and the other."""
    first, second = nodes
    return (first, second) if first.figure("gradserve_shards") else (second, first)


def raced(nodes: Sequence[Node], each: int) -> Counter[int]:
    """Count statuses of clients, one per server, that race to add 1 to the number that they have read, `each` times.

    A client that has read the last version gets a 200, and the number grows by one; all others must get a 412.
    """
    assert nodes[0].put("raced", 0).status_code < 300

    def client(node: Node) -> Counter[int]:
        statuses = Counter[int]()
        for _ in range(each):
            etag = node.get("raced").headers["etag"].strip('"')
            statuses[node.add_one("raced", etag).status_code] += 1
        return statuses

    with ThreadPoolExecutor(len(nodes)) as threads:
        return sum(threads.map(client, nodes), Counter[int]())
