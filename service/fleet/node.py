"""Replica of Serve that has a server."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from threading import Event, Thread
from typing import Any, Final
from uuid import uuid4

import ray

from service.fleet.child import ServerChild
from service.fleet.directory import BEAT, DirectoryEntry
from service.fleet.kv import RayStore

#: seconds that ingresses need to see that a server is going, and seconds more than a server's own that it has to end
_SEEN: Final = 4 * BEAT
_MORE: Final = 5.0

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
        """What the server has to do, for `scaling`."""
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
