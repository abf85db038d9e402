"""Table of the servers that HAProxy sends requests to, changed through its runtime socket.

Its commands: https://docs.haproxy.org/2.6/management.html#9.3
"""

from __future__ import annotations

import csv
import socket
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from service.cluster.ingress.configuration import BACKEND, SLOT

#: IPv4 or IPv6 address of a server, and its port
NodeAddress = tuple[str, int]
#: seconds for HAProxy to answer
_TIMEOUT_SECONDS: Final = 5.0


class ServerTable:
    """Slots of a running HAProxy, and their servers. A server keeps its slot, since hashing maps callers to slots."""

    def __init__(self, runtime: Path, slots: int, configured: Sequence[str] = ()) -> None:
        """`runtime` is the socket; the servers in the configuration have the first slots."""
        names = [f"{SLOT}{number}" for number in range(1, slots + 1)]
        self._runtime = runtime
        self._slots = dict(zip(map(_address, configured), names, strict=False))
        self._free = names[len(configured) :]

    def set_servers(self, nodes: Collection[NodeAddress]) -> None:
        """Send requests to exactly these servers, to each as soon as it is ready. Requests under way go on.

        Raises OSError if HAProxy does not answer, RuntimeError if it refuses or has too few slots.
        """
        for node in [node for node in self._slots if node not in nodes]:
            self._change(f"set server {BACKEND}/{self._slots[node]} state maint")
            # At the end of the list, so that the slot is reused only when no other is free.
            self._free.append(self._slots.pop(node))
        for node in sorted(set(nodes) - self._slots.keys()):
            self._add(*node)

    def _add(self, host: str, port: int) -> None:
        if not self._free:
            raise RuntimeError(
                f"the number of servers exceeds the slots of the ingress ({len(self._slots)}); raise --slots"
            )
        slot = f"{BACKEND}/{self._free[0]}"
        self._change(f"set server {slot} addr {host} port {port}")
        # HAProxy assumes that a server is healthy when it leaves maintenance. So it leaves into draining, is marked as
        # down, and gets requests only after its first successful health check.
        for state in ("state drain", "health down", "state ready"):
            self._change(f"set server {slot} {state}")
        self._slots[host, port] = self._free.pop(0)

    def ready(self) -> list[str]:
        """Return the slots whose servers get requests. Raises OSError."""
        text = ask(self._runtime, f"show stat {BACKEND} 4 -1")
        rows = csv.DictReader(text.removeprefix("# ").splitlines())
        return [row["svname"] for row in rows if row["status"].startswith("UP")]

    def _change(self, command: str) -> None:
        response = ask(self._runtime, command).strip()
        if response and "changed" not in response and "no need" not in response:
            raise RuntimeError(f"HAProxy rejects “{command}”: {response}")


def _address(host_port: str) -> NodeAddress:
    host, _, port = host_port.rpartition(":")
    return host.strip("[]"), int(port)


def ask(runtime: Path, command: str) -> str:
    """Send a command to HAProxy, and return its response. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_TIMEOUT_SECONDS)
        connection.connect(str(runtime))
        connection.sendall(command.encode() + b"\n")
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts).decode()
