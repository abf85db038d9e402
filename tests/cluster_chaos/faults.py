"""Faults of servers, network and store: each begins, lasts for some seconds, and is repaired."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.cluster_chaos.servers import ChaosServer, Cluster


def _no_op() -> None:
    pass


@dataclass(frozen=True)
class Fault:
    """A fault: `begin` it, and `repair` it after `seconds`. Callers wait `pause` seconds between two calls."""

    name: str
    begin: Callable[[], None]
    seconds: float = 0.0
    repair: Callable[[], None] = _no_op
    pause: float = 0.15


class Faults:
    """The faults of a cluster. Each chooses its servers when it begins."""

    def __init__(self, cluster: Cluster, outage: float = 30.0, pause: float = 10.0) -> None:
        """Take the seconds for which the store is unreachable, and for which an owner is paused."""
        self._cluster = cluster
        self._chosen: list[ChaosServer] = []
        machine = cluster.store_machine
        machines = [server.machine for server in cluster.servers]
        self.all = {
            "worker": Fault("`kill -9` of a worker", self._kill_worker),
            "front": Fault("`kill -9` of a front that is not the main owner", self._kill_front, 0.5, self._start),
            "owner": Fault("`kill -9` of the main owner", self._kill_owner, 0.5, self._start),
            "haproxy": Fault("`kill -9` of HAProxy", cluster.ingresses[0].kill),
            "paused": Fault(f"the main owner is paused for {pause:g} s", self._pause, pause, self._resume),
            "partition": Fault("two servers cannot reach each other", self._partition, pause, self._rejoin),
            "responses": Fault(
                "responses of the store are lost", lambda: machine.lose_responses(machines, on=True), pause,
                lambda: machine.lose_responses(machines, on=False),
            ),
            "outage": Fault(
                f"the store is unreachable for {outage:g} s", lambda: machine.plug(in_=False), outage,
                lambda: machine.plug(in_=True),
            ),
            "update": Fault("a rolling update", self._update),
            "restart": Fault("two servers start at once while others write", self._end_two, 0.5, self._start, 0.03),
        }  # fmt: skip

    def _kill_worker(self) -> None:
        for pid in self._cluster.owner().workers[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _kill_front(self) -> None:
        owner = self._cluster.owner()
        self._end([self._cluster.others(owner)[0]])

    def _kill_owner(self) -> None:
        self._end([self._cluster.owner()])

    def _end_two(self) -> None:
        self._end(self._cluster.others(self._cluster.owner())[:2])

    def _end(self, servers: list[ChaosServer]) -> None:
        self._chosen = servers
        for server in servers:
            server.end()

    def _start(self) -> None:
        for server in self._chosen:
            server.start()
        for server in self._chosen:
            server.await_start()

    def _pause(self) -> None:
        self._chosen = [self._cluster.owner()]
        os.kill(self._chosen[0].pid, signal.SIGSTOP)

    def _resume(self) -> None:
        os.kill(self._chosen[0].pid, signal.SIGCONT)

    def _partition(self) -> None:
        owner = self._cluster.owner()
        self._chosen = [owner, self._cluster.others(owner)[0]]
        self._isolate(on=True)

    def _rejoin(self) -> None:
        self._isolate(on=False)

    def _isolate(self, *, on: bool) -> None:
        for server in self._chosen:
            server.machine.isolate(on=on)

    def _update(self) -> None:
        """Restart one server after the other; wait each time until the ingress sees all of them."""
        for server in self._cluster.servers:
            server.end(signal.SIGTERM)
            server.start()
            server.await_start()
            self._cluster.settle()
