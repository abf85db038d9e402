"""Child of a replica: `gradserve serve` in a process of its own, whole, and ended with the replica."""

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
from service.core.process import ending_with_parent
from service.core.settings import NO_FOLDER, PREFIX, flag
from service.web.listening import bind_when_free, bound, place

#: what Ray sets for actors by the processors that they reserve, since a server divides those of the machine itself;
#: and the token of Ray's control plane, which a server has no use for
_OF_RAY: Final = ("OMP_NUM_THREADS", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
#: seconds within which the server of a replica before this one gives up its address
_HANDING_OVER: Final = 60.0
#: seconds within which a server is ready, and answers whoever asks for its health
_STARTING: Final = 120.0
_PATIENCE: Final = 2.0
_GLANCE: Final = 0.1


class ServerChild:
    """A server on an address of its own.

    The thread that starts it stays with it: the kernel ends a child with the thread that made it, and no other thread
    of a replica is known to last.
    """

    def __init__(self, host: str, settings: Mapping[str, Any]) -> None:
        """`settings` are those of the server, by their names.

        Raises RuntimeError where it does not get ready, OSError where the port of its metrics stays taken.
        """
        self._settings = {**settings, **_address(host, settings), "metrics_port": _metrics_port(settings)}
        self._begun = Event()
        self._process: subprocess.Popen[str] | None = None
        self._said = self._metrics = ""
        self._keeping = Thread(target=self._keep, daemon=True, name="gradserve server")
        self._keeping.start()
        self._begun.wait()
        port = self._said.rpartition(":")[2]
        if not port.isdigit():
            raise RuntimeError("the server does not start; the log of the replica has what it said")
        self.address: NodeAddress = (host, int(port))
        self._await_ready()

    def _keep(self) -> None:
        options = [part for name, value in self._settings.items() for part in (flag(name), str(value))]
        try:
            with subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-m", "service", "serve", *options], stdout=subprocess.PIPE, text=True,
                env=environment(os.environ), preexec_fn=ending_with_parent(signal.SIGTERM),  # noqa: PLW1509 - see there
            ) as self._process:  # fmt: skip
                assert self._process.stdout is not None
                self._said = self._process.stdout.readline().strip()
                self._metrics = self._process.stdout.readline().strip().rpartition(" ")[2]
                self._begun.set()
                self._process.wait()
        finally:
            self._begun.set()

    def _await_ready(self) -> None:
        end = time.monotonic() + _STARTING
        while time.monotonic() < end:
            with suppress(httpx.HTTPError):
                if self._ask("/health/ready").status_code == 200:
                    return
            if self.status() is not None:
                raise RuntimeError(f"the server ended with status {self.status()} before it was ready")
            time.sleep(_GLANCE)
        self.end(0.0)
        raise RuntimeError(f"the server is not ready within {_STARTING:g} s")

    def status(self) -> int | None:
        """Return the status that it ended with; None while it runs."""
        assert self._process is not None
        return self._process.poll()

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None
        return self._process.pid

    def check(self) -> None:
        """Return where it answers. Raises RuntimeError where it has ended, httpx.HTTPError where it does not answer."""
        if self.status() is not None:
            raise RuntimeError(f"the server ended with status {self.status()}")
        self._ask("/health/live").raise_for_status()

    def work(self) -> dict[str, float]:
        """Tasks that it has, those that wait, and its workers, of its metrics. Raises httpx.HTTPError."""
        figures = dict.fromkeys(("running", "queued", "workers"), 0.0)
        for family in text_string_to_metric_families(_get(self._metrics).text):
            name = family.name.removeprefix(PREFIX.lower())
            if name in figures:
                figures[name] = sum(sample.value for sample in family.samples)
        return figures

    def end(self, grace: float) -> None:
        """Have it finish what it has within so many seconds, and end it by force after these."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._keeping.join()

    def _ask(self, path: str) -> httpx.Response:
        return _get(f"http://{place(*self.address)}{path}")


def _get(url: str) -> httpx.Response:
    # By name of the loopback: a server that asks for no key answers to no other name.
    return httpx.get(url, headers={"Host": "localhost"}, timeout=_PATIENCE, trust_env=False)


def _address(host: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Choose where it listens; one that shares its state has to say so before it does, and so gets a free port."""
    port = settings.get("port", 0)
    if settings.get("cluster") != "on":
        return {"host": host, "port": port}
    if not port:
        with closing(bound(host, 0)) as listening:
            port = listening.getsockname()[1]
    return {"cluster_address": f"http://{place(host, port)}", "host": host, "port": port}


def _metrics_port(settings: Mapping[str, Any]) -> int:
    """Wait for the stated port of the server's metrics to be free; returns it, or 0 for any free one."""
    port = settings.get("metrics_port")
    if port in (None, "", NO_FOLDER, 0, "0"):
        return 0
    bind_when_free(str(settings.get("metrics_host", "127.0.0.1")), int(port), _HANDING_OVER).close()
    return int(port)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Leave out variables that mean the replica. Cards that it was given stay."""
    return {name: value for name, value in variables.items() if name not in _OF_RAY}
