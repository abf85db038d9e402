"""Find the largest batch that a server accepts, without sending one, over HTTP.

We want the gradients of a network of two layers for as many rows at once as possible. `plan` takes the types of the
leaves instead of their tensors, and estimates peak memory, FLOPs and the size of the response, and whether the server
would admit the request. Nothing is executed, so each dry run takes milliseconds. Finally one request is sent, to
compare its peak with the estimate.

    python examples/planning.py                starts its own server and stops it
    python examples/planning.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

WIDTH = 256


class Network:
    """Two layers and their loss as a graph, with arrays for it."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.rows, self.labels, w1, b1, w2, b2 = (*(g.input() for _ in range(2)), *(g.parameter() for _ in range(4)))
        hidden = self.rows.linear(w1, b1, activation="relu")
        self.loss = hidden.linear(w2, b2).cross_entropy(self.labels)
        shapes = {w1: (64, WIDTH), b1: (WIDTH,), w2: (WIDTH, 10), b2: (10,)}
        self.parameters = {node: np.full(shape, 0.01, np.float32) for node, shape in shapes.items()}

    def feeds(self, count: int) -> dict[gs.Node, Array]:
        """Return zeros for this number of rows. Broadcast arrays have the full shape but use no memory."""
        rows = np.broadcast_to(np.float32(0), (count, 64))
        return {self.rows: rows, self.labels: np.broadcast_to(np.int64(0), (count,)), **self.parameters}


def work(client: gs.Client, rows: int) -> None:
    """Plan ever larger batches, then send one of `rows`."""
    network = Network()
    first = plan = client.plan(network.graph, network.feeds(rows), form="base64")
    count = rows
    while plan.admitted:
        flops = plan.fields["forward_flops"] + plan.fields["backward_flops"]
        print(f"{count} rows: {plan.fields['peak_bytes']} bytes, {flops} FLOPs")
        count *= 4
        plan = client.plan(network.graph, network.feeds(count), form="base64")
    limits = plan.fields["limits"]
    print(f"{count} rows: refused, over {limits['peak_bytes']} bytes or {limits['flops']} FLOPs")
    peak = client.gradients(network.graph, network.feeds(rows), form="base64").stats["peak_bytes"]
    print(f"peak of {rows} rows: foretold {first.fields['peak_bytes']}, measured {peak}")


if __name__ == "__main__":
    run(work, __doc__, rows=1024)
