"""Find the largest batch that a server takes, without sending one, through HTTP.

A network of two layers, of which the gradients are wanted for as many rows at once as possible. `plan` takes the types
of the leaves in place of their tensors, and tells the peak of memory, the FLOPs, the size of the answer, and whether
the request would be admitted. Nothing runs, so each question costs milliseconds. One request is then sent, to see that
its peak is the one foretold.

    python examples/planning.py                starts a server of its own, and stops it
    python examples/planning.py --url URL      uses one that is running
"""

from __future__ import annotations

from typing import Any

import numpy as np
from client import Client, Feeds, Graph, types
from run import run

WIDTH = 256


class Network:
    """Two layers and their loss as a graph, and the arrays for it."""

    def __init__(self) -> None:
        g = self.graph = Graph()
        self.rows, self.labels, w1, b1, w2, b2 = (*(g.input() for _ in range(2)), *(g.parameter() for _ in range(4)))
        hidden = g.op("linear", self.rows, w1, b1, activation="relu")
        self.loss = g.op("cross_entropy", g.op("linear", hidden, w2, b2), self.labels)
        shapes = {w1: (64, WIDTH), b1: (WIDTH,), w2: (WIDTH, 10), b2: (10,)}
        self.parameters: Feeds = {node: np.full(shape, 0.01, np.float32) for node, shape in shapes.items()}

    def feeds(self, count: int) -> Feeds:
        """Zeros for so many rows. Arrays of one element, stretched: they have a shape, and take no memory."""
        rows = np.broadcast_to(np.float32(0), (count, 64))
        return {self.rows: rows, self.labels: np.broadcast_to(np.int64(0), (count,)), **self.parameters}


def forecast(client: Client, network: Network, count: int) -> dict[str, Any]:
    """What gradients for so many rows would take."""
    request = {"graph": {"nodes": network.graph.nodes}, "types": types(network.feeds(count)), "encoding": "base64"}
    return client.call("/v1/plan", request)


def work(client: Client, rows: int) -> None:
    """Ask about ever larger batches, then send one of `rows`."""
    network = Network()
    first = plan = forecast(client, network, rows)
    count = rows
    while plan["admitted"]:
        print(f"{count} rows: {plan['peak_bytes']} bytes, {plan['forward_flops'] + plan['backward_flops']} FLOPs")
        count *= 4
        plan = forecast(client, network, count)
    print(f"{count} rows: refused, over {plan['limits']['peak_bytes']} bytes or {plan['limits']['flops']} FLOPs")
    peak = client.compute("gradients", network.graph, network.feeds(rows))["stats"]["peak_bytes"]
    print(f"peak of {rows} rows: foretold {first['peak_bytes']}, measured {peak}")


if __name__ == "__main__":
    run(work, __doc__, rows=1024)
