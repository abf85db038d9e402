"""The optimiser of the examples. It runs in the client: the server computes gradients and stores nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import gradserve_client as gs
from gradserve_client.tensors import Array


@dataclass
class Adam:
    """Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 1."""

    parameters: dict[gs.Node, Array]
    rate: float = 1e-3
    b1: float = 0.9
    b2: float = 0.999
    steps: int = 0
    means: dict[gs.Node, Array] = field(default_factory=dict)
    squares: dict[gs.Node, Array] = field(default_factory=dict)

    def step(self, answer: gs.Gradients) -> None:
        """Move every parameter against its gradient, in place."""
        self.steps += 1
        for node in self.parameters:
            gradient = answer.gradients[node]
            mean = self.average(self.means, node, gradient, self.b1)
            square = self.average(self.squares, node, gradient**2, self.b2)
            self.parameters[node] -= (self.rate * mean / (np.sqrt(square) + 1e-8)).astype(gradient.dtype)

    def average(self, averages: dict[gs.Node, Array], node: gs.Node, new: Array, decay: float) -> Array:
        """Update the running average and return it without its bias towards 0."""
        averages[node] = decay * averages.get(node, np.zeros_like(new)) + (1 - decay) * new
        return averages[node] / (1 - decay**self.steps)
