"""Replicas of Ray Serve: one runs a server, the other HAProxy."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import closing
from threading import Event, Thread
from typing import Any, Final
from uuid import uuid4

import ray

from service.cluster.fleet.child import ServerChild
from service.cluster.fleet.directory import BEAT, Directory, DirectoryEntry, RayStore
from service.cluster.ingress.configuration import IngressLayout
from service.cluster.ingress.process import HaproxyProcess, haproxy, haproxy_program
from service.web.listening import bind_when_free, host_and_port

#: seconds for ingresses to see that an entry is gone, and seconds for a server to end beyond its grace period
_PROPAGATION_SECONDS: Final = 4 * BEAT
_EXTRA_SECONDS: Final = 5.0

#: seconds for an ending ingress on this machine to release the address
_HANDOVER_SECONDS: Final = 30.0

_logger = logging.getLogger("ray.serve")


class NodeReplica:
    """One server on the machine's address, with an entry in the directory while it runs."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings` are those of `gradserve serve`, by name."""
        host = ray.util.get_node_ip_address()
        self._grace = float(settings.get("shutdown_grace", 30)) + _EXTRA_SECONDS
        self._stopping = Event()
        self._child = ServerChild(host, settings)
        self._entry = DirectoryEntry(RayStore(), uuid4().hex, self._child.address)
        self._entry.renew()
        self._heartbeat = Thread(target=self._send_heartbeats, daemon=True, name="gradserve entry")
        self._heartbeat.start()

    def _send_heartbeats(self) -> None:
        while not self._stopping.wait(BEAT):
            try:
                self._entry.renew()
            except Exception as error:  # noqa: BLE001 - without its head, Ray keeps nothing: the server serves on
                _logger.warning("cannot register the server in the directory: %s", error)

    def check_health(self) -> None:
        """Check that the server answers; an exception makes Serve replace this replica."""
        self._child.check()

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Return the load of the server, for `scaling`."""
        return self._child.work()

    def __del__(self) -> None:
        """End the server, at the request of Serve, after ingresses have stopped sending requests to it."""
        if not hasattr(self, "_beating"):
            return  # it was never ready
        # In this order: a late heartbeat would write the entry again, and the server must not refuse connections while
        # ingresses still have it in their tables.
        self._stopping.set()
        self._heartbeat.join()
        self._entry.remove()
        time.sleep(_PROPAGATION_SECONDS)
        self._child.end(self._grace)


class Ingress:
    """HAProxy on an address, with the servers of the directory in its table."""

    def __init__(self, host: str = "127.0.0.1", port: int = 8000, **layout: Any) -> None:
        """`layout` are fields of an IngressLayout.

        Raises RuntimeError, OSError if HAProxy or the address is not available.
        """
        self._started, self._stopping = Event(), Event()
        self._process: HaproxyProcess | None = None
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, args=(host, port, layout), daemon=True, name="gradserve ingress")
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def _run(self, host: str, port: int, layout: Mapping[str, Any]) -> None:
        """Run HAProxy in the thread that makes it, since the process ends with that thread."""
        try:
            directory = Directory(RayStore())
            with closing(bind_when_free(host, port, _HANDOVER_SECONDS)) as listening:
                # With the live servers in the configuration, the first request already finds one.
                nodes = tuple(host_and_port(*address) for address in sorted(directory.living()))
                layout_with_nodes = IngressLayout(listen="", nodes=nodes, **layout)
                with haproxy(haproxy_program(), layout_with_nodes, listening) as process:
                    self._process = process
                    self._started.set()
                    self._update_table(process, directory)
                    process.drain()
                    process.wait()
        except Exception as error:  # noqa: BLE001 - reported by the health check
            self._failure = error
        finally:
            self._started.set()

    def _update_table(self, process: HaproxyProcess, directory: Directory) -> None:
        while not self._stopping.wait(BEAT) and not process.ended:
            try:
                living = directory.living()
            except Exception as error:  # noqa: BLE001 - without its head, Ray tells nothing: the table stays
                _logger.warning("cannot read the directory of servers: %s", error)
                continue
            process.table.set_servers(living)

    def check_health(self) -> None:
        """Check that HAProxy runs; an exception makes Serve replace this replica."""
        if self._failure is not None:
            raise self._failure
        if self._process is None or self._process.ended:
            raise RuntimeError("HAProxy has exited")

    def __del__(self) -> None:
        """End HAProxy, at the request of Serve, after the requests under way are answered."""
        if hasattr(self, "_thread"):
            self._stopping.set()
            self._thread.join()
