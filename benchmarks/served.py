"""Time whole calls against a server of its own, over the loopback: the encodings beside each other, and batch."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
import orjson
import pybase64

from benchmarks.service.servers import gradserve
from benchmarks.turns import Call, in_turns
from benchmarks.workload import Array

Json = dict[str, Any]
Body = list[bytes | memoryview]  # in pieces, which are sent one after the other
JSON: Final = "application/json"
SAFETENSORS: Final = "application/vnd.safetensors"
BYTES: Final = 16 << 20
EXAMPLES: Final = 64


@dataclass(frozen=True)
class Server:
    """One connection to a server."""

    connection: http.client.HTTPConnection

    def post(self, path: str, body: Body, kind: str = JSON) -> bytes:
        """The answer's body. Raises RuntimeError for a refusal."""
        headers = {"Content-Type": kind, "Accept": kind, "Content-Length": str(sum(map(len, body)))}
        self.connection.request("POST", path, body, headers)
        response = self.connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(answer.decode())
        return answer


@contextmanager
def served(device: str) -> Iterator[Server]:
    """A server in a process of its own."""
    with gradserve(device=device) as running:
        address = urlsplit(running.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=600)
        try:
            yield Server(connection)
        finally:
            connection.close()


@dataclass(frozen=True)
class Encoding:
    """How a client writes one tensor into a request for its negative, and reads the one in the answer."""

    name: str
    kind: str
    write: Callable[[Array], Body]
    read: Callable[[bytes], Array]


class Exchange:
    """One array, sent in one encoding."""

    def __init__(self, server: Server, encoding: Encoding, x: Array) -> None:
        """Raises RuntimeError where the answer is not the array's negative."""
        self._server, self.encoding, self._x = server, encoding, x
        self._body = encoding.write(x)
        if not np.array_equal(encoding.read(self.alone()), -x):
            raise RuntimeError(f"{encoding.name} gives other numbers")

    def alone(self) -> bytes:
        """Bytes to bytes."""
        return self._server.post("/v1/forward", self._body, self.encoding.kind)

    def whole(self) -> Array:
        """Array to array."""
        body = self.encoding.write(self._x)
        return self.encoding.read(self._server.post("/v1/forward", body, self.encoding.kind))


_NODES: Final = [{"op": "input"}, {"op": "neg", "operands": [0]}]
_GRAPH: Final[Json] = {"graph": {"nodes": _NODES}}


def _request(x: Array, payload: Json, encoding: str) -> Body:
    tensor = {"dtype": x.dtype.name, "shape": x.shape, **payload}
    request = {**_GRAPH, "feeds": [{"node": 0, "tensor": tensor}], "encoding": encoding}
    return _json(request)


def _json(request: Json) -> Body:
    return [orjson.dumps(request, option=orjson.OPT_SERIALIZE_NUMPY)]


def _base64(x: Array) -> str:
    return pybase64.b64encode_as_string(x.tobytes())


def _tensor(answer: bytes) -> Json:
    tensor: Json = orjson.loads(answer)["values"][0]["tensor"]
    return tensor


def _packed(x: Array) -> Body:
    entry = {"dtype": f"F{8 * x.itemsize}", "shape": x.shape, "data_offsets": [0, x.nbytes]}
    header = json.dumps({"__metadata__": {"request": json.dumps(_GRAPH)}, "feeds.0": entry}).encode()
    header += b" " * (-len(header) % 8)
    return [len(header).to_bytes(8, "little") + header, x.data.cast("B")]


def _unpacked(answer: bytes) -> Array:
    start = 8 + int.from_bytes(answer[:8], "little")
    entry = orjson.loads(answer[8:start])["values.1"]
    return np.frombuffer(answer, "f4" if entry["dtype"] == "F32" else "f8", offset=start)


def _from_base64(answer: bytes) -> Array:
    tensor = _tensor(answer)
    return np.frombuffer(pybase64.b64decode(tensor["data_b64"]), tensor["dtype"])


def _from_numbers(answer: bytes) -> Array:
    tensor = _tensor(answer)
    return np.array(tensor["data"], tensor["dtype"])


ENCODINGS: Final = (
    Encoding("safetensors", SAFETENSORS, _packed, _unpacked),
    Encoding("base64", JSON, lambda x: _request(x, {"data_b64": _base64(x)}, "base64"), _from_base64),
    Encoding("JSON", JSON, lambda x: _request(x, {"data": x}, "json"), _from_numbers),
)


