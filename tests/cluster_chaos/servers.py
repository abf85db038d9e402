"""Four small servers, their store and two ingresses, each started by its command; an ingress restarts when it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from service.core.keys.caller import new_key
from service.store.objects import shard_of
from tests.cluster_chaos.network import HOST_ADDRESS, ROOT, Machine, make_switch
from tests.cluster_chaos.store import PATH
from tests.guarantees import processes
from tests.service.cluster.serving import ANNOUNCEMENT, SECRET
from tests.service.core.keys.cases import record, write

SERVERS, INGRESSES = 4, 2
PORT, METRICS, STORE_PORT = 8000, 8405, 9000
#: the timeout of a request, shorter than in production, so that waits end within a run
TIMEOUT_MS = 8000
BUCKET, REGION = "chaos", "us-east-1"
#: namespaces of the callers' keys, each in a different shard
NAMESPACES = ("ada", "bob", "cleo", "dan")
assert len({shard_of(name, 16) for name in NAMESPACES}) == len(NAMESPACES)
_PATIENCE = 90.0


def await_(holds: Callable[[], bool], condition: str, seconds: float = _PATIENCE) -> None:
    """Poll until the condition holds. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds:g} s: {condition}")
        time.sleep(0.05)


class ChaosServer:
    """A server on a separate machine, which can be killed, paused and restarted."""

    def __init__(self, machine: Machine, variables: dict[str, str]) -> None:
        self.machine = machine
        self.url = f"http://{machine.address}:{PORT}"
        self._variables = variables
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the process without waiting."""
        options = ["--host", self.machine.address, "--port", str(PORT), "--cluster-address", self.url]
        options += ["--state", f"s3://{BUCKET}/of/gradserve", "--cluster", "on", "--timeout-ms", str(TIMEOUT_MS)]
        options += ["--workers", "1", "--compile", "off", "--device", "cpu", "--max-connections-per-client", "1024"]
        self._process = self.machine.start([sys.executable, "-m", "service", "serve", *options], self._variables)

    def start_double(self, address: str) -> int:
        """Start another server here that states the address of an existing one, and return its exit status."""
        options = ["--host", self.machine.address, "--port", str(PORT + 1), "--cluster-address", address]
        options += ["--state", f"s3://{BUCKET}/of/gradserve", "--cluster", "on", "--workers", "1", "--device", "cpu"]
        double = self.machine.start([sys.executable, "-m", "service", "serve", *options], self._variables)
        double.communicate()
        return double.returncode

    def await_start(self) -> None:
        """Return when the server listens. Raises RuntimeError if it does not start."""
        assert self._process is not None
        assert self._process.stdout is not None
        if not self._process.stdout.readline().startswith(ANNOUNCEMENT):
            raise RuntimeError("a server does not start")

    @property
    def pid(self) -> int:
        """The process ID of the front."""
        assert self._process is not None
        return self._process.pid

    @property
    def workers(self) -> list[int]:
        """The process IDs of the workers."""
        pids: list[int] = processes.workers(self.pid)
        return pids

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the front, and wait until it exits."""
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.send_signal(number)
        self._process.wait()
        self._process.stdout.close()

    def shards(self, key: str) -> int:
        """The number of shards that the server reports to own; 0 if it does not respond."""
        return self._total(key, "gradserve_shards")

    def moves(self, key: str) -> int:
        """The number of shards that the server reports to have opened; 0 if it does not respond."""
        return self._total(key, "gradserve_shard_moves_total")

    def _total(self, key: str, name: str) -> int:
        """The sum of the samples of a metric; 0 if the server does not respond."""
        try:
            headers = {"Authorization": f"Bearer {key}"}
            text = httpx.get(f"{self.url}/metrics", headers=headers, timeout=5, trust_env=False).text
        except httpx.HTTPError:
            return 0
        return sum(int(float(value)) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


class Ingress:
    """`gradserve ingress` in front of all servers, restarted when it ends, as a supervisor would."""

    def __init__(self, number: int, servers: list[ChaosServer]) -> None:
        self._metrics = METRICS + number
        nodes = [word for server in servers for word in ("--node", server.url.removeprefix("http://"))]
        options = ["--host", HOST_ADDRESS, "--port", str(PORT + number), "--metrics-port", str(self._metrics)]
        options += ["--timeout-ms", str(TIMEOUT_MS)]
        self._command = [sys.executable, "-m", "service", "ingress", *nodes, *options]
        self._process: subprocess.Popen[bytes] | None = None
        self._over = False
        threading.Thread(target=self._supervise, daemon=True, name="supervisor of the ingress").start()

    def _supervise(self) -> None:
        while not self._over:
            with subprocess.Popen(self._command, cwd=ROOT, stdout=subprocess.DEVNULL) as self._process:
                self._process.wait()

    def kill(self) -> None:
        """Kill HAProxy with SIGKILL."""
        assert self._process is not None
        (haproxy,) = processes.children(self._process.pid)
        os.kill(haproxy, signal.SIGKILL)

    def stop(self) -> None:
        """Stop HAProxy without a restart."""
        self._over = True
        assert self._process is not None
        self._process.terminate()

    def ready(self) -> int:
        """The number of servers that the ingress sends requests to."""
        try:
            text = httpx.get(f"http://127.0.0.1:{self._metrics}/metrics", timeout=5, trust_env=False).text
        except httpx.HTTPError:
            return 0
        return len(re.findall(r'haproxy_server_status\{proxy="servers",server="gs\d+",state="UP"\} 1', text))


class Cluster:
    """All servers, the store and the ingresses, in the namespace of this process."""

    addresses = tuple((HOST_ADDRESS, PORT + number) for number in range(INGRESSES))

    def __init__(self) -> None:
        make_switch()
        self.folder = Path(tempfile.mkdtemp(prefix="gradserve-chaos-"))
        self.keys = {name: new_key() for name in NAMESPACES}
        file = write(self.folder / "keys.json", [record(name, key) for name, key in self.keys.items()])
        self.store_machine = Machine(0)
        variables = self._start_store() | {
            "GRADSERVE_CLUSTER_SECRET": SECRET, "GRADSERVE_KEYS_FILE": str(file), "GRADSERVE_LOG_LEVEL": "error",
            "GRADSERVE_CACHE_DIR": "none",
        }  # fmt: skip
        self.servers = [ChaosServer(Machine(number), variables) for number in range(1, SERVERS + 1)]
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.await_start()
        self.ingresses = [Ingress(number, self.servers) for number in range(INGRESSES)]
        self.settle()

    def _start_store(self) -> dict[str, str]:
        """Start the store, and return the environment variables for its clients."""
        address = self.store_machine.address
        command = [sys.executable, "-m", "tests.cluster_chaos.store", address, str(STORE_PORT)]
        self._store = self.store_machine.start(command, {})
        assert self._store.stdout is not None
        self._store.stdout.readline()
        url = f"http://{address}:{STORE_PORT}"
        access = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_REGION": REGION}
        httpx.put(f"{url}/{BUCKET}", timeout=60, trust_env=False).raise_for_status()
        return {**access, "AWS_ENDPOINT_URL": url}

    def misbehave(self, **addresses: list[str]) -> None:
        """Let the store misbehave towards servers, by their addresses; see `store`."""
        url = f"http://{self.store_machine.address}:{STORE_PORT}{PATH}"
        httpx.put(url, json=addresses, timeout=60, trust_env=False).raise_for_status()

    def settle(self) -> None:
        """Return when all servers get requests. Raises TimeoutError."""
        await_(lambda: all(each.ready() == SERVERS for each in self.ingresses), "all servers are ready again")

    def owner(self) -> ChaosServer:
        """The server that owns the most shards."""
        return max(self.servers, key=lambda server: server.shards(self.keys[NAMESPACES[0]]))

    def others(self, server: ChaosServer) -> list[ChaosServer]:
        """All servers but one."""
        return [each for each in self.servers if each is not server]

    def stop(self) -> None:
        """End all processes."""
        for ingress in self.ingresses:
            ingress.stop()
        for server in self.servers:
            server.end()
        self._store.kill()
        self._store.wait()
