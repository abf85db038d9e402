"""Guarantee 8: clients that send nothing or too slowly are disconnected; legitimate slow clients are not."""

from __future__ import annotations

import contextlib
import selectors
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.guarantees.conftest import judge
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import feed, is_right, node, request, small
from tests.guarantees.probe import probing
from tests.guarantees.started import Started
from tests.guarantees.talk import Connection, Hangup, head, once, posted

pytestmark = pytest.mark.guarantee(8)
CLIENTS, SECONDS = 500, 10.0
#: seconds by which the sweep over all connections may be late
SWEEP = 1.0
MIB = 1 << 20
#: MiB, of 200, that may remain for memory to count as released
RELEASED = 30

#: bytes that half-open clients send before they fall silent, by name
BEGINNINGS = {
    "nothing": b"",
    "half the headers": b"POST /v1/gradients HTTP/1.1\r\nHost: te",
    "only the headers": head("/v1/gradients", 10_000),
    "half a body": head("/v1/gradients", 10_000) + b"{" * 5_000,
    "half a chunk": head("/v1/gradients", None, more=("Transfer-Encoding: chunked",)) + b"100\r\n{",
    "only the headers of a large binary body": head("/v1/gradients", 1 << 29, kind="application/vnd.safetensors"),
}


def closings(connections: list[Connection], within: float, every: float = 0.0, sent: bytes = b"x") -> list[float]:
    """Seconds until the server closed each connection. Open connections send `sent` every `every` seconds."""
    start, times = time.perf_counter(), list[float]()
    open_ones = set(connections)
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        due = every
        while open_ones and (now := time.perf_counter() - start) < within:
            if every and now >= due:
                due += every
                _trickle(open_ones, sent)
            for key, _ in selector.select(0.2):
                connection = key.fileobj
                if _is_over(connection):
                    selector.unregister(connection)
                    open_ones.discard(connection)
                    times.append(time.perf_counter() - start)
    return times


def _trickle(connections: set[Connection], sent: bytes) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.send(sent)


def _is_over(connection: Connection) -> bool:
    try:
        return not connection.take()
    except OSError:
        return True


def record(figures: Figures, name: str, times: list[float], count: int) -> None:
    """Record how many connections are still open, and when the last one was closed."""
    figures.at_most(f"{name}: still open after {SECONDS + SWEEP:g} s, of {count}", count - len(times), 0, "")
    figures.at_most(f"{name}: last one closed after", round(max(times, default=0.0), 2), SECONDS + SWEEP, "s")


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_half_open_connections_are_closed(attacked: Started, figures: Figures, beginning: str) -> None:
    before = attacked.settled()
    connections = [
        Connection(attacked.address)
        for _ in range(CLIENTS if beginning != "only the headers of a large binary body" else 20)
    ]
    for connection in connections:
        connection.send(BEGINNINGS[beginning])
    time.sleep(1)
    held = (attacked.resident - before) / MIB
    served = once(attacked.address, "/v1/gradients", small())
    assert served.status == 503 or is_right(served.body), "half-open connections lock out a working client"
    record(
        figures,
        f"{len(connections)} clients that sent {beginning}",
        closings(connections, SECONDS + SWEEP),
        len(connections),
    )
    figures.at_most(f"{len(connections)} clients that sent {beginning}: memory held", round(held, 1), 100, "MiB")
    for connection in connections:
        connection.close()


@pytest.mark.parametrize(
    ("part", "beginning", "byte"),
    [
        ("headers", b"GET / HTTP/1.1\r\nX: ", b"x"),
        ("bodies", head("/v1/gradients", 10_000), b" "),
        ("chunks", head("/v1/gradients", None, more=("Transfer-Encoding: chunked",)), b"1\r\n \r\n"),
    ],
    ids=["headers", "bodies", "chunks"],
)
def test_trickling_connections_are_closed(
    attacked: Started, figures: Figures, part: str, beginning: bytes, byte: bytes
) -> None:
    connections = [Connection(attacked.address) for _ in range(CLIENTS)]
    for connection in connections:
        connection.send(beginning)
    record(
        figures, f"{CLIENTS} clients that trickle {part}", closings(connections, SECONDS + SWEEP, 1.0, byte), CLIENTS
    )
    for connection in connections:
        connection.close()