def encodings(server: Server, repeats: int) -> Iterator[str]:
    """A tensor of 16 MB there and back: with the client's own writing and reading, and the exchange alone."""
    for dtype in ("float32", "float64"):
        x = np.random.default_rng(0).normal(size=BYTES // np.dtype(dtype).itemsize).astype(dtype)
        exchanges = [Exchange(server, each, x) for each in ENCODINGS]
        whole: dict[str, Call] = {exchange.encoding.name: exchange.whole for exchange in exchanges}
        yield compared(f"16 MB of {dtype} in and out", in_turns(whole, repeats))
        alone: dict[str, Call] = {exchange.encoding.name: exchange.alone for exchange in exchanges}
        yield compared("  the bytes of it, written and read before", in_turns(alone, repeats))


def small_graph() -> tuple[list[Json], dict[int, Array]]:
    """The squared error of a perceptron 8-16-1, for one example; its input is node 0, its target node 1."""
    rng = np.random.default_rng(0)
    shapes = {0: (8,), 1: (1,), 2: (8, 16), 3: (16,), 4: (16, 1), 5: (1,)}
    ops = [
        ("input",), ("input",), ("parameter",), ("parameter",), ("parameter",), ("parameter",),
        ("matmul", 0, 2), ("add", 6, 3), ("tanh", 7), ("matmul", 8, 4), ("add", 9, 5),
        ("sub", 10, 1), ("square", 11), ("sum", 12),
    ]  # fmt: skip
    nodes = [{"op": op, "operands": operands} for op, *operands in ops]
    return nodes, {i: rng.normal(size=shape) for i, shape in shapes.items()}


def _feeds(arrays: Mapping[int, Array]) -> list[Json]:
    return [
        {"node": i, "tensor": {"dtype": "float64", "shape": a.shape, "data": a.reshape(-1)}} for i, a in arrays.items()
    ]


def batch(server: Server, repeats: int) -> Iterator[str]:
    """Per-example values and gradients of 64 examples: one call of `batch`, and 64 of `gradients`, in JSON."""
    nodes, arrays = small_graph()
    rng = np.random.default_rng(1)
    examples = [{0: rng.normal(size=8), 1: rng.normal(size=1)} for _ in range(EXAMPLES)]

    def single(example: dict[int, Array]) -> Body:
        return _json({"graph": {"nodes": nodes}, "feeds": _feeds(arrays | example)})

    stacked = {i: np.stack([example[i] for example in examples]) for i in (0, 1)}
    together = _json({"graph": {"nodes": nodes}, "mapped": [0, 1], "feeds": _feeds(arrays | stacked)})
    singles = [single(example) for example in examples]
    _check_batch(server, together, singles)
    calls: dict[str, Call] = {
        "batch": lambda: server.post("/v1/batch", together),
        f"{EXAMPLES} calls": lambda: [server.post("/v1/gradients", one) for one in singles],
    }
    yield compared(f"{EXAMPLES} gradients of a perceptron 8-16-1", in_turns(calls, repeats))


def _check_batch(server: Server, together: Body, singles: list[Body]) -> None:
    """Raise RuntimeError unless the batch is the single answers, stacked."""
    whole = orjson.loads(server.post("/v1/batch", together))
    each = [orjson.loads(server.post("/v1/gradients", one)) for one in singles]
    for i, entry in enumerate(whole["gradients"]):
        expected = np.concatenate([one["gradients"][i]["tensor"]["data"] for one in each])
        if not np.allclose(entry["tensor"]["data"], expected, rtol=1e-12, atol=1e-14):
            raise RuntimeError("batch gives other gradients")


def compared(title: str, medians: Mapping[str, float]) -> str:
    """One row: medians, and how many times faster than the last each is."""
    *_, slowest = medians.values()
    times = [f"{name} {ms:8.2f} ms" for name, ms in medians.items()]
    ratios = ", ".join(f"{slowest / ms:.1f}" for ms in medians.values() if ms != slowest)
    return f"{title:44}{'  '.join(times)}  ratio {ratios}"


def main() -> None:
    """Measure and print a line each."""
    parser = argparse.ArgumentParser(description="Time whole calls over HTTP.")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} CPUs, on {options.device}")
    with served(options.device) as server:
        for measure in (encodings, batch):
            for row in measure(server, options.repeats):
                print(row, flush=True)


if __name__ == "__main__":
    main()
