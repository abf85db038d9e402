"""Child process of a replica: a complete `gradserve serve`, which ends with the replica."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from threading import Event, Thread
from typing import Any, Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

from service.cluster.ingress.table import NodeAddress
from service.core.process import parent_death_signal
from service.core.settings import NO_VALUE, PREFIX, flag
from service.web.listening import bind_socket, bind_when_free, host_and_port

#: variables of Ray that a server must not inherit: the number of threads, since a server divides the machine's
#: processors itself, and the token of Ray's control plane
_RAY_VARIABLES: Final = ("OMP_NUM_THREADS", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
#: seconds for the server of the previous replica to release its address
_HANDOVER_SECONDS: Final = 60.0
#: seconds for a server to become ready, seconds for it to answer a health check, and seconds between two checks
_START_SECONDS: Final = 120.0
_TIMEOUT_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.1


class ServerChild:
    """A server process on an address of its own.

    The thread that starts the process waits for it: the kernel ends a child with the thread that made it, and other
    threads of a replica may end earlier.
    """

    def __init__(self, host: str, settings: Mapping[str, Any]) -> None:
        """`settings` are those of the server, by name.

        Raises RuntimeError if it does not become ready, OSError if the port of its metrics stays in use.
        """
        self._settings = {**settings, **_address(host, settings), "metrics_port": _metrics_port(settings)}
        self._started = Event()
        self._process: subprocess.Popen[str] | None = None
        self._announcement = self._metrics_url = ""
        self._thread = Thread(target=self._run, daemon=True, name="gradserve server")
        self._thread.start()
        self._started.wait()
        port = self._announcement.rpartition(":")[2]
        if not port.isdigit():
            raise RuntimeError("the server does not start; see the log of the replica")
        self.address: NodeAddress = (host, int(port))
        self._await_ready()

    def _run(self) -> None:
        options = [part for name, value in self._settings.items() for part in (flag(name), str(value))]
        try:
            with subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-m", "service", "serve", *options], stdout=subprocess.PIPE, text=True,
                env=environment(os.environ), preexec_fn=parent_death_signal(signal.SIGTERM),  # noqa: PLW1509 - see there
            ) as self._process:  # fmt: skip
                assert self._process.stdout is not None
                # The server prints its address and that of its metrics once it accepts connections.
                self._announcement = self._process.stdout.readline().strip()
                self._metrics_url = self._process.stdout.readline().strip().rpartition(" ")[2]
                self._started.set()
                self._process.wait()
        finally:
            self._started.set()

    def _await_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            with suppress(httpx.HTTPError):
                if self._get_path("/health/ready").status_code == 200:
                    return
            if self.status() is not None:
                raise RuntimeError(f"the server exited with status {self.status()} before it was ready")
            time.sleep(_POLL_SECONDS)
        self.end(0.0)
        raise RuntimeError(f"the server was not ready within {_START_SECONDS:g} s")

    def status(self) -> int | None:
        """Return the exit status of the server, None while it runs."""
        assert self._process is not None
        return self._process.poll()

    @property
    def pid(self) -> int:
        """Process id of the server."""
        assert self._process is not None
        return self._process.pid

    def check(self) -> None:
        """Check that the server answers. Raises RuntimeError if it has ended, httpx.HTTPError if it does not answer."""
        if self.status() is not None:
            raise RuntimeError(f"the server exited with status {self.status()}")
        self._get_path("/health/live").raise_for_status()

    def work(self) -> dict[str, float]:
        """Return the running and queued tasks and the workers, from the server's metrics. Raises httpx.HTTPError."""
        figures = dict.fromkeys(("running", "queued", "workers"), 0.0)
        for family in text_string_to_metric_families(_get(self._metrics_url).text):
            name = family.name.removeprefix(PREFIX.lower())
            if name in figures:
                figures[name] = sum(sample.value for sample in family.samples)
        return figures

    def end(self, grace: float) -> None:
        """Let the server finish within `grace` seconds, then kill it."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join()

    def _get_path(self, path: str) -> httpx.Response:
        return _get(f"http://{host_and_port(*self.address)}{path}")


def _get(url: str) -> httpx.Response:
    # Host is localhost: a server without keys answers to no other name.
    return httpx.get(url, headers={"Host": "localhost"}, timeout=_TIMEOUT_SECONDS, trust_env=False)


def _address(host: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Choose the server's address. In a cluster it must know its port before it listens, so a free one is chosen."""
    port = settings.get("port", 0)
    if settings.get("cluster") != "on":
        return {"host": host, "port": port}
    if not port:
        with closing(bind_socket(host, 0)) as listening:
            port = listening.getsockname()[1]
    return {"cluster_address": f"http://{host_and_port(host, port)}", "host": host, "port": port}


def _metrics_port(settings: Mapping[str, Any]) -> int:
    """Wait for the configured port of the server's metrics to be free; return it, or 0 for any free one."""
    port = settings.get("metrics_port")
    if port in (None, "", NO_VALUE, 0, "0"):
        return 0
    bind_when_free(str(settings.get("metrics_host", "127.0.0.1")), int(port), _HANDOVER_SECONDS).close()
    return int(port)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Remove variables that are meant for the replica. GPUs that it was given stay visible."""
    return {name: value for name, value in variables.items() if name not in _RAY_VARIABLES}
