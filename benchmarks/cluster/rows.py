"""What is compared, and how far the two sides may be apart."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.error import URLError

import numpy as np

from benchmarks.cluster.stage import Pair, Stage, two_cores
from benchmarks.service import bodies
from benchmarks.service.__main__ import JSON, SAFETENSORS, registered, send, target
from benchmarks.service.load import Target, closed_loop
from benchmarks.service.servers import Running
from benchmarks.suite import find
from tests.guarantees.processes import processor_seconds

#: figures of both sides, from one round
Round = Callable[[int], tuple[float, float]]
RESIDENT: Final = 1000
#: a sum of so many blocks, each of some 20 ms
BLOCKS, BLOCK, FEATURES, HIDDEN = 32, 2048, 64, 2048
_TAKEN: Final = 0.05


@dataclass(frozen=True)
class Row:
    """One comparison: the first side's figure over the second's, or the first's alone where there is no second."""

    title: str
    sides: tuple[str, str]
    unit: str
    bound: float
    round: Round
    #: the ratio is to be no less than the bound, rather than no more
    at_least: bool = False


def rows(stage: Stage, seconds: float) -> Mapping[str, Callable[[], Row]]:
    """All of them, by name; the servers of a row start when it is made, and bursts of load take so many seconds."""
    made = _Rows(stage, seconds)
    return {
        "cluster-on": made.cluster_on,
        "haproxy": made.haproxy,
        "large": made.large,
        "serve-haproxy": lambda: made.by_serve("haproxy", "its HAProxy", 3.5),
        "serve-proxy": lambda: made.by_serve("proxy", "its default proxy", 20),
        "two-servers": made.two_servers,
        "store": made.store_elsewhere,
        "feed": made.feed_elsewhere,
        "graph-processor": made.graph_processor,
        "feed-processor": made.feed_processor,
        "sum": made.sum_here,
        "sum-cluster": made.sum_on_both,
        "takeover": made.takeover,
    }


