"""`make bench-service`: all rows, or those that are named; the sides of a row take turns in short bursts."""

from __future__ import annotations

import argparse
import json
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.error import HTTPError

from benchmarks.record import ROOT, Results
from benchmarks.service import bodies, servers
from benchmarks.service.goals import verdict
from benchmarks.service.load import Found, Target, closed_loop
from benchmarks.service.open_loop import open_loop
from benchmarks.suite import find
from benchmarks.turns import spread
from benchmarks.workload import Workload
from service.core.keys.caller import new_key

JSON, SAFETENSORS = "application/json", "application/vnd.safetensors"
FOLDER: Final = ROOT / "build" / "benchmarks"
KEPT: Final = FOLDER / "service.json"
#: the share of the highest rate at which times are measured in an open loop
LOAD = 0.7
W1_NAMES = ("mean", "log_scale", "x")
W2_NAMES = ("w0", "w1", "w2", "b0", "b1", "b2", "x", "wanted")
OURS, PEER, TUNED, OTHER = "gradserve", "FastAPI + PyTorch", "the same, tuned", "tesseract-core"
KEYED, DISK, SENT = "with a key", "on disk before the answer", "sent and answered, none kept"
BASE64, ECHO, FLOOR, ALONE = "tesseract-core, base64", "echo", "floor", "the worker in process"


@dataclass(frozen=True)
class Row:
    """Sides that are asked the same."""

    name: str
    title: str
    sides: Mapping[str, Target]
    connections: int
    absent: str = ""


