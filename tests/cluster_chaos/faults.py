"""Faults of servers, network and store: each begins, lasts for some seconds, and is repaired."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import httpx

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

    def __init__(self, cluster: Cluster, outage: float = 30.0, pause: float = 10.0, blind: float = 20.0) -> None:
        """Take the seconds for which the store is unreachable, an owner is paused, and cannot reach the store."""
        self._cluster = cluster
        self._chosen: list[ChaosServer] = []
        self._alternating: threading.Thread | None = None
        self._over = threading.Event()
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
            "hang": Fault(
                f"the main owner alone cannot reach the store for {blind:g} s", lambda: self._cut("hang"), blind,
                self._mend,
            ),
            "refused": Fault(
                f"the store refuses the main owner's connections for {blind:g} s", lambda: self._cut("refuse"), blind,
                self._mend,
            ),
            "forbidden": Fault(
                f"the store answers the main owner 403 for {blind:g} s", self._forbid, blind, cluster.misbehave
            ),
            "late": Fault(
                "writes to the store fail and happen later",
                lambda: cluster.misbehave(late=[machine.address for machine in machines]), pause, cluster.misbehave,
            ),
            "doubled": Fault(
                "writes to the store happen twice",
                lambda: cluster.misbehave(doubled=[machine.address for machine in machines]), pause, cluster.misbehave,
            ),
            "late write": Fault(
                f"the main owner is paused for {pause:g} s while its writes are late", self._pause_late, pause,
                self._resume,
            ),
            "address": Fault("a second server states the address of another one", self._start_double),
            "alternating": Fault(
                f"a caller alternates between two servers for {blind:g} s", self._alternate, blind,
                self._end_alternating,
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
        self._cluster.misbehave()

    def _pause_late(self) -> None:
        owner = self._cluster.owner()
        self._cluster.misbehave(late=[owner.machine.address])
        time.sleep(1.0)  # until some of its writes are under way
        self._pause()

    def _cut(self, kind: str) -> None:
        self._chosen = [self._cluster.owner()]
        self._chosen[0].machine.cut(self._cluster.store_machine, kind)

    def _mend(self) -> None:
        self._chosen[0].machine.cut(self._cluster.store_machine, None)

    def _forbid(self) -> None:
        self._cluster.misbehave(forbidden=[self._cluster.owner().machine.address])

    def _start_double(self) -> None:
        first, second = self._cluster.servers[:2]
        if (status := second.start_double(first.url)) != 2:
            raise RuntimeError(f"a server with the address of another one ended with status {status}, and not with 2")

    def _alternate(self) -> None:
        self._over.clear()
        self._moves = self._count_moves()
        self._alternating = threading.Thread(target=self._call_in_turn)
        self._alternating.start()

    def _end_alternating(self) -> None:
        self._over.set()
        assert self._alternating is not None
        self._alternating.join()
        if (moves := self._count_moves() - self._moves) > 0:
            raise RuntimeError(f"{moves} shards moved though no server failed")

    def _call_in_turn(self) -> None:
        name, key = next(iter(self._cluster.keys.items()))
        clients = [
            httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=30, trust_env=False)
            for server in self._cluster.servers[:2]
        ]
        for client in itertools.cycle(clients):
            if self._over.is_set():
                break
            client.get(f"/v1/tensors/alternating.{name}")

    def _count_moves(self) -> int:
        key = next(iter(self._cluster.keys.values()))
        return sum(server.moves(key) for server in self._cluster.servers)

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
