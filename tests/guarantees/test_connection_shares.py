"""Guarantee 16, for connections: a client that holds bodies, responses and connections does not lock out others.

The two clients use different loopback addresses. One makes the server hold as many bytes as possible and then sends or
reads slowly; the other sends large bodies, and must be served almost as if it were alone.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from tests.guarantees.figures import Figures
from tests.guarantees.jobs import node
from tests.guarantees.started import Started
from tests.guarantees.talk import JSON, SAFETENSORS, head
from tests.service.api.safetensors_support import body
from tests.service.support import read_response

pytestmark = pytest.mark.guarantee(16)

MIB = 1 << 20
GREEDY, MODEST = "127.0.0.2", "127.0.0.1"
#: bytes that the server may hold, and bytes that the modest client sends: a quarter of them
HELD, SENT = 256 * MIB, 64 * MIB
CALLS = 5
#: bytes per second that the greedy client sends and reads: just above the configured minimum rates
TRICKLE, SIP = 300, 4800
#: how many times longer an upload may take during the attack than alone, on shared processors
SLOWER = 3


@pytest.fixture(scope="module")
def attacked(start: Callable[..., Started]) -> Started:
    """A server with a small limit of held bytes."""
    return start("--held-bytes", str(HELD), "--max-connections", "64", "--max-connections-per-client", "64")


def connect(server: Started, source: str, buffer: int = 0) -> socket.socket:
    """Open a connection from a source address."""
    connection = socket.socket()
    if buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(60)
    connection.bind((source, 0))
    connection.connect(server.address)
    return connection


def upload() -> bytes:
    """A large request with a small answer."""
    graph = {"nodes": [node("input"), node("sum", 0)]}
    content = body({"graph": graph}, {"feeds.0": np.ones(SENT // 8)})
    return head("/v1/forward", len(content), kind=SAFETENSORS) + content


def statuses(server: Started, sent: bytes) -> tuple[list[int], float]:
    """Send the modest client's calls; return their statuses, and the seconds of the slowest."""
    codes, slowest = [], 0.0
    for _ in range(CALLS):
        begun = time.perf_counter()
        with connect(server, MODEST) as connection:
            connection.sendall(sent)
            codes.append(int(read_response(connection)[9:12]))
        slowest = max(slowest, time.perf_counter() - begun)
    return codes, slowest


@contextmanager
def repeating(step: Callable[[], None]) -> Iterator[None]:
    """Run ten steps per second within the block."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(0.1):
            step()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


def trickling(connections: list[socket.socket]) -> Callable[[], None]:
    """A step that sends a few bytes on each open connection."""

    def step() -> None:
        for connection in connections:
            try:
                connection.sendall(b"x" * (TRICKLE // 10))
            except OSError:
                continue

    return step


def sipping(connections: list[socket.socket]) -> Callable[[], None]:
    """A step that reads a few bytes from each open connection."""

    def step() -> None:
        for connection in connections:
            try:
                connection.recv(SIP // 10)
            except OSError:
                continue

    return step


def measure_under_attack(
    server: Started, figures: Figures, attack: str, step: Callable[[], None], alone: float
) -> None:
    """Measure the uploads of the modest client during the attack."""
    with repeating(step):
        codes, slowest = statuses(server, upload())
    figures.at_most(f"{attack}: uploads refused, of {CALLS}", sum(status != 200 for status in codes), 0, "", str(codes))
    figures.at_most(f"{attack}: slowest upload, relative to baseline", round(slowest / alone, 2), SLOWER, "×")


@pytest.fixture(scope="module")
def alone(attacked: Started) -> float:
    """The seconds of the slowest upload without an attack."""
    statuses(attacked, upload())
    codes, slowest = statuses(attacked, upload())
    assert codes == [200] * CALLS
    return slowest


def test_announced_bodies_do_not_block_another_client(attacked: Started, figures: Figures, alone: float) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(attacked, GREEDY)) for _ in range(16)]
        for connection in connections:
            connection.sendall(head("/v1/forward", 1 << 30, kind=SAFETENSORS))
        measure_under_attack(attacked, figures, "16 requests that announce 1 GiB", trickling(connections), alone)


def test_stalled_bodies_do_not_block_another_client(attacked: Started, figures: Figures, alone: float) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(attacked, GREEDY)) for _ in range(4)]
        for connection in connections:
            connection.sendall(head("/v1/forward", 1 << 30, kind=SAFETENSORS) + bytes(60 * MIB))
        measure_under_attack(attacked, figures, "four bodies that stall after 60 MiB", trickling(connections), alone)


def test_slow_readers_do_not_block_another_client(attacked: Started, figures: Figures, alone: float) -> None:
    content = b'{"graph":{"nodes":[{"op":"full","attrs":{"shape":[9600000],"fill":1}}]},"encoding":"base64"}'
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(attacked, GREEDY, 1 << 14)) for _ in range(2)]
        for connection in connections:
            connection.sendall(head("/v1/forward", len(content), kind=JSON) + content)
            assert connection.recv(12) == b"HTTP/1.1 200"
        measure_under_attack(attacked, figures, "two responses of 98 MiB, read slowly", sipping(connections), alone)


def test_client_with_all_connections_does_not_block_another(attacked: Started, figures: Figures, alone: float) -> None:
    with ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(connect(attacked, GREEDY))
        measure_under_attack(attacked, figures, "all connections of a server in use", lambda: None, alone)