class Bench:
    """Servers, started when they are first needed, and the requests that they get."""

    def __init__(self, *, peers: bool) -> None:
        self._stack = ExitStack()
        self._running: dict[str, servers.Running] = {}
        self._peers = peers
        self.w1, self.w2, self.large = find("W1")(), find("W2")(), bodies.large()

    def close(self) -> None:
        """End all servers."""
        self._stack.close()

    def rows(self) -> Mapping[str, Callable[[], Row]]:
        """All that is measured in a closed loop, by name; the servers of a row start when it is made."""
        binary = "W2 in binary, value and gradients of 235,146 numbers"
        isolation = "W1 in JSON, with and without isolation"
        return {
            "registered-8": lambda: self._registered(8),
            "stateless-8": lambda: self._stateless(8),
            "registered-64": lambda: self._registered(64),
            "stateless-64": lambda: self._stateless(64),
            "binary-8": lambda: Row("binary-8", binary, self._binary(), 8),
            "large-1": lambda: Row("large-1", "a gradient of 4 MB in safetensors, one client", self._large(), 1),
            "keys-8": self._keyed,
            "steps-1": self._steps,
            "isolation-8": lambda: Row("isolation-8", isolation, self._isolation(), 8),
        }

    def _server(self, name: str, *options: str) -> servers.Running:
        makers: dict[str, Callable[..., servers.Running]] = {
            OURS: servers.gradserve,
            KEYED: servers.with_key,
            PEER: servers.fastapi_torch,
            TUNED: lambda: servers.fastapi_torch(OMP_NUM_THREADS="1"),
            ECHO: lambda: servers.bare("echo"),
            FLOOR: lambda: servers.bare("floor"),
            ALONE: lambda: servers.bare("worker", "gradients"),
            OTHER: lambda: servers.tesseract("tesseract_density"),
            BASE64: lambda: servers.tesseract("tesseract_perceptron"),
        }
        key = " ".join((name, *options))
        if key not in self._running:
            self._running[key] = self._stack.enter_context(makers[name](*options))
        return self._running[key]

    def _target(self, name: str, path: str, body: bytes, kind: str = JSON, accepted: str = "") -> Target:
        return target(f"{self._server(name).url}{path}", body, kind, accepted)

    def _of_peers(self) -> dict[str, Target]:
        if not self._peers:
            return {}
        as_json = bodies.for_tesseract(self.w1, W1_NAMES, base64=False)
        return {
            PEER: self._target(PEER, "/gradients", bodies.for_fastapi(self.w1)),
            TUNED: self._target(TUNED, "/tuned", bodies.for_fastapi(self.w1)),
            OTHER: self._target(OTHER, "/vector_jacobian_product", as_json),
        }

    def _stateless(self, connections: int) -> Row:
        ours = self._target(OURS, "/v1/gradients", bodies.in_json(self.w1))
        sides = {OURS: ours, **self._of_peers()}
        return Row(f"stateless-{connections}", "W1 in JSON, with its graph", sides, connections)

    def _registered(self, connections: int, *options: str) -> Row:
        server = self._server(OURS, *options)
        name, title = f"registered-{connections}", "W1 on a registered graph, in JSON"
        graph = registered(server, self.w1)
        if graph is None:
            return Row(name, title, {}, connections, "the server has no /v1/graphs")
        body = bodies.in_json(self.w1, graph=False)
        ours = target(f"{server.url}/v1/graphs/{graph}/gradients", body, JSON)
        return Row(name, title, {OURS: ours, **self._of_peers()}, connections)

    def _binary(self) -> dict[str, Target]:
        body = bodies.in_safetensors(self.w2)
        found = {OURS: self._target(OURS, "/v1/gradients", body, SAFETENSORS)}
        if self._peers:
            encoded = bodies.for_tesseract(self.w2, W2_NAMES, base64=True)
            found[BASE64] = self._target(BASE64, "/vector_jacobian_product", encoded, JSON, f"{JSON}+base64")
        return found

    def _large(self) -> dict[str, Target]:
        body = bodies.in_safetensors(self.large)
        paths = {OURS: "/v1/gradients", **_bare(ECHO, FLOOR, ALONE)}
        return {name: self._target(name, path, body, SAFETENSORS) for name, path in paths.items()}

    def _isolation(self) -> dict[str, Target]:
        body = bodies.in_json(self.w1)
        paths = {OURS: "/v1/gradients", **_bare(ALONE, ECHO, FLOOR)}
        return {name: self._target(name, path, body) for name, path in paths.items()}

    def _keyed(self) -> Row:
        """A server counts for its metrics in any case."""
        key = new_key()
        server, apart = self._server(KEYED, key), self._registered(8)
        graph = registered(server, self.w1, key)
        body = bodies.in_json(self.w1, graph=False)
        there = target(f"{server.url}/v1/graphs/{graph}/gradients", body, JSON, key=key)
        sides = {KEYED: there, "without": apart.sides[OURS]}
        return Row("keys-8", "W1 on a registered graph, where a key is asked for", sides, 8)

    def _steps(self) -> Row:
        """One client, step after step."""
        disk = self._server(OURS, "--state", self._stack.enter_context(tempfile.TemporaryDirectory()))
        memory, weights = self._server(OURS), bodies.weights()
        for server in (disk, memory):
            send(f"{server.url}/v1/tensors/weights", json.dumps(weights).encode(), {"Content-Type": JSON}, "PUT")
        bodies_of = {
            "in memory, written later": (disk, bodies.step(durable=False)),
            DISK: (disk, bodies.step(durable=True)),
            SENT: (memory, bodies.step(durable=False, tensor=weights)),
        }
        sides = {name: target(f"{s.url}/v1/forward", body, JSON) for name, (s, body) in bodies_of.items()}
        return Row("steps-1", "a training step that stores 20 KB of parameters", sides, 1)


def _bare(*names: str) -> dict[str, str]:
    """The paths of the servers that do the least; none, where they lack their parser."""
    return dict.fromkeys(names, "/") if servers.has_bare() else {}


def registered(server: servers.Running, work: Workload, key: str = "") -> str | None:
    """The id of its graph; None where the server registers none."""
    headers = {"Content-Type": JSON} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        found: str = json.loads(send(f"{server.url}/v1/graphs", bodies.registration(work), headers))["graph_id"]
    except RuntimeError:
        return None
    return found