class _Rows:
    """Makes each."""

    def __init__(self, stage: Stage, seconds: float) -> None:
        self._stage, self._seconds, self._w1 = stage, seconds, find("W1")()

    def _registered(self, server: Running, url: str | None = None) -> Target:
        """W1 on a graph that is registered there; asked for at another address, where one is given."""
        graph = registered(server, self._w1)
        return target(f"{url or server.url}/v1/graphs/{graph}/gradients", bodies.in_json(self._w1, graph=False), JSON)

    def _rate(self, there: Target, connections: int = 8) -> float:
        return closed_loop(there, connections, self._seconds).rate

    def _median(self, there: Target) -> float:
        return closed_loop(there, 1, self._seconds).p50

    def cluster_on(self) -> Row:
        """The shard of callers without keys is the first server's by then."""
        there, apart = self._registered(self._stage.shared.owner()[0]), self._registered(self._stage.apart)
        title = "W1 on a registered graph, 8 connections"
        sides = ("a server with --cluster on", "one without")
        return Row(
            title, sides, "/s", 0.95, _turns(lambda: self._rate(there), lambda: self._rate(apart)), at_least=True
        )

    def haproxy(self) -> Row:
        """Both sides are of one burst."""
        server = self._stage.apart
        proxy = self._stage.before(server.url)
        there = self._registered(server, proxy.url)

        def burst(_: int) -> tuple[float, float]:
            before = [processor_seconds(each.pid) for each in (proxy, server)]
            found = closed_loop(there, 8, self._seconds)
            requests = found.rate * max(1, round(self._seconds))
            took = [processor_seconds(each.pid) - had for each, had in zip((proxy, server), before, strict=True)]
            return 1e6 * took[0] / requests, 1e6 * took[1] / requests

        sides = ("HAProxy", "front and worker")
        return Row("processor time of a W1 request, 8 connections", sides, "µs", 0.4, burst)

    def large(self) -> Row:
        """One connection."""
        server, body = self._stage.apart, bodies.in_safetensors(bodies.large())
        proxy = self._stage.before(server.url)
        through, direct = (target(f"{each.url}/v1/gradients", body, SAFETENSORS) for each in (proxy, server))
        sides = ("through the ingress", "direct")
        bursts = _turns(lambda: self._median(through), lambda: self._median(direct))
        return Row("4 MB both ways, one connection, median", sides, "ms", 1.6, bursts)

    def by_serve(self, mode: str, proxy: str, bound: float) -> Row:
        """Ray is started for the row."""
        server = self._stage.apart
        ours = self._registered(server, self._stage.before(server.url).url)
        theirs = self._registered(self._stage.deployed(mode))
        sides = ("through the ingress", f"our application under Ray Serve, by {proxy}")
        bursts = _turns(lambda: self._rate(ours), lambda: self._rate(theirs))
        return Row("W1 on a registered graph, 8 connections", sides, "/s", bound, bursts, at_least=True)

    def two_servers(self) -> Row:
        """Jobs that wait for nothing but a processor."""
        first, second = (self._stage.pinned(core) for core in two_cores())
        body, path = _job(), "/v1/forward"
        both = target(f"{self._stage.before(first.url, second.url).url}{path}", body, JSON)
        one = target(f"{self._stage.before(first.url).url}{path}", body, JSON)
        sides = ("two servers, a core each", "one")
        bursts = _turns(lambda: self._rate(both, 4), lambda: self._rate(one, 4))
        return Row("jobs of 30 ms, 4 connections", sides, "/s", 1.6, bursts, at_least=True)

    def store_elsewhere(self) -> Row:
        """A training step whose 20 KB are in the store before its answer."""
        title = "a durable `store` of 20 KB, one client, median"
        return self._elsewhere(title, bodies.step(durable=True), 1.5)

    def feed_elsewhere(self) -> Row:
        """The bytes are cached by then; the version is asked for."""
        nodes = [{"op": "input"}, {"op": "sum", "operands": [0]}]
        asks = {"graph": {"nodes": nodes}, "feeds": [{"node": 0, "tensor_id": "weights"}]}
        return self._elsewhere("a resident tensor of 20 KB as a feed, cached, median", json.dumps(asks).encode(), 2)

    def graph_processor(self) -> Row:
        """The graph has been asked for before, so the other server computes while it asks the owner."""
        graph = registered(self._stage.shared.servers[0], self._w1)
        body = bodies.in_json(self._w1, graph=False)
        return self._processor_elsewhere("W1 on a registered graph", f"/v1/graphs/{graph}/gradients", body)

    def feed_processor(self) -> Row:
        """Compare the processor time of the requests of `feed_elsewhere`, with more connections."""
        nodes = [{"op": "input"}, {"op": "sum", "operands": [0]}]
        asks = {"graph": {"nodes": nodes}, "feeds": [{"node": 0, "tensor_id": "weights"}]}
        pair = self._stage.shared
        _asked(f"{pair.servers[0].url}/v1/tensors/weights", json.dumps(bodies.weights()).encode(), "PUT")
        return self._processor_elsewhere(
            "a resident tensor of 20 KB as a feed", "/v1/forward", json.dumps(asks).encode()
        )

    def _processor_elsewhere(self, what: str, path: str, body: bytes) -> Row:
        """Processor time of both servers for a request that one of them gets."""
        pair = self._stage.shared
        targets = {each.url: target(f"{each.url}{path}", body, JSON) for each in pair.servers}

        def took(url: str) -> float:
            before = sum(processor_seconds(each.pid) for each in pair.servers)
            found = closed_loop(targets[url], 8, self._seconds)
            taken: float = sum(processor_seconds(each.pid) for each in pair.servers) - before
            requests: float = found.rate * max(1, round(self._seconds))
            return 1e6 * taken / requests

        def bursts(number: int) -> tuple[float, float]:
            while True:
                owner, other = pair.owner()
                found = _turns(*(partial(took, each.url) for each in (other, owner)))(number)
                if pair.owner() == (owner, other):
                    return found

        title = f"processor time of a request for {what}, 8 connections"
        return Row(title, ("through another server, both servers", "through the owner"), "µs", 1.3, bursts)

    def _elsewhere(self, title: str, body: bytes, bound: float) -> Row:
        """Whoever gets most of a shard's requests becomes its owner: a round in which that happened is made again."""
        pair = self._stage.shared
        _asked(f"{pair.servers[0].url}/v1/tensors/weights", json.dumps(bodies.weights()).encode(), "PUT")
        targets = {each.url: target(f"{each.url}/v1/forward", body, JSON) for each in pair.servers}

        def bursts(number: int) -> tuple[float, float]:
            while True:
                owner, other = pair.owner()
                found = _turns(*(partial(self._median, targets[each.url]) for each in (other, owner)))(number)
                if pair.owner() == (owner, other):
                    return found

        return Row(title, ("through another server", "through the owner"), "ms", bound, bursts)

    def sum_here(self) -> Row:
        """All blocks, and one that is all of it, on the same cores."""
        server = self._stage.alone
        _keep_examples(server.url)
        whole, blocks = _sum(BLOCKS * BLOCK), _sum(BLOCK)
        measured = [partial(_processor, server.url, body, server) for body in (blocks, whole)]
        title = f"processor time of a sum of {BLOCKS} blocks"
        return Row(title, ("in blocks, on a server's workers", "as one block"), "ms", 1.3, _turns(*measured))

    def sum_on_both(self) -> Row:
        """Processor time of both servers, a core each, and of HAProxy, beside one with both cores and one block."""
        pair, alone = self._stage.pair("sums", two_cores()), self._stage.alone
        for url in (pair.servers[0].url, alone.url):
            _keep_examples(url)
        running = (*pair.servers, pair.ingress)
        both = partial(_processor, pair.ingress.url, _sum(BLOCK), *running)
        one = partial(_processor, alone.url, _sum(BLOCKS * BLOCK), alone)
        title = f"processor time of a sum of {BLOCKS} blocks"
        return Row(
            title,
            ("in blocks, on two servers of a core through the ingress", "as one block"),
            "ms",
            1.5,
            _turns(both, one),
        )

    def takeover(self) -> Row:
        """One that owns so many tensors is lost; whoever takes its place reads what it has."""
        pair = self._stage.pair("lost")
        _keep_many(pair)

        def lost(_: int) -> tuple[float, float]:
            owner, other = pair.owner()
            owner.kill()
            start = time.perf_counter()
            while not _written(other.url):
                time.sleep(_TAKEN)
            took = time.perf_counter() - start
            pair.replace(owner)
            return took, 1.0

        title = f"first write that is acknowledged after `kill -9` of an owner of {RESIDENT:,} tensors"
        return Row(title, ("the other server", ""), "s", 6, lost)


