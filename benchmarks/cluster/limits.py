"""Costs of a shard, a key, a server in HAProxy and a question, from which docs/scale.md derives where clusters end.

`python -m benchmarks.cluster.limits [commits shards keys haproxy questions]` prints a line for each figure. The store
is in memory, behind the latency that the line names, so that the figures are of this program and not of a store.
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from benchmarks.cluster.stage import Stage
from benchmarks.cluster.store import BUCKET
from benchmarks.record import machine
from benchmarks.service.servers import free
from service.cluster import composition
from service.cluster.composition import Cluster
from service.cluster.ingress.configuration import IngressLayout
from service.cluster.ingress.process import haproxy, haproxy_program
from service.cluster.owners import FREE
from service.core.keys.caller import KeyScope
from service.core.keys.key_file import KeyList, KeyRecord
from service.core.keys.key_index import KeyIndex, index_keys
from service.core.settings import Settings
from service.observe.store import StoreService
from service.store.changes import Change
from service.store.objects import Data, Exists, Missing, Objects, shard_of
from service.store.remote import open_remote
from service.store.tables import GraphStore, Registered
from service.store.writes import GraphWrite
from tests.guarantees.processes import processor_seconds
from tests.service.cluster.serving import SECRET

_ROUNDS: Final = 5
_SECONDS: Final = 2.0
_FOREVER: Final = float("inf")


class MemoryFolders:
    """Objects in memory, listed by folder, so that those of one shard are found among thousands of shards."""

    exclusive = False

    def __init__(self) -> None:
        self._folders = defaultdict[str, dict[str, bytes]](dict)
        self._lock = Lock()

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """Implement `Objects.get`."""
        try:
            return self._folder(key)[key][start:stop]
        except KeyError:
            raise Missing(key) from None

    def put(self, key: str, data: Sequence[Data]) -> None:
        """Implement `Objects.put`."""
        self._folder(key)[key] = b"".join(data)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """Implement `Objects.put_new`."""
        with self._lock:
            if key in self._folder(key):
                raise Exists(key)
            self._folder(key)[key] = b"".join(data)

    def delete(self, keys: Sequence[str]) -> None:
        """Implement `Objects.delete`."""
        for key in keys:
            self._folder(key).pop(key, None)

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """Implement `Objects.list` for the prefix of a folder."""
        return [key for key in [*self._folder(prefix)] if key > after]

    def close(self) -> None:
        """Implement `Objects.close`."""

    def _folder(self, key: str) -> dict[str, bytes]:
        return self._folders[key[: key.rindex("/")]]


class SlowObjects:
    """Objects, each request of which takes `seconds` more; counts requests, and those that create an object."""

    exclusive = False

    def __init__(self, objects: Objects, seconds: float = 0.0) -> None:
        self._objects = objects
        self.seconds = seconds
        self.requests = self.creations = 0

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """Implement `Objects.get`."""
        self._wait()
        return self._objects.get(key, start, stop)

    def put(self, key: str, data: Sequence[Data]) -> None:
        """Implement `Objects.put`."""
        self._wait()
        self._objects.put(key, data)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """Implement `Objects.put_new`."""
        self._wait()
        self._objects.put_new(key, data)
        self.creations += 1

    def delete(self, keys: Sequence[str]) -> None:
        """Implement `Objects.delete`, as one request."""
        self._wait()
        self._objects.delete(keys)

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """Implement `Objects.list`, as one request."""
        self._wait()
        return self._objects.list(prefix, after)

    def close(self) -> None:
        """Implement `Objects.close`: the objects stay open."""

    def _wait(self) -> None:
        self.requests += 1
        if self.seconds:
            time.sleep(self.seconds)


def commits() -> Iterator[str]:
    """Commits and writes of one shard, with one writer and with 64."""
    for milliseconds in (0, 20, 50):
        for writers in (1, 64, 512):
            rounds = [asyncio.run(_written(MemoryFolders(), milliseconds / 1000, 1, writers)) for _ in range(_ROUNDS)]
            yield f"one shard, {milliseconds} ms, {writers} writers: {_figures(rounds)}"
    stage = Stage()
    try:
        with patch.dict(os.environ, stage.store):
            for writers in (1, 64):
                places = (open_remote(f"s3://{BUCKET}/limits-{writers}-{number}") for number in range(_ROUNDS))
                rounds = [asyncio.run(_written(objects, 0.0, 1, writers)) for objects in places]
                yield f"one shard, moto, {writers} writers: {_figures(rounds)}"
    finally:
        stage.close()


def shards() -> Iterator[str]:
    """Writes, openings and memory of a server that owns many shards."""
    for count in (4, 64, 1024, 4096):
        rounds = [asyncio.run(_written(MemoryFolders(), 0.02, count, 64)) for _ in range(_ROUNDS)]
        yield f"{count} shards, 20 ms, 64 writers: {_figures(rounds)}"
    for count in (64, 4096):
        objects = SlowObjects(MemoryFolders(), 0.02)
        took, _, threads = asyncio.run(_opened(objects, count))
        tracemalloc.start()
        _, nbytes, _ = asyncio.run(_opened(SlowObjects(MemoryFolders()), count))
        tracemalloc.stop()
        yield (
            f"opening {count} empty shards, 20 ms, no lease: {took:.3g} s, {objects.requests / count:.3g} requests and "
            f"{nbytes / count:,.0f} bytes each, {threads} threads"
        )


def keys() -> Iterator[str]:
    """Bytes of keys in the file and in a server, which has all keys of the file."""
    for count in (10**5, 10**6):
        records = tuple(map(_key, range(count)))
        text = KeyList(keys=records).model_dump_json(indent=2, exclude_none=True).encode()
        data = KeyIndex.build(records).to_bytes()
        yield f"{count:,} keys: {len(text) / count:.0f} bytes each in the file, {len(data) / count:.0f} in a server"
        del records, data
        with TemporaryDirectory() as folder:
            file = Path(folder, "keys.json")
            file.write_bytes(text)
            file.chmod(0o600)
            began = time.perf_counter()
            try:
                index_keys(file)
            except ValueError as error:
                yield f"{count:,} keys, {len(text) / 2**20:.0f} MiB: {error}"
                continue
            took, peak = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            mib = len(text) / 2**20
            yield f"{count:,} keys, {mib:.0f} MiB: read in {took:.1f} s by a process of {peak / 1024:.0f} MiB"


def namespaces() -> Iterator[str]:
    """Bytes of a namespace with one small tensor, and how evenly a million of them are spread over shards."""
    count = 10**5
    service = _cluster(SlowObjects(MemoryFolders()), 1)[1]()
    tracemalloc.start()
    for number in range(count):
        graph = Registered.parse(b'{"graph_id":"g","number":%d,"graph":{}}' % number)
        service.graphs.load((f"customer-{number}", "g"), graph)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    yield f"{count:,} namespaces of a graph of 40 bytes: {held / count:,.0f} bytes each"
    names = [f"customer-{number}" for number in range(10**6)]
    rng = np.random.default_rng(0)
    for of in (16, 100, 256, 1000, 4096):
        counts = np.bincount([shard_of(name, of) for name in names], minlength=of)
        owned = np.bincount(rng.integers(1000, size=of), minlength=1000)
        yield (
            f"1,000,000 namespaces in {of} shards: {counts.mean():,.0f} each, {counts.min():,} to {counts.max():,}; of "
            f"1,000 servers {np.count_nonzero(owned)} own one or more, and at most {owned.max()}"
        )


def haproxy_slots() -> Iterator[str]:
    """Memory and processor time of an idle HAProxy, by slots and by servers that it checks."""
    port = free()
    with _answering(port):
        for slots, servers in ((32, 2), (1024, 2), (1024, 100), (1024, 1000)):
            nodes = tuple(f"127.{1 + number // 250}.0.{1 + number % 250}:{port}" for number in range(servers))
            layout = IngressLayout(f"127.0.0.1:{free()}", nodes, slots=slots, metrics=None)
            began = time.perf_counter()
            with haproxy(haproxy_program(), layout) as process:
                started = time.perf_counter() - began
                time.sleep(5)
                before = processor_seconds(process.pid)
                time.sleep(10)
                share = (processor_seconds(process.pid) - before) / 10
                status = Path(f"/proc/{process.pid}/status").read_text("ascii")
                resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
                up = len(process.table.ready())
                yield (
                    f"{slots} slots, {servers} servers, {up} of them up: {resident / 1024:.0f} MiB, "
                    f"{100 * share:.1f} % of a core for checks, started in {started:.2f} s"
                )


def questions() -> Iterator[str]:
    """Processor time of both servers for calls that read a resident tensor of 20 KB, through each of them."""
    stage = Stage()
    try:
        pair = stage.shared
        weights = {"dtype": "float64", "shape": [2500], "data": [0.5] * 2500}
        _request(pair.servers[0].url, "PUT", "/v1/tensors/weights", weights)
        nodes = [{"op": "input"}, {"op": "sum", "operands": [0]}]
        call = {"graph": {"nodes": nodes}, "feeds": [{"node": 0, "tensor_id": "weights"}]}
        for number, title in enumerate(("the owner", "another server")):
            rounds: list[list[float]] = []
            while len(rounds) < _ROUNDS:
                servers = pair.owner()
                before = [processor_seconds(server.pid) for server in servers]
                count = _asked(servers[number].url, call)
                took = [processor_seconds(server.pid) for server in servers]
                if pair.owner() == servers:  # the server that asks most may get the shard
                    rounds.append([1e6 * (now - then) / count for now, then in zip(took, before, strict=True)])
            at_owner, at_other = (statistics.median(side) for side in zip(*rounds, strict=True))
            yield f"a call through {title}: {at_owner:.0f} µs of the owner, {at_other:.0f} µs of the other server"
    finally:
        stage.close()


def _figures(rounds: Sequence[tuple[float, float, float]]) -> str:
    rate, writes, processor = (statistics.median(side) for side in zip(*rounds, strict=True))
    return f"{rate:.3g} commits/s, {writes:.4g} writes/s, {1e6 * processor:.0f} µs of processor time a write"


async def _written(place: Objects, latency: float, count: int, writers: int) -> tuple[float, float, float]:
    """Let writers store small graphs in turn in so many shards; return commits and writes a second, and their time."""
    objects = SlowObjects(place)
    cluster, _ = _cluster(objects, count)
    owned = cluster._owners.owned_shards  # noqa: SLF001 - of this server
    services = await asyncio.gather(*(owned.open(shard, FREE) for shard in range(count)))
    objects.seconds = latency  # openings are not measured
    written, end = 0, time.perf_counter() + _SECONDS

    async def write(writer: int) -> None:
        nonlocal written
        number = writer
        while time.perf_counter() < end:
            service = services[number % count]
            await service.commit([_replacement(service.graphs, f"g{writer}", number)], _FOREVER, 60.0)
            written += 1
            number += writers

    before, processor, began = objects.creations, time.process_time(), time.perf_counter()
    await asyncio.gather(*map(write, range(writers)))
    took, busy = time.perf_counter() - began, time.process_time() - processor
    creations, objects.seconds = objects.creations - before, 0.0
    await owned.close(60.0)
    return creations / took, written / took, busy / written


async def _opened(objects: SlowObjects, count: int) -> tuple[float, int, int]:
    """Open so many shards; return the seconds, the bytes that tracemalloc counts, and the number of threads."""
    cluster, _ = _cluster(objects, count)
    gc.collect()
    began, before = time.perf_counter(), tracemalloc.get_traced_memory()[0]
    owned = cluster._owners.owned_shards  # noqa: SLF001 - of this server
    await asyncio.gather(*(owned.open(shard, FREE) for shard in range(count)))
    took, threads = time.perf_counter() - began, threading.active_count()
    gc.collect()
    return took, tracemalloc.get_traced_memory()[0] - before, threads


def _cluster(objects: SlowObjects, count: int) -> tuple[Cluster, Callable[[], StoreService]]:
    """Make the parts of a server whose state is in these objects."""
    stated: dict[str, Any] = {"state": "s3://bucket/folder", "cluster": "on", "cluster_secret": SECRET}
    settings = Settings(**stated, cluster_address="http://10.0.0.7:8000", shards=count, lease_ms=0, max_graphs=10**7)
    with patch.object(composition, "open_objects", lambda place: objects):
        cluster = Cluster(settings)
    cluster.open_store(lambda outcome, seconds: None, None)
    return cluster, lambda: cluster._owners.owned_shards._make(0)  # noqa: SLF001 - of this server


def _replacement(table: GraphStore, name: str, number: int) -> Change:
    graph = Registered.parse(b'{"graph_id":"%s","number":%d,"graph":{}}' % (name.encode(), number))
    return Change(table, ("", name), graph, GraphWrite("", name, graph.record), lambda _: True)


def _key(number: int) -> KeyRecord:
    name = f"customer-{number:07}"
    return KeyRecord(name=name, sha256=f"{number * 0x9E3779B97F4A7C15:064x}"[-64:], namespace=name, scopes=_SCOPES)


_SCOPES: Final = (KeyScope.COMPUTE, KeyScope.READ, KeyScope.WRITE)


@contextmanager
def _answering(port: int) -> Iterator[None]:
    """Answer health checks on all addresses of the loopback, in a process of its own."""
    program = (
        "import asyncio, sys\n"
        "async def serve(reader, writer):\n"
        "    await reader.readuntil(b'\\r\\n\\r\\n')\n"
        "    writer.write(b'HTTP/1.1 200 OK\\r\\ncontent-length: 0\\r\\nconnection: close\\r\\n\\r\\n')\n"
        "    writer.close()\n"
        "async def main():\n"
        "    server = await asyncio.start_server(serve, '0.0.0.0', int(sys.argv[1]), backlog=4096)\n"
        "    print('listening', flush=True)\n"
        "    await server.serve_forever()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(port)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.terminate()


def _asked(url: str, call: dict[str, Any]) -> int:
    """Send calls over four connections for a while; return their number."""
    end = time.perf_counter() + _SECONDS
    body = json.dumps(call)

    def ask(_: int) -> int:
        connection, count = http.client.HTTPConnection(url.removeprefix("http://")), 0
        while time.perf_counter() < end:
            connection.request("POST", "/v1/forward", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                raise RuntimeError(f"{url} answers {response.status}")
            count += 1
        connection.close()
        return count

    with ThreadPoolExecutor(4) as threads:
        return sum(threads.map(ask, range(4)))


def _request(url: str, method: str, path: str, body: dict[str, Any]) -> None:
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
    if (response := connection.getresponse()).status >= 300:
        raise RuntimeError(f"{url}{path} answers {response.status}: {response.read()!r}")
    connection.close()


_ALL: Final = {
    "commits": commits,
    "shards": shards,
    "keys": keys,
    "namespaces": namespaces,
    "haproxy": haproxy_slots,
    "questions": questions,
}


def main() -> None:
    """Print the figures that are named, or all."""
    where = machine()
    print(f"{where['processor']}, {where['cores']} cores, load {where['load']:.1f}, Python {sys.version.split()[0]}")
    for name in sys.argv[1:] or _ALL:
        for line in _ALL[name]():
            print(f"{name}: {line} (load {os.getloadavg()[0]:.1f})", flush=True)


if __name__ == "__main__":
    main()