def target(url: str, body: bytes, kind: str, accepted: str = "", key: str = "") -> Target:
    """The body in a file, and asked once. Raises RuntimeError where it is refused."""
    there = Target(url, kind, accepted or kind, FOLDER / f"{abs(hash((url, body))):x}.body", key)
    FOLDER.mkdir(parents=True, exist_ok=True)
    there.file.write_bytes(body)
    send(url, body, there.headers)
    return there


def send(url: str, body: bytes, headers: Mapping[str, str], method: str = "POST") -> bytes:
    """One request, and its answer. RuntimeError tells what a server says that refuses it."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, dict(headers), method=method)) as answer:
            found: bytes = answer.read()
    except HTTPError as error:
        raise RuntimeError(f"{url}: {error.read()[:500]!r}") from None
    return found


def measured(row: Row, rounds: int, seconds: float) -> dict[str, Any]:
    """Each side in turn, each round beginning with another; medians and quartiles over the rounds."""
    names = list(row.sides)
    found: dict[str, list[Found]] = {name: [] for name in names}
    for name in names:
        closed_loop(row.sides[name], row.connections, seconds)
    for i in range(rounds):
        turn = i % len(names)
        for name in names[turn:] + names[:turn]:
            found[name].append(closed_loop(row.sides[name], row.connections, seconds))
    return {
        name: {what: asdict(spread([getattr(each, what) for each in bursts])) for what in ("rate", "p50", "p99")}
        for name, bursts in found.items()
    }


def at_load(row: Row, sides: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Each side at 70 % of its own highest rate, in an open loop: the middle one of three runs by p99."""
    found = {}
    for name, there in row.sides.items():
        rate = LOAD * sides[name]["rate"]["median"]
        runs = sorted((open_loop(there, rate, seconds) for _ in range(3)), key=lambda run: run.at(0.99))
        times = {f"p{p}": runs[1].at(p / 100) for p in (50, 99)}
        found[name] = {"asked": rate, "rate": runs[1].rate, "refused": runs[1].refused, **times}
    return found


def said(row: Row, sides: Mapping[str, Any]) -> str:
    """A line for the terminal."""
    parts = [
        f"{name} {each['rate']['median']:,.0f}/s p50 {each['p50']['median']:.2f} ms" for name, each in sides.items()
    ]
    return f"{row.name:14} {'; '.join(parts)}  {verdict(row.name, sides)}"


def main() -> None:
    """Measure, print a line a row, and keep it for the page."""
    parser = argparse.ArgumentParser(description="Time a server under load.")
    parser.add_argument("rows", nargs="*", help="names of rows; default: all")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a burst; of an open loop, five times as many")
    options = parser.parse_args()
    bench = Bench(peers=servers.has_peers())
    results = Results(KEPT, "cpu")
    print(results.heading())
    try:
        for name, row in bench.rows().items():
            if not options.rows or name in options.rows:
                results.add("service", name, _row(row(), options.rounds, options.seconds))
    finally:
        bench.close()
        for file in FOLDER.glob("*.body"):
            file.unlink()


def _row(row: Row, rounds: int, seconds: float) -> dict[str, Any]:
    kept: dict[str, Any] = {"title": row.title, "connections": row.connections, "absent": row.absent}
    if row.absent:
        print(f"{row.name:14} {row.absent}", flush=True)
        return kept
    sides = measured(row, rounds, seconds)
    print(said(row, sides), flush=True)
    kept["sides"] = sides
    if row.name in ("registered-64", "stateless-64"):
        kept["open"] = at_load(row, sides, 5 * seconds)
        print(*(f"  {name} at 70 %: p99 {each['p99']:.2f} ms" for name, each in kept["open"].items()), flush=True)
    return kept


if __name__ == "__main__":
    main()