def test_slow_upload_is_accepted(start: Callable[..., Started], figures: Figures) -> None:
    """The client sends 16 KiB per second, as over a bad connection, with one pause of three seconds."""
    server = start("--timeout-ms", "120000")
    body = small() + b" " * (400 * 1024)
    with probing(server.address) as seen, Connection(server.address) as connection:
        connection.send(head("/v1/gradients", len(body)))
        begin = time.perf_counter()
        for i in range(0, len(body), 4096):
            connection.send(body[i : i + 4096])
            time.sleep(3.0 if i == 40 * 4096 else 0.25)
        answer = connection.answer()
        took = time.perf_counter() - begin
    right = answer.status == 200 and is_right(answer.body)
    figures.at_most(f"slow uploads of {took:.0f} s without a right response", not right, 0, "", str(answer.status))
    judge(seen, "slow upload", figures.test)


def large_answer(elements: int) -> bytes:
    """A small request whose response has `elements` numbers in base64."""
    nodes = [node("input"), node("broadcast_to", 0, shape=[elements]), node("sin", 1)]
    return request(nodes, [feed(0, [], [0.5])], encoding="base64")


@pytest.mark.parametrize("rate", [0, 1024], ids=["not reading", "1 KiB per second"])
def test_slow_readers_do_not_hold_memory(attacked: Started, figures: Figures, rate: int) -> None:
    """20 clients request 8 MB each, and read them at `rate` bytes per second."""
    with ThreadPoolExecutor(8) as readers:  # fills the plan caches, so that their memory is not counted
        for _ in range(3):
            list(readers.map(lambda _: once(attacked.address, "/v1/forward", large_answer(MIB)), range(8)))
    before = attacked.settled()
    connections = [Connection(attacked.address, buffer=4096) for _ in range(20)]
    for connection in connections:
        connection.send(posted("/v1/forward", large_answer(MIB)))
    stop = threading.Event()
    reading = threading.Thread(target=_read_slowly, args=(connections, rate, stop))
    reading.start()
    held = [_held(attacked, before) for _ in range(5)]
    start = time.perf_counter() - len(held)
    while held[-1] > RELEASED and time.perf_counter() - start < 90:
        held.append(_held(attacked, before))
    released = time.perf_counter() - start if held[-1] <= RELEASED else 999
    stop.set()
    reading.join()
    figure = f"20 readers of 8 MB each at {rate} bytes per second: memory released after"
    figures.at_most(figure, round(released), 60, "s", f"at most {max(held):.0f} MiB")


def _held(server: Started, before: int) -> float:
    """Wait a second, and return the MiB above the initial memory."""
    time.sleep(1)
    return (server.resident - before) / MIB


def _read_slowly(connections: list[Connection], rate: int, stop: threading.Event) -> None:
    while not stop.wait(1):
        for connection in connections if rate else []:
            with contextlib.suppress(OSError):
                connection.take(rate)


def test_slow_reader_gets_the_whole_response(server: Started, figures: Figures) -> None:
    """The client reads 8 MB at 400 KB per second, for 28 seconds."""
    whole = 0
    with Connection(server.address, buffer=65536) as connection:
        connection.send(posted("/v1/forward", large_answer(MIB)))
        try:
            while whole < 8 * MIB:
                whole += len(connection.take(40_000))
                time.sleep(0.1)
        except (OSError, Hangup):
            pass
    figures.at_least("bytes received by a reader at 400 KB per second, of 11.2 million", whole, 8 * MIB, "")


def test_refused_upload_is_closed_soon(server: Started, figures: Figures) -> None:
    """After an early refusal the server continues to read for a while, unless the client is silent."""
    waits = []
    for _ in range(5):
        with Connection(server.address) as connection:
            connection.send(head("/v1/gradients", 10**8) + bytes(10_000))
            assert connection.answer().status == 413
            waits.append(connection.ended(8.0) or 8.0)
    figures.at_most("refused upload of a silent client: closed after", round(max(waits), 2), 1.5, "s")
