"""The servers that are compared, started when they are first needed: one by itself, two that share a store, HAProxy."""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Final
from urllib.error import HTTPError, URLError

from benchmarks.cluster.store import BUCKET
from benchmarks.service.servers import PATIENCE, Running, free, gradserve
from tests.service.cluster.serving import SECRET
from tests.service.store.moto_server import REGION

_INGRESS: Final = ["-m", "service", "ingress", "--metrics-port", "0", "--port"]


class Pair:
    """Two servers of a cluster, each with a worker, behind an ingress of theirs. To be closed."""

    def __init__(self, place: str, store: dict[str, str], cores: Sequence[int] = ()) -> None:
        """Where `cores` are given, each server has one of them, as it would have a machine."""
        self._place, self._store = place, store
        self._ports = (free(), free())
        self._cores = dict(zip(self._ports, cores, strict=False))
        self.ingress = ingress(*self._ports)
        self.servers = [self._started(port) for port in self._ports]
        await_ready(self.ingress.url)

    def _started(self, port: int) -> Running:
        url = f"http://127.0.0.1:{port}"
        shared = ["--state", self._place, "--cluster", "on", "--cluster-address", url, "--port", str(port)]
        stated = [*shared, "--workers", "1", "--ingress", self.ingress.url]
        with only({self._cores[port]} if self._cores else os.sched_getaffinity(0)):
            return gradserve(*stated, GRADSERVE_CLUSTER_SECRET=SECRET, **self._store)

    def owner(self) -> tuple[Running, Running]:
        """The one that has the shard of callers without keys, and the other."""
        first, second = self.servers
        return (first, second) if figure(first.url, "gradserve_shards") else (second, first)

    def replace(self, server: Running) -> None:
        """Start another one where it was."""
        place = self.servers.index(server)
        server.close()
        self.servers[place] = self._started(self._ports[place])

    def close(self) -> None:
        """End all three."""
        for running in (*self.servers, self.ingress):
            running.close()


class Stage:
    """All that runs for these rows. To be closed."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._deployed = self._stack.enter_context(ExitStack())

    def close(self) -> None:
        """End all of it."""
        self._stack.close()

    @cached_property
    def store(self) -> dict[str, str]:
        """Where an S3 of this machine is, as variables of a server."""
        running = self._stack.enter_context(Running([sys.executable, "-m", "benchmarks.cluster.store"]))
        access = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_REGION": REGION}
        return {**access, "AWS_ENDPOINT_URL": running.url}

    def pair(self, name: str, cores: Sequence[int] = ()) -> Pair:
        """Two servers at a place of this name, with a core each where cores are given."""
        made = Pair(f"s3://{BUCKET}/{name}", self.store, cores)
        self._stack.callback(made.close)
        return made

    @cached_property
    def shared(self) -> Pair:
        """The pair of most rows."""
        return self.pair("shared")

    @cached_property
    def apart(self) -> Running:
        """A server at a place of its own in the same store, without a cluster."""
        alone = ["--state", f"s3://{BUCKET}/apart", "--workers", "1"]
        return self._stack.enter_context(gradserve(*alone, **self.store))

    @cached_property
    def alone(self) -> Running:
        """A server that keeps nothing, with a worker for each core."""
        return self._stack.enter_context(gradserve("--workers", str(len(os.sched_getaffinity(0)))))

    def before(self, *urls: str) -> Running:
        """An ingress before servers."""
        running = self._stack.enter_context(ingress(*(int(url.rpartition(":")[2]) for url in urls)))
        await_ready(running.url)
        return running

    def pinned(self, core: int) -> Running:
        """A server of one worker, whose processes all run on this core."""
        with only({core}):
            return self._stack.enter_context(gradserve("--workers", "1"))

    def deployed(self, mode: str) -> Running:
        """Our application under Ray Serve, behind HAProxy or its own proxy, until the next one."""
        self._deployed.close()
        command = [sys.executable, "-m", "benchmarks.cluster.served_by_ray", mode]
        return self._deployed.enter_context(Running(command))


def two_cores() -> Sequence[int]:
    """Those of two servers that have one each. Raises RuntimeError where there is one only."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise RuntimeError("two servers with a core each need two cores")
    return cores


def ingress(*ports: int) -> Running:
    """HAProxy before servers at these ports, as `gradserve ingress` runs it."""
    nodes = [part for port in ports for part in ("--node", f"127.0.0.1:{port}")]
    return Running([sys.executable, *_INGRESS, str(free()), *nodes])


@contextmanager
def only(cores: Set[int]) -> Iterator[None]:
    """What is started meanwhile runs on these cores alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def await_ready(url: str) -> None:
    """Return once a server answers there. Raises RuntimeError where none does."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{url}/health/ready", timeout=5).close()
        except (HTTPError, URLError, OSError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"no server is ready at {url}")


def figure(url: str, name: str) -> float:
    """What a server's /metrics says of a name."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))
