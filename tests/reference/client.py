"""A client of the wire format: graphs of plain dicts in, arrays out, through the ASGI application."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.conftest import Client

Array = np.ndarray[Any, Any]


def tensor(array: Any) -> dict[str, Any]:
    """The wire form of an array: numbers if JSON can represent them, otherwise bytes."""
    array = np.asarray(array)
    form = {"dtype": array.dtype.name, "shape": list(array.shape)}
    if array.dtype.kind == "c":
        array = np.ascontiguousarray(array.reshape(-1)).view(array.real.dtype)
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return form | {"data": (array.astype(int) if array.dtype == bool else array).ravel().tolist()}
    return form | {"data_b64": base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode()}


def array(form: Mapping[str, Any]) -> Array:
    """The array of a tensor in either form."""
    if "data_b64" in form:
        flat = np.frombuffer(base64.b64decode(form["data_b64"]), np.dtype(form["dtype"]).newbyteorder("<"))
        return flat.astype(form["dtype"]).reshape(form["shape"])
    dtype = np.dtype(form["dtype"])
    parts = np.asarray(form.get("data", []), np.empty(0, dtype).real.dtype)
    return parts.view(dtype).reshape(form["shape"])


def post(client: Client, call: str, body: Mapping[str, Any]) -> Any:
    """Return the answer's JSON. Fails with the text of an error response."""
    answer = client.post(f"/v1/{call}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@dataclass
class Graph:
    """A graph under construction, the feeds of its leaves, and the client that computes it."""

    client: Client
    nodes: list[dict[str, Any]] = field(default_factory=list)
    feeds: dict[int, Array] = field(default_factory=dict)

    def leaf(self, value: Any, op: str = "parameter") -> int:
        """Add a fed node."""
        self.nodes.append({"op": op})
        self.feeds[len(self.nodes) - 1] = np.asarray(value)
        return len(self.nodes) - 1

    def add(self, op: str, *operands: int, **attrs: Any) -> int:
        """Add a node; arrays among the attributes are sent as tensors."""
        stated = {name: tensor(v) if isinstance(v, np.ndarray) else v for name, v in attrs.items()}
        self.nodes.append({"op": op, "operands": list(operands), "attrs": stated})
        return len(self.nodes) - 1

    def request(self, roots: Sequence[int], **fields: Any) -> dict[str, Any]:
        """The request body: this graph, and the feeds that `roots` need."""
        needed = self.needed(roots)
        feeds = [{"node": i, "tensor": tensor(a)} for i, a in self.feeds.items() if i in needed]
        return {"graph": {"nodes": self.nodes}, "feeds": feeds, **fields}

    def needed(self, roots: Sequence[int]) -> set[int]:
        """The nodes that `roots` depend on."""
        visited: set[int] = set()
        todo = list(roots)
        while todo:
            node = todo.pop()
            if node not in visited:
                visited.add(node)
                todo.extend(self.nodes[node].get("operands", ()))
        return visited

    def forward(self, *outputs: int) -> list[Array]:
        """The values of these nodes, from POST /v1/forward."""
        answer = post(self.client, "forward", self.request(outputs, outputs=list(outputs)))
        assert [v["node"] for v in answer["values"]] == list(outputs)
        return [array(v["tensor"]) for v in answer["values"]]

    def gradients(self, of: int, wrt: Sequence[int], cotangent: Any = None) -> list[Array]:
        """The value of `of` and its gradients with respect to `wrt`, from POST /v1/gradients."""
        seed = {} if cotangent is None else {"cotangent": tensor(cotangent)}
        answer = post(self.client, "gradients", self.request([of, *wrt], of=of, wrt=list(wrt), **seed))
        assert [v["node"] for v in answer["gradients"]] == list(wrt)
        return [array(v["tensor"]) for v in (*answer["values"], *answer["gradients"])]

    def disconnected(self, of: int, wrt: Sequence[int]) -> list[int]:
        """The nodes of `wrt` without a path to `of`, according to the answer."""
        answer = post(self.client, "gradients", self.request([of, *wrt], of=of, wrt=list(wrt)))
        nodes: list[int] = answer["disconnected"]
        return nodes


def complex_step(f: Any, arrays: Sequence[Array], index: int) -> Array:
    """The gradient of a real analytic scalar f with respect to arrays[index], to the last digits: Im f(x + ih) / h.

    W. Squire and G. Trapp, Using complex variables to estimate derivatives of real functions, SIAM Review 40 (1998).
    """
    h = 1e-40
    gradient = np.zeros(arrays[index].shape)
    for place in np.ndindex(*arrays[index].shape):
        moved = [np.array(a, complex) if a.dtype.kind == "f" else a for a in arrays]
        moved[index][place] += 1j * h
        gradient[place] = np.imag(f(*moved)) / h
    return gradient