def _turns(first: Callable[[], float], second: Callable[[], float]) -> Round:
    """Each round begins with the other side."""

    def round_of(number: int) -> tuple[float, float]:
        if number % 2:
            late = second()
            return first(), late
        return first(), second()

    return round_of


def _job() -> bytes:
    """Three products of 700 × 700: some 30 ms of a core."""
    nodes = [
        {"op": "input"},
        {"op": "full", "attrs": {"shape": [700, 700], "fill": 0.001}},
        {"op": "add", "operands": [1, 0]},
        {"op": "matmul", "operands": [2, 2]},
        {"op": "matmul", "operands": [3, 2]},
        {"op": "matmul", "operands": [4, 3]},
        {"op": "sum", "operands": [5]},
    ]
    feed = {"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [0.5]}}
    return json.dumps({"graph": {"nodes": nodes}, "feeds": [feed]}).encode()


def _keep_examples(url: str) -> None:
    """Examples and weights of the sum."""
    rng = np.random.default_rng(0)
    shapes = {"examples": (BLOCKS * BLOCK, FEATURES), "first": (FEATURES, HIDDEN), "second": (HIDDEN, 1)}
    for name, shape in shapes.items():
        values = (rng.standard_normal(shape) / 16).astype("float32")
        told = {"dtype": "float32", "shape": shape, "data_b64": base64.b64encode(values.tobytes()).decode()}
        _asked(f"{url}/v1/tensors/{name}", json.dumps(told).encode(), "PUT")


def _sum(block: int) -> bytes:
    """The sum over all examples of the squares of a network of two layers."""
    nodes: list[dict[str, Any]] = [
        {"op": "parameter"},
        {"op": "parameter"},
        {"op": "input"},
        {"op": "reshape", "operands": [2], "attrs": {"shape": [1, FEATURES]}},
        {"op": "matmul", "operands": [3, 0]},
        {"op": "tanh", "operands": [4]},
        {"op": "matmul", "operands": [5, 1]},
        {"op": "square", "operands": [6]},
        {"op": "sum", "operands": [7]},
    ]
    named = [{"node": i, "tensor_id": name} for i, name in enumerate(("first", "second"))]
    rows_of = {"node": 2, "tensor_id": "examples", "rows": [0, BLOCKS * BLOCK]}
    store = [{"node": i, "gradient": True, "tensor_id": f"gradient.{i}", "durable": False} for i in (0, 1)]
    asks = {"graph": {"nodes": nodes}, "feeds": [*named, rows_of], "mapped": [2], "reduce": "sum", "block": block}
    return json.dumps({**asks, "wrt": [0, 1], "store": store}).encode()


def _processor(url: str, body: bytes, *servers: Running) -> float:
    """Milliseconds of processors that a call takes of these servers."""
    before = [processor_seconds(each.pid) for each in servers]
    _asked(f"{url}/v1/batch", body)
    took: float = sum(processor_seconds(each.pid) for each in servers) - sum(before)
    return 1000 * took


def _asked(url: str, body: bytes, method: str = "POST") -> None:
    send(url, body, {"Content-Type": JSON}, method)


def _number(value: float) -> bytes:
    return json.dumps({"dtype": "float64", "shape": [], "data": [value]}).encode()


def _keep_many(pair: Pair) -> None:
    url = pair.servers[0].url
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda i: _asked(f"{url}/v1/tensors/kept.{i}", _number(i), "PUT"), range(RESIDENT)))


def _written(url: str) -> bool:
    """Whether a tensor is kept there now."""
    try:
        _asked(f"{url}/v1/tensors/written", _number(1), "PUT")
    except (RuntimeError, URLError, OSError):
        return False
    return True
