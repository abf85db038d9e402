"""Table of the servers that HAProxy sends requests to, changed by its runtime socket.

Its commands: https://docs.haproxy.org/2.6/management.html#9.3
"""

from __future__ import annotations

import csv
import socket
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from service.cluster.ingress.configuration import BACKEND, SLOT

#: an address of a server: of IPv4 or IPv6, and its port
NodeAddress = tuple[str, int]
#: seconds in which HAProxy answers
_PATIENCE: Final = 5.0


class ServerTable:
    """The slots of a running HAProxy, and who has which. A server keeps its slot: by that callers are led to it."""

    def __init__(self, runtime: Path, slots: int, stated: Sequence[str] = ()) -> None:
        """`runtime` is the socket; the first slots are those of the servers that the configuration states."""
        names = [f"{SLOT}{number}" for number in range(1, slots + 1)]
        self._runtime = runtime
        self._taken = dict(zip(map(_address, stated), names, strict=False))
        self._free = names[len(stated) :]

    def become(self, nodes: Collection[NodeAddress]) -> None:
        """Send requests to these and no others, to each once it is ready. What is under way goes on.

        Raises OSError where HAProxy does not answer; RuntimeError where it refuses, or has not as many slots.
        """
        for node in [node for node in self._taken if node not in nodes]:
            self._do(f"set server {BACKEND}/{self._taken[node]} state maint")
            # Last again: the slot of one that is gone stays its own for as long as others are free.
            self._free.append(self._taken.pop(node))
        for node in sorted(set(nodes) - self._taken.keys()):
            self._enter(*node)

    def _enter(self, host: str, port: int) -> None:
        if not self._free:
            raise RuntimeError(f"the ingress has places for {len(self._taken)} servers, and there are more: --slots")
        slot = f"{BACKEND}/{self._free[0]}"
        self._do(f"set server {slot} addr {host} port {port}")
        # It is not ready before that is seen. Who leaves maintenance is taken to be, so that happens while it drains.
        for state in ("state drain", "health down", "state ready"):
            self._do(f"set server {slot} {state}")
        self._taken[host, port] = self._free.pop(0)

    def ready(self) -> list[str]:
        """Return the slots whose servers are sent requests. Raises OSError."""
        text = ask(self._runtime, f"show stat {BACKEND} 4 -1")
        rows = csv.DictReader(text.removeprefix("# ").splitlines())
        return [row["svname"] for row in rows if row["status"].startswith("UP")]

    def _do(self, change: str) -> None:
        said = ask(self._runtime, change).strip()
        if said and "changed" not in said and "no need" not in said:
            raise RuntimeError(f"HAProxy does not {change}: {said}")


def _address(place: str) -> NodeAddress:
    host, _, port = place.rpartition(":")
    return host.strip("[]"), int(port)


def ask(runtime: Path, command: str) -> str:
    """Send HAProxy a command, and return its answer. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as talking:
        talking.settimeout(_PATIENCE)
        talking.connect(str(runtime))
        talking.sendall(command.encode() + b"\n")
        parts = []
        while part := talking.recv(65_536):
            parts.append(part)
    return b"".join(parts).decode()
