"""Sixteenth guarantee, at the doors: who holds bodies, answers and connections keeps nobody else out.

Both are at the loopback, under addresses of their own. One has the server hold as much as it can and then hardly
moves; the other sends large bodies, and is to be served as if alone.
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
#: what the server holds, and what the one who behaves sends: a quarter of it
HELD, SENT = 256 * MIB, 64 * MIB
CALLS = 5
#: bytes a second of one who hardly moves: just above the floors of the settings
TRICKLE, SIP = 300, 4800
#: how much longer a call may take beside the attack than alone, on processors that both of them use
SLOWER = 3


@pytest.fixture(scope="module")
def attacked(start: Callable[..., Started]) -> Started:
    """A server that holds little."""
    return start("--held-bytes", str(HELD), "--max-connections", "64", "--max-connections-per-client", "64")


def connect(server: Started, source: str, buffer: int = 0) -> socket.socket:
    """A connection from an address."""
    made = socket.socket()
    if buffer:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    made.settimeout(60)
    made.bind((source, 0))
    made.connect(server.address)
    return made


def upload() -> bytes:
    """A large request whose answer is small."""
    graph = {"nodes": [node("input"), node("sum", 0)]}
    content = body({"graph": graph}, {"feeds.0": np.ones(SENT // 8)})
    return head("/v1/forward", len(content), kind=SAFETENSORS) + content


def statuses(server: Started, sent: bytes) -> tuple[list[int], float]:
    """What the one who behaves is answered, and the longest that it took: seconds."""
    found, slowest = [], 0.0
    for _ in range(CALLS):
        begun = time.perf_counter()
        with connect(server, MODEST) as connection:
            connection.sendall(sent)
            found.append(int(read_response(connection)[9:12]))
        slowest = max(slowest, time.perf_counter() - begun)
    return found, slowest


@contextmanager
def moving(step: Callable[[], None]) -> Iterator[None]:
    """Ten steps a second meanwhile."""
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
    """A few bytes more on each that is still there."""

    def step() -> None:
        for connection in connections:
            try:
                connection.sendall(b"x" * (TRICKLE // 10))
            except OSError:
                continue

    return step


def sipping(connections: list[socket.socket]) -> Callable[[], None]:
    """A few bytes less in each that is still there."""

    def step() -> None:
        for connection in connections:
            try:
                connection.recv(SIP // 10)
            except OSError:
                continue

    return step


def beside(server: Started, figures: Figures, attack: str, step: Callable[[], None], alone: float) -> None:
    """The one who behaves, while the other hardly moves."""
    with moving(step):
        found, slowest = statuses(server, upload())
    figures.at_most(f"{attack}: uploads refused, of {CALLS}", sum(status != 200 for status in found), 0, "", str(found))
    figures.at_most(f"{attack}: the slowest upload, to alone", round(slowest / alone, 2), SLOWER, "×")


@pytest.fixture(scope="module")
def alone(attacked: Started) -> float:
    """Seconds that an upload takes by itself, at most."""
    statuses(attacked, upload())
    found, slowest = statuses(attacked, upload())
    assert found == [200] * CALLS
    return slowest


def test_heads_that_announce_much(attacked: Started, figures: Figures, alone: float) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(attacked, GREEDY)) for _ in range(16)]
        for connection in connections:
            connection.sendall(head("/v1/forward", 1 << 30, kind=SAFETENSORS))
        beside(attacked, figures, "heads that announce 1 GiB", trickling(connections), alone)


def test_bodies_that_stop_when_much_is_there(attacked: Started, figures: Figures, alone: float) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(attacked, GREEDY)) for _ in range(4)]
        for connection in connections:
            connection.sendall(head("/v1/forward", 1 << 30, kind=SAFETENSORS) + bytes(60 * MIB))
        beside(attacked, figures, "four bodies of 60 MiB and more", trickling(connections), alone)


def test_large_answers_that_are_hardly_read(attacked: Started, figures: Figures, alone: float) -> None:
    content = b'{"graph":{"nodes":[{"op":"full","attrs":{"shape":[9600000],"fill":1}}]},"encoding":"base64"}'
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(attacked, GREEDY, 1 << 14)) for _ in range(2)]
        for connection in connections:
            connection.sendall(head("/v1/forward", len(content), kind=JSON) + content)
            assert connection.recv(12) == b"HTTP/1.1 200"
        beside(attacked, figures, "two answers of 98 MiB, hardly read", sipping(connections), alone)


def test_all_connections(attacked: Started, figures: Figures, alone: float) -> None:
    with ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(connect(attacked, GREEDY))
        beside(attacked, figures, "all connections of a server", lambda: None, alone)
