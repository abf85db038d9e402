"""A gradient asked of a server on this host: mean((x·w − y)²) by w. Prints the answer; the standard library only.

Runs inside the container, by the image's own interpreter, since the container has no network but its loopback.
Comes with the key that the environment has, if any.
"""

from __future__ import annotations

import json
import os
from http.client import HTTPConnection

REQUEST = {
    "graph": {
        "nodes": [
            {"op": "input"},
            {"op": "parameter", "name": "w"},
            {"op": "input"},
            {"op": "matmul", "operands": [0, 1]},
            {"op": "sub", "operands": [3, 2]},
            {"op": "square", "operands": [4]},
            {"op": "mean", "operands": [5]},
        ]
    },
    "feeds": [
        {"node": 0, "tensor": {"dtype": "float64", "shape": [2, 2], "data": [1, 2, 3, 4]}},
        {"node": 1, "tensor": {"dtype": "float64", "shape": [2], "data": [1, 1]}},
        {"node": 2, "tensor": {"dtype": "float64", "shape": [2], "data": [2, 8]}},
    ],
}


def ask(port: int) -> str:
    """The answer's body. Raises OSError where nothing answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("GRADSERVE_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    connection.request("POST", "/v1/gradients", json.dumps(REQUEST), headers)
    return connection.getresponse().read().decode()


if __name__ == "__main__":
    print(ask(8000))
