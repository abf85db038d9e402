"""Fit a curve through a registered graph: the data are sent once, and each step sends the parameters alone.

How the planets' periods depend on their distance from the sun: log T = a + b log r by least squares, through Newton's
method with the exact Hessian, which for a quadratic loss is there after one step. Kepler's third law says b = 3/2.

    python examples/registered.py                starts a server of its own, and stops it
    python examples/registered.py --url URL      uses one that is running
"""

from __future__ import annotations

import json

import numpy as np
from client import Client, Graph, pack
from run import run

#: of the planets, Mercury first: distance in astronomical units, period in years
DISTANCE = np.array([0.387, 0.723, 1.0, 1.524, 5.203, 9.537, 19.191, 30.069])
PERIOD = np.array([0.2408, 0.6152, 1.0, 1.8808, 11.862, 29.457, 84.011, 164.79])


def residuals(repeats: int) -> tuple[Graph, int]:
    """The mean of (a + b log r − log T)² over the planets, so many times over; and its parameter [a, b]."""
    graph = Graph()
    ab = graph.parameter()
    r, t = np.log(np.tile(DISTANCE, repeats)), np.log(np.tile(PERIOD, repeats))
    x = constant(graph, np.column_stack([np.ones_like(r), r]))
    found = graph.op("matmul", x, ab)
    graph.op("mean", graph.op("square", graph.op("sub", found, constant(graph, t))))
    return graph, ab


def constant(graph: Graph, array: np.ndarray) -> int:
    """A node that holds an array."""
    (entry,) = pack({0: array})
    return graph.op("constant", value=entry["tensor"])


def work(client: Client, steps: int, repeats: int) -> None:
    """Register the graph, and take steps of Newton's method on it."""
    graph, ab = residuals(repeats)
    graph_id = client.register(graph, "Kepler's third law")
    found = np.zeros(2)
    for _ in range(steps):
        answer = client.compute("hessian", graph_id, {ab: found})
        found = found - np.linalg.solve(answer["hessian"][ab, ab], answer["gradients"][ab])
    print(f"T = {np.exp(found[0]):.4f} r^{found[1]:.4f}")
    sent = len(json.dumps({"feeds": pack({ab: found}), "encoding": "base64"}))
    print(f"bytes of the graph: {len(json.dumps(graph.nodes))}, of each step: {sent}")
    client.http.delete(f"/v1/graphs/{graph_id}").raise_for_status()


if __name__ == "__main__":
    run(work, __doc__, steps=2, repeats=100)
