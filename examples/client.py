"""A gradserve client, whole: write a graph, send it with its tensors, get values and gradients back.

Nothing here knows gradserve's own code. Any language that speaks HTTP and JSON can do the same.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Any, Self

import httpx
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = dict[int, Array]  # node → the array that it stands for
Named = Mapping[int, Array | str]  # the same, or the name of a tensor that the server keeps
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

    def register(self, graph: Graph, description: str = "") -> str:
        """Have the server keep a graph. Its id, which stands for the graph from then on."""
        request = {"graph": {"nodes": graph.nodes}, "description": description}
        graph_id: str = self.call("/v1/graphs", request)["graph_id"]
        return graph_id

    def put(self, name: str, array: Array) -> None:
        """Have the server keep a tensor, which feeds can name from then on."""
        (entry,) = pack({0: array})
        response = self.http.put(f"/v1/tensors/{name}", json=entry["tensor"])
        if response.is_error:
            raise RuntimeError(response.json()["detail"])

    def get(self, name: str) -> Array:
        """A tensor that the server keeps."""
        response = self.http.get(f"/v1/tensors/{name}", params={"encoding": "base64"})
        if response.is_error:
            raise RuntimeError(response.json()["detail"])
        return to_array(response.json()["tensor"])

    def compute(self, call: str, graph: Graph | str, feeds: Named, **fields: Any) -> dict[str, Any]:
        """Any call that computes, by its name; `fields` are its own. In the answer, tensors are arrays by their node.

        The graph may be given by its id, once it is registered.

        A field that belongs to several nodes (cotangents, tangents, vectors) is given as arrays by node, too.
        """
        named = {name: pack(value) if isinstance(value, dict) else value for name, value in fields.items()}
        request = {"feeds": pack(feeds), "encoding": "base64", **named}
        if isinstance(graph, Graph):
            answer = self.call(f"/v1/{call}", {"graph": {"nodes": graph.nodes}, **request})
        else:
            answer = self.call(f"/v1/graphs/{graph}/{call}", request)
        return {name: unpack(part) if name in TENSORS else part for name, part in answer.items()}

    def forward(self, graph: Graph, feeds: Feeds, output: int) -> Array:
        """The value of one node."""
        value: Array = self.compute("forward", graph, feeds, outputs=[output])["values"][output]
        return value

    def gradients(self, graph: Graph, feeds: Feeds, loss: int) -> tuple[float, Feeds]:
        """The loss, and its gradient for every parameter."""
        answer = self.compute("gradients", graph, feeds, of=loss)
        return float(answer["values"][loss]), answer["gradients"]


def pack(feeds: Named) -> list[dict[str, Any]]:
    """Arrays as the wire writes them. base64 is exact and quick; plain number lists are allowed too."""
    return [
        {"node": node, "tensor_id": fed}
        if isinstance(fed, str)
        else {
            "node": node,
            "tensor": {
                "dtype": fed.dtype.name,
                "shape": fed.shape,
                "data_b64": base64.b64encode(fed.tobytes()).decode(),
            },
        }
        for node, fed in feeds.items()
    ]


def types(feeds: Feeds) -> list[dict[str, Any]]:
    """What the arrays are, for the calls that run nothing."""
    return [{"node": node, "dtype": array.dtype.name, "shape": array.shape} for node, array in feeds.items()]


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
