"""A complete gradserve client in one file: write a graph, send it with its tensors, get values and gradients back.

It uses neither gradserve's code nor the Python client that the other examples use. Any language with HTTP and JSON can
do the same.

    python examples/client.py [URL]          takes five steps of gradient descent on a server, by default on port 8000
"""

from __future__ import annotations

import base64
import os
import sys
from typing import Any, Self

import httpx
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = dict[int, Array]  # arrays by node
TENSORS = ("values", "gradients", "tangents", "jacobian", "hvp", "hessian")  # members of responses with tensors


class Graph:
    """A list of nodes. Every method appends a node and returns its id: its position in the list."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []

    def op(self, name: str, *operands: int, **attrs: Any) -> int:
        """Append any op of the catalogue (`GET /v1/ops`). Operands are earlier nodes."""
        self.nodes.append({"op": name, "operands": operands, "attrs": attrs})
        return len(self.nodes) - 1

    def input(self) -> int:
        """Append a leaf for data."""
        return self.op("input")

    def parameter(self) -> int:
        """Append a leaf that gets a gradient."""
        return self.op("parameter")


class Client:
    """A client of one server. The API key is read from GRADSERVE_API_KEY, if it is set."""

    def __init__(self, url: str) -> None:
        key = os.environ.get("GRADSERVE_API_KEY")
        self.http = httpx.Client(base_url=url, timeout=30, headers={"Authorization": f"Bearer {key}"} if key else {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.http.close()

    def call(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """POST a request and return the JSON of the response. Raises RuntimeError with the server's message."""
        response = self.http.post(path, json=request)
        answer: dict[str, Any] = response.json()
        if response.is_error:
            raise RuntimeError(f"{answer['code']}: {answer['detail']}")
        return answer

    def compute(self, call: str, graph: Graph, feeds: Feeds, **fields: Any) -> dict[str, Any]:
        """Make a call by name, with its `fields`. Return the response, with its tensors as arrays by node.

        Fields with a tensor for each of several nodes (cotangents, tangents, vectors) are dicts of arrays by node, too.
        """
        stated = {name: pack(value) if isinstance(value, dict) else value for name, value in fields.items()}
        request = {"graph": {"nodes": graph.nodes}, "feeds": pack(feeds), "encoding": "base64", **stated}
        answer = self.call(f"/v1/{call}", request)
        return {name: unpack(part) if name in TENSORS else part for name, part in answer.items()}


def pack(feeds: Feeds) -> list[dict[str, Any]]:
    """Return feeds in JSON. base64 is exact and fast; lists of numbers work, too."""
    return [{"node": node, "tensor": to_tensor(array)} for node, array in feeds.items()]


def to_tensor(array: Array) -> dict[str, Any]:
    """Convert an array to a tensor in JSON."""
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": array.shape, "data_b64": data}


def unpack(entries: list[dict[str, Any]]) -> dict[Any, Array]:
    """Return the arrays of a response in base64: by node, or by the two nodes of a block."""
    return {place(entry): to_array(entry["tensor"]) for entry in entries}


def place(entry: dict[str, Any]) -> int | tuple[int, ...]:
    """Return the node of an entry, or the pair `of` and `wrt` of a Jacobian, or `row` and `column` of a Hessian."""
    nodes = tuple(entry[name] for name in ("node", "of", "wrt", "row", "column") if name in entry)
    return nodes[0] if len(nodes) == 1 else nodes


def to_array(tensor: dict[str, Any]) -> Array:
    """Convert a tensor in JSON to an array. An empty tensor may have no data."""
    raw = base64.b64decode(tensor.get("data_b64", ""))
    return np.frombuffer(raw, tensor["dtype"]).reshape(tensor["shape"])


def main(url: str = "http://127.0.0.1:8000") -> None:
    """Fit y = w·x to two points."""
    g = Graph()
    w, x, y = g.parameter(), g.input(), g.input()
    loss = g.op("mse_loss", g.op("mul", w, x), y)
    feeds = {w: np.array(0.0), x: np.array([1.0, 2.0]), y: np.array([2.0, 4.0])}
    with Client(url) as client:
        for _ in range(5):
            answer = client.compute("gradients", g, feeds, of=loss)
            feeds[w] = feeds[w] - 0.1 * answer["gradients"][w]
            print(f"loss {answer['values'][loss]:g} w {feeds[w]:g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
