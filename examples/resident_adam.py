"""The optimiser of `adam.py` as nodes of the graph: parameters and averages stay on the server, and a step is one call.

The graph computes new parameters and averages. The call stores them under the names that its leaves are fed from.
"""

from __future__ import annotations

import numpy as np

import gradserve_client as gs
from gradserve_client.tensors import Array


class ResidentAdam:
    """Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 1."""

    def __init__(
        self,
        client: gs.Client,
        loss: gs.Node,
        parameters: dict[gs.Node, Array],
        names: dict[gs.Node, str],
        rate: float = 1e-3,
        b1: float = 0.9,
        b2: float = 0.999,
    ) -> None:
        """Start with `parameters`, by leaf of the graph. `names` are the names of their tensors."""
        self.client, self.loss = client, loss
        self.rate, self.b1, self.b2 = rate, b1, b2
        self.kept: dict[gs.Node, gs.Resident] = {}
        self.new: dict[gs.Node, str] = {}
        dtype = next(iter(parameters.values())).dtype
        self.steps = self.leaf("steps", np.zeros((), dtype)) + 1
        self.new[self.steps] = "steps"
        for leaf, value in parameters.items():
            self.kept[leaf] = client.put(names[leaf], value)
            self.update(leaf, names[leaf], np.zeros_like(value))
        self.model = client.register(loss.graph, description="a step of Adam")

    def leaf(self, name: str, first: Array) -> gs.Node:
        """Store a tensor under this name, and append a leaf that is fed from it."""
        leaf = self.loss.graph.input()
        self.kept[leaf] = self.client.put(name, first)
        return leaf

    def update(self, leaf: gs.Node, name: str, nothing: Array) -> None:
        """Append the nodes that compute a parameter's next value."""
        gradient = self.loss.grad(leaf)
        mean = self.average(f"{name}.mean", nothing, gradient, self.b1)
        square = self.average(f"{name}.square", nothing, gradient.square(), self.b2)
        self.new[leaf - self.rate * mean / (square.sqrt() + 1e-8)] = name

    def average(self, name: str, nothing: Array, new: gs.Node, decay: float) -> gs.Node:
        """Append the update of a running average, and return it without its bias towards 0."""
        after = decay * self.leaf(name, nothing) + (1 - decay) * new
        self.new[after] = name
        return after / (1 - (float(np.log(decay)) * self.steps).exp())

    def step(self, feeds: dict[gs.Node, Array], *, durable: bool) -> float:
        """Take one step with feeds for the other leaves. Return the loss before it."""
        store = {node: gs.Store(name, durable=durable) for node, name in self.new.items()}
        return float(self.model.forward({**feeds, **self.kept}, outputs=[self.loss], store=store).value)

    def end(self) -> None:
        """Delete the tensors and the registered graph from the server."""
        for tensor in self.kept.values():
            self.client.delete(tensor)
        self.client.unregister(self.model)
