"""A gradserve client, whole: write a graph, send it with its tensors, get values and gradients back.

Nothing here knows gradserve's own code, or its Python client, which the other examples use. Any language that speaks
HTTP and JSON can do the same.

    python examples/client.py [URL]          takes five steps of descent on a server, by default on port 8000
"""

from __future__ import annotations

import base64
import os
import sys
from typing import Any, Self

import httpx
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = dict[int, Array]  # node → the array that it stands for
TENSORS = ("values", "gradients", "tangents", "jacobian", "hvp", "hessian")  # the parts of answers that hold some


class Graph:
    """A list of nodes. Every method appends one and returns its id, which is its place in the list."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []

    def op(self, name: str, *operands: int, **attrs: Any) -> int:
        """Any op of the catalogue (`GET /v1/ops`), on earlier nodes."""
        self.nodes.append({"op": name, "operands": operands, "attrs": attrs})
        return len(self.nodes) - 1

    def input(self) -> int:
        """A leaf for data."""
        return self.op("input")

    def parameter(self) -> int:
        """A leaf that gets a gradient."""
        return self.op("parameter")


class Client:
    """A connection to a server, with the key in GRADSERVE_API_KEY, if any. Errors have the server's own sentence."""

    def __init__(self, url: str) -> None:
        key = os.environ.get("GRADSERVE_API_KEY")
        self.http = httpx.Client(base_url=url, timeout=30, headers={"Authorization": f"Bearer {key}"} if key else {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.http.close()

    def call(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """POST a request as it is."""
        response = self.http.post(path, json=request)
        answer: dict[str, Any] = response.json()
        if response.is_error:
            raise RuntimeError(f"{answer['code']}: {answer['detail']}")
        return answer

    def compute(self, call: str, graph: Graph, feeds: Feeds, **fields: Any) -> dict[str, Any]:
        """Any call that computes, by its name; `fields` are its own. In the answer, tensors are arrays by their node.

        A field that belongs to several nodes (cotangents, tangents, vectors) is given as arrays by node, too.
        """
        stated = {name: pack(value) if isinstance(value, dict) else value for name, value in fields.items()}
        request = {"graph": {"nodes": graph.nodes}, "feeds": pack(feeds), "encoding": "base64", **stated}
        answer = self.call(f"/v1/{call}", request)
        return {name: unpack(part) if name in TENSORS else part for name, part in answer.items()}


def pack(feeds: Feeds) -> list[dict[str, Any]]:
    """Arrays as the wire writes them. base64 is exact and quick; plain number lists are allowed too."""
    return [{"node": node, "tensor": to_tensor(array)} for node, array in feeds.items()]


def to_tensor(array: Array) -> dict[str, Any]:
    """One tensor of a request."""
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": array.shape, "data_b64": data}


def unpack(entries: list[dict[str, Any]]) -> dict[Any, Array]:
    """The arrays of an answer that was asked for in base64: by node, or by the two nodes of a block."""
    return {place(entry): to_array(entry["tensor"]) for entry in entries}


def place(entry: dict[str, Any]) -> int | tuple[int, ...]:
    """A node; of a Jacobian `of` and `wrt`, of a Hessian `row` and `column`."""
    nodes = tuple(entry[name] for name in ("node", "of", "wrt", "row", "column") if name in entry)
    return nodes[0] if len(nodes) == 1 else nodes


def to_array(tensor: dict[str, Any]) -> Array:
    """One tensor of an answer; an empty one may come without data."""
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
