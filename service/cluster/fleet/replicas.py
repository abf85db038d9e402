"""Replica of Serve that has a server."""

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
from service.web.listening import bind_when_free, place

#: seconds that ingresses need to see that a server is going, and seconds more than a server's own that it has to end
_SEEN: Final = 4 * BEAT
_MORE: Final = 5.0

#: seconds within which another ingress of this machine, that is ending, gives up the address
_HANDING_OVER: Final = 30.0

_logger = logging.getLogger("ray.serve")


class NodeReplica:
    """One server, on the machine's address, in the directory for as long as it lives."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings` are those of `gradserve serve`, by their names."""
        host = ray.util.get_node_ip_address()
        self._grace = float(settings.get("shutdown_grace", 30)) + _MORE
        self._over = Event()
        self._child = ServerChild(host, settings)
        self._entry = DirectoryEntry(RayStore(), uuid4().hex, self._child.address)
        self._entry.renew()
        self._beating = Thread(target=self._beat, daemon=True, name="gradserve entry")
        self._beating.start()

    def _beat(self) -> None:
        while not self._over.wait(BEAT):
            try:
                self._entry.renew()
            except Exception as error:  # noqa: BLE001 - without its head, Ray keeps nothing: the server serves on
                _logger.warning("the server is not entered in the directory: %s", error)

    def check_health(self) -> None:
        """Return where the server answers; raise, and Serve replaces this replica."""
        self._child.check()

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Tell what the server has to do, for `scaling`."""
        return self._child.work()

    def __del__(self) -> None:
        """Serve is ending this replica: no request comes here any more before the server ends."""
        if not hasattr(self, "_beating"):
            return  # it was never ready
        self._over.set()
        self._beating.join()
        self._entry.remove()
        time.sleep(_SEEN)
        self._child.end(self._grace)


class Ingress:
    """HAProxy on an address, with the servers of the directory in its table."""

    def __init__(self, host: str = "127.0.0.1", port: int = 8000, **layout: Any) -> None:
        """`layout` are fields of an IngressLayout.

        Raises RuntimeError, OSError where HAProxy or the address cannot be had.
        """
        self._begun, self._over = Event(), Event()
        self._running: HaproxyProcess | None = None
        self._failed: Exception | None = None
        self._thread = Thread(target=self._keep, args=(host, port, layout), daemon=True, name="gradserve ingress")
        self._thread.start()
        self._begun.wait()
        if self._failed is not None:
            raise self._failed

    def _keep(self, host: str, port: int, layout: Mapping[str, Any]) -> None:
        """Run HAProxy in the thread that makes it: with that it ends."""
        try:
            directory = Directory(RayStore())
            with closing(bind_when_free(host, port, _HANDING_OVER)) as listening:
                # Those that live already are sent requests from the first one on.
                nodes = tuple(place(*address) for address in sorted(directory.living()))
                stated = IngressLayout(listen="", nodes=nodes, **layout)
                with haproxy(haproxy_program(), stated, listening) as running:
                    self._running = running
                    self._begun.set()
                    self._follow(running, directory)
                    running.drain()
                    running.wait()
        except Exception as error:  # noqa: BLE001 - told to whoever asks for the health
            self._failed = error
        finally:
            self._begun.set()

    def _follow(self, running: HaproxyProcess, directory: Directory) -> None:
        while not self._over.wait(BEAT) and not running.ended:
            try:
                living = directory.living()
            except Exception as error:  # noqa: BLE001 - without its head, Ray tells nothing: the table stays
                _logger.warning("the directory of servers cannot be read: %s", error)
                continue
            running.table.become(living)

    def check_health(self) -> None:
        """Return where HAProxy runs; raise, and Serve replaces this replica."""
        if self._failed is not None:
            raise self._failed
        if self._running is None or self._running.ended:
            raise RuntimeError("HAProxy has ended")

    def __del__(self) -> None:
        """Serve is ending this replica: requests under way are answered first."""
        if hasattr(self, "_thread"):
            self._over.set()
            self._thread.join()
