"""An open loop: requests are due at random moments, whether earlier ones have been answered or not.

A request's time begins when it is due, so that what waits because the server is slow is not left out.
"""

from __future__ import annotations

import random
import selectors
import socket
import time
from collections import deque
from dataclasses import dataclass
from itertools import accumulate
from urllib.parse import urlsplit

from benchmarks.service.load import Target

CONNECTIONS = 128
LENGTH = b"content-length:"
#: of the requests, those at the beginning that do not count: connections and plans are warm after them
WARM = 0.1


@dataclass(frozen=True)
class Times:
    """Milliseconds of the answers, sorted; how many answers a second there were, and how many others than 200."""

    sorted: list[float]
    rate: float
    refused: int

    def at(self, part: float) -> float:
        """The time that this part of the answers does not exceed."""
        return self.sorted[min(len(self.sorted) - 1, int(part * len(self.sorted)))]


class _Line:
    """A connection, what it waits for, and since when."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.due = 0.0
        self.refused = 0
        self._missing = 0

    def has_all(self) -> bool:
        """Read what is there; whether it was the answer's end. Raises RuntimeError where the server hangs up."""
        part = self.socket.recv(1 << 18)
        if not part:
            raise RuntimeError("the server has hung up")
        if not self._missing:
            self.refused += part[9:12] != b"200"
            end = part.index(b"\r\n\r\n") + 4
            at = part[:end].lower().index(LENGTH) + len(LENGTH)
            self._missing = end + int(part[at : part.index(b"\r", at)])
        self._missing -= len(part)
        return self._missing == 0


def open_loop(target: Target, rate: float, seconds: float) -> Times:
    """So many requests a second on average, by a Poisson process; the same moments in every run."""
    url = urlsplit(target.url)
    body = target.file.read_bytes()
    headers = {"Host": url.netloc, **target.headers, "Content-Length": str(len(body))}
    lines = (f"POST {url.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()))
    request = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
    rng = random.Random(0)
    moments = [*accumulate(rng.expovariate(rate) for _ in range(int(rate * seconds)))]
    open_ones = [_Line((url.hostname or "", url.port or 80)) for _ in range(CONNECTIONS)]
    try:
        return _run(open_ones, request, moments)
    finally:
        for line in open_ones:
            line.socket.close()


def _run(lines: list[_Line], request: bytes, moments: list[float]) -> Times:
    free, waiting, took = deque(lines), deque(moments), list[tuple[float, float]]()
    with selectors.EpollSelector() as selector:
        for line in lines:
            selector.register(line.socket, selectors.EVENT_READ, line)
        start = time.perf_counter()
        while len(took) < len(moments):
            now = time.perf_counter() - start
            while waiting and waiting[0] <= now and free:
                line = free.popleft()
                line.due = waiting.popleft()
                line.socket.sendall(request)
            pause = max(0.0, waiting[0] - now) if waiting and free else 1.0
            for key, _ in selector.select(pause):
                if key.data.has_all():
                    took.append((key.data.due, time.perf_counter() - start - key.data.due))
                    free.append(key.data)
        whole = time.perf_counter() - start
    counted = sorted(1000 * seconds for due, seconds in took if due >= WARM * moments[-1])
    return Times(counted, len(took) / whole, sum(line.refused for line in lines))
