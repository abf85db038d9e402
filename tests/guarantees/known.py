"""Calls with known results, computed by NumPy."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.guarantees import loops
from tests.guarantees.jobs import Json, feed, node, request
from tests.guarantees.talk import JSON, SAFETENSORS, Address, once

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Known:
    """A request and the expected arrays of the response, by their place in it."""

    name: str
    path: str
    body: bytes
    expected: dict[str, Array]
    kind: str = JSON
    tolerance: float = 1e-9

    def is_answered_by(self, body: bytes) -> bool:
        """Whether these bytes are the right response, up to rounding."""
        tensors = (packed if self.kind == SAFETENSORS else plain)(body)
        return all(
            name in tensors
            and tensors[name].shape == np.shape(array)
            and np.allclose(tensors[name], array, self.tolerance, self.tolerance)
            for name, array in self.expected.items()
        )


def plain(body: bytes) -> dict[str, Array]:
    """The tensors of a JSON response, by field and node, or by field and index."""
    answer = json.loads(body)
    lists = {name: part for name, part in answer.items() if isinstance(part, list)}
    return {
        f"{name}.{entry.get('node', i)}": np.array(entry["tensor"]["data"]).reshape(entry["tensor"]["shape"])
        for name, part in lists.items()
        for i, entry in enumerate(part)
        if isinstance(entry, dict)
    }


def packed(body: bytes) -> dict[str, Array]:
    """The tensors of a safetensors response, all of which are float64."""
    start = 8 + int.from_bytes(body[:8], "little")
    header = json.loads(body[8:start])
    return {
        name: np.frombuffer(body[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]], "<f8")
        for name, entry in header.items()
        if name != "__metadata__"
    }


def _feed(i: int, array: Array) -> Json:
    return feed(i, list(array.shape), array.reshape(-1).tolist(), array.dtype.name)


#: the log-density of independent normals, and a penalty on the means: W1 of the benchmarks
DENSITY = [
    node("parameter"),
    node("parameter"),
    node("parameter"),
    node("exp", 1),
    node("sub", 2, 0),
    node("div", 4, 3),
    node("mul", 5, 5),
    node("mul_scalar", 6, scalar=-0.5),
    node("sub", 7, 1),
    node("tanh", 0),
    node("mul", 9, 9),
    node("mul_scalar", 10, scalar=0.1),
    node("sub", 8, 11),
    node("sum", 12),
]


def density(rng: np.random.Generator, path: str = "/v1/gradients", *, graph: bool = True) -> Known:
    """The value and gradients of W1, for 8 numbers."""
    mean, scale, x = (0.5 * rng.standard_normal(8) for _ in range(3))
    z, level = (x - mean) / np.exp(scale), np.tanh(mean)
    value = np.sum(-0.5 * z * z - scale - 0.1 * level * level)
    by_mean = z / np.exp(scale) - 0.2 * level * (1 - level * level)
    feeds = [_feed(i, part) for i, part in enumerate((mean, scale, x))]
    body = request(DENSITY, feeds) if graph else json.dumps({"feeds": feeds}).encode()
    expected = {"values.13": value, "gradients.0": by_mean, "gradients.1": z * z - 1, "gradients.2": -z / np.exp(scale)}
    return Known("W1", path, body, expected)


def quadratic(rng: np.random.Generator) -> Known:
    """The Hessian of xᵀAx, which is A + Aᵀ, or its product with a vector."""
    n = int(rng.integers(2, 12))
    a, x, v = rng.standard_normal((n, n)), rng.standard_normal(n), rng.standard_normal(n)
    nodes = [node("input"), node("parameter"), node("matmul", 0, 1), node("mul", 1, 2), node("sum", 3)]
    both = {"values.4": x @ a @ x, "gradients.1": (a + a.T) @ x}
    feeds = [_feed(0, a), _feed(1, x)]
    if rng.random() < 0.5:
        return Known("Hessian", "/v1/hessian", request(nodes, feeds), {**both, "hessian.0": a + a.T})
    body = request(nodes, feeds, vectors=[_feed(1, v)])
    return Known("hvp", "/v1/hvp", body, {**both, "hvp.1": (a + a.T) @ v})


def directional(rng: np.random.Generator) -> Known:
    """The derivative of x sin x along a direction."""
    x, v = rng.standard_normal((2, int(rng.integers(1, 400))))
    nodes = [node("parameter"), node("sin", 0), node("mul", 0, 1)]
    body = request(nodes, [_feed(0, x)], tangents=[_feed(0, v)])
    return Known("jvp", "/v1/jvp", body, {"values.2": x * np.sin(x), "tangents.2": v * (np.sin(x) + x * np.cos(x))})


def examples(rng: np.random.Generator) -> Known:
    """(w · x)² for a batch of x; the gradient with respect to w is 2 (w · x) x."""
    n = int(rng.integers(1, 40))
    w, x = rng.standard_normal(5), rng.standard_normal((n, 5))
    nodes = [node("parameter"), node("input"), node("matmul", 0, 1), node("square", 2)]
    body = request(nodes, [_feed(0, w), _feed(1, x)], mapped=[1])
    return Known("batch", "/v1/batch", body, {"values.3": (x @ w) ** 2, "gradients.0": 2 * (x @ w)[:, None] * x})


def doubled(rng: np.random.Generator, most: int = 60_000) -> Known:
    """2x, exactly, in safetensors, for small and large arrays."""
    x = rng.standard_normal(int(rng.integers(1, most)))
    graph = {"graph": {"nodes": [node("input"), node("add", 0, 0)]}}
    entry = {"dtype": "F64", "shape": [x.size], "data_offsets": [0, x.nbytes]}
    header = json.dumps({"__metadata__": {"request": json.dumps(graph)}, "feeds.0": entry}).encode()
    body = len(header).to_bytes(8, "little") + header + x.tobytes()
    return Known("binary", "/v1/forward", body, {"values.1": x + x}, SAFETENSORS, 0.0)


def looped(rng: np.random.Generator) -> Known:
    """A `scan` or a `while`, and its gradient."""
    body, expected = (loops.decay, loops.halving)[int(rng.integers(2))](rng)
    return Known("loop", "/v1/gradients", body, expected)


Maker = Callable[[np.random.Generator], Known]


def makers(address: Address) -> list[Maker]:
    """All kinds of calls, including calls of a registered graph if the server supports them."""
    kinds: list[Maker] = [density, density, quadratic, directional, examples, doubled, looped]
    if graph_id := registered(address):
        path = f"/v1/graphs/{graph_id}/gradients"
        kinds += [lambda rng: density(rng, path, graph=False)] * 2
    return kinds


def registered(address: Address) -> str | None:
    """Register W1's graph and return its id, or None if the server does not support it."""
    answer = once(address, "/v1/graphs", json.dumps({"graph": {"nodes": DENSITY}}).encode())
    return answer.json()["graph_id"] if answer.status in (200, 201) else None
