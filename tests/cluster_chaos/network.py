"""Machines: network namespaces, connected by veth pairs to a switch in the namespace of this process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: command prefix that creates network and process namespaces; all processes in them end with the command
ALONE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
_SWITCH = "switch"
_NETWORK = "10.79.0"
#: the address of this process
HOST_ADDRESS = f"{_NETWORK}.1"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def make_switch() -> None:
    """Create the switch that connects the machines and this process. Needs an empty namespace."""
    _ip("link", "set", "lo", "up")
    _ip("link", "add", _SWITCH, "type", "bridge")
    _ip("addr", "add", f"{HOST_ADDRESS}/24", "dev", _SWITCH)
    _ip("link", "set", _SWITCH, "up")


class Machine:
    """A machine: a namespace with an address, and a cable to the switch."""

    def __init__(self, number: int) -> None:
        self.address = f"{_NETWORK}.{10 + number}"
        self._port = f"port{number}"
        # A process keeps the namespace alive: it prints a line when it is inside, and then waits until it is killed.
        holding = ["unshare", "--net", "sh", "-c", "echo in; exec cat"]
        self._holder = subprocess.Popen(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        self._holder.stdout.readline()
        pid = str(self._holder.pid)
        _ip("link", "add", self._port, "type", "veth", "peer", "name", "eth0", "netns", pid)
        _ip("link", "set", self._port, "master", _SWITCH, "up")
        self._run("ip", "link", "set", "lo", "up")
        self._run("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        self._run("ip", "link", "set", "eth0", "up")

    def start(self, command: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[str]:
        """Start a process on this machine; the caller must read its first lines."""
        return subprocess.Popen(
            [*self._inside(), *command], cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True
        )

    def plug(self, *, in_: bool) -> None:
        """Pull or plug in the cable; while it is pulled, packets are lost."""
        _ip("link", "set", self._port, "up" if in_ else "down")

    def isolate(self, *, on: bool) -> None:
        """Isolate this machine from other isolated machines; it still reaches the rest."""
        _ip("link", "set", self._port, "type", "bridge_slave", "isolated", "on" if on else "off")

    def cut(self, other: Machine, kind: str | None) -> None:
        """Cut the way to another machine: `hang` loses packets, `refuse` refuses connections; None mends it."""
        routes = {"hang": "blackhole", "refuse": "unreachable"}
        for name in routes.values():
            subprocess.run(
                [*self._inside(), "ip", "route", "del", name, f"{other.address}/32"],
                check=False,
                stderr=subprocess.DEVNULL,
            )
        if kind is not None:
            self._run("ip", "route", "add", routes[kind], f"{other.address}/32")

    def lose_responses(self, others: Sequence[Machine], *, on: bool) -> None:
        """Drop packets to other machines with blackhole routes; packets from them still arrive."""
        for other in others:
            self._run("ip", "route", "add" if on else "del", "blackhole", f"{other.address}/32")

    def _inside(self) -> list[str]:
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net"]

    def _run(self, *command: str) -> None:
        subprocess.run([*self._inside(), *command], check=True)
