"""The optimiser of `adam.py` as nodes of the graph: parameters and averages stay with the server, a step is one call.

The graph ends in new parameters and averages, and the call stores them under the names that its leaves are fed from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from client import Array, Client, Feeds, Graph


class ResidentAdam:
    """Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 1."""

    def __init__(
        self,
        graph: Graph,
        loss: int,
        parameters: Feeds,
        names: dict[int, str],
        rate: float = 1e-3,
        b1: float = 0.9,
        b2: float = 0.999,
    ) -> None:
        """`parameters` are where to begin, by the leaves of the graph, and `names` what their tensors are called."""
        self.graph, self.loss = graph, loss
        self.rate, self.b1, self.b2 = rate, b1, b2
        self.feeds: dict[int, str] = {}
        self.first: dict[str, Array] = {}
        self.new: dict[int, str] = {}
        dtype = next(iter(parameters.values())).dtype
        self.steps = graph.op("add_scalar", self.leaf("steps", np.zeros((), dtype)), scalar=1.0)
        self.new[self.steps] = "steps"
        for leaf, value in parameters.items():
            self.feeds[leaf], self.first[names[leaf]] = names[leaf], value
            self.update(leaf, names[leaf], np.zeros_like(value))

    def leaf(self, name: str, first: Array) -> int:
        """A leaf that is fed from the tensor of this name."""
        leaf = self.graph.input()
        self.feeds[leaf], self.first[name] = name, first
        return leaf

    def update(self, leaf: int, name: str, nothing: Array) -> None:
        """The nodes that make a parameter's next value."""
        op = self.graph.op
        gradient = op("grad", self.loss, leaf)
        mean = self.average(f"{name}.mean", nothing, gradient, self.b1)
        square = self.average(f"{name}.square", nothing, op("square", gradient), self.b2)
        size = op("add_scalar", op("sqrt", square), scalar=1e-8)
        self.new[op("sub", leaf, op("div", op("mul_scalar", mean, scalar=self.rate), size))] = name

    def average(self, name: str, nothing: Array, new: int, decay: float) -> int:
        """The running average of what came so far, without its bias towards 0."""
        op = self.graph.op
        before = op("mul_scalar", self.leaf(name, nothing), scalar=decay)
        after = op("add", before, op("mul_scalar", new, scalar=1 - decay))
        self.new[after] = name
        forgotten = op("exp", op("mul_scalar", self.steps, scalar=float(np.log(decay))))
        return op("div", after, op("add_scalar", op("neg", forgotten), scalar=1.0))

    def begin(self, client: Client) -> str:
        """Have the server keep the first values, and the graph, whose id this is."""
        for name, value in self.first.items():
            client.put(name, value)
        return client.register(self.graph, "a step of Adam")

    def step(self, client: Client, graph_id: str, feeds: Feeds, *, durable: bool) -> float:
        """Take one step, on the feeds of the other leaves. The loss before it."""
        store: list[dict[str, Any]] = [
            {"node": node, "tensor_id": name, "durable": durable} for node, name in self.new.items()
        ]
        answer = client.compute("forward", graph_id, {**feeds, **self.feeds}, outputs=[self.loss], store=store)
        return float(answer["values"][self.loss])

    def end(self, client: Client, graph_id: str) -> None:
        """Have the server forget all of it."""
        for name in self.first:
            client.http.delete(f"/v1/tensors/{name}").raise_for_status()
        client.http.delete(f"/v1/graphs/{graph_id}").raise_for_status()
