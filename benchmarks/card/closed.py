"""Load over HTTP: clients that each send as soon as they have their answer, in several processes."""

from __future__ import annotations

import http.client
import multiprocessing
import statistics
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain
from typing import Final
from urllib.parse import urlsplit

#: processes that clients are divided among: one alone would have its interpreter's lock for all
_PROCESSES: Final = 8
_TIMEOUT: Final = 60.0


def measure(url: str, body: bytes, clients: int, seconds: float) -> dict[str, float]:
    """Answers a second, and the median and the 99th percentile of their times in milliseconds.

    Raises RuntimeError where an answer is not 200.
    """
    processes = min(clients, _PROCESSES)
    shares = [clients // processes + (k < clients % processes) for k in range(processes)]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for each in [pool.submit(_clients, url, body, share, 0.0) for share in shares]:
            each.result()  # processes and server have begun
        waiting = [pool.submit(_clients, url, body, share, seconds) for share in shares]
        times = sorted(chain.from_iterable(each.result() for each in waiting))
    last = times[min(len(times) - 1, int(0.99 * len(times)))]
    return {"rate": len(times) / seconds, "p50": 1000 * statistics.median(times), "p99": 1000 * last}


def _clients(url: str, body: bytes, count: int, seconds: float) -> list[float]:
    """Seconds of each answer that came within that time; of each client, at least of one."""
    with ThreadPoolExecutor(count) as pool:
        found = [pool.submit(_client, url, body, seconds) for _ in range(count)]
        return [*chain.from_iterable(each.result() for each in found)]


def _client(url: str, body: bytes, seconds: float) -> list[float]:
    address, times = urlsplit(url), list[float]()
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_TIMEOUT)
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        connection.request("POST", address.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{url} answers {answer.status}: {text[:200]!r}")
        times.append(time.perf_counter() - start)
    connection.close()
    return times
