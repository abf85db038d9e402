"""Solve a differential equation with a neural network and nested `grad` nodes, over HTTP.

The equation is u″(x) = −π² sin(πx) on [0, 1] with u = 0 at both ends. The solution is sin(πx). The network's output is
multiplied by x (1 − x), so the boundary conditions hold by construction. The loss is the residual of the equation at 64
points. It contains the second derivative of the network with respect to its input, from two nested `grad` nodes, and is
itself differentiated with respect to the weights. As in Raissi, Perdikaris and Karniadakis, Physics-informed neural
networks (2019).

    python examples/poisson.py                starts its own server and stops it
    python examples/poisson.py --url URL      uses a running server
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from adam import Adam
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

WIDTH, POINTS = 24, 64


class Solution:
    """u(x) = x (1 − x) · network(x) as a graph, with the residual of the equation as its loss."""

    def __init__(self, rng: np.random.Generator) -> None:
        g = self.graph = gs.Graph()
        self.x, self.right_side = g.input(), g.input()
        self.parameters: dict[gs.Node, Array] = {}
        hidden = self.layer(rng, self.x, 1, WIDTH, "tanh")
        hidden = self.layer(rng, hidden, WIDTH, WIDTH, "tanh")
        self.u = (self.x - self.x.square()) * self.layer(rng, hidden, WIDTH, 1, "none")
        curvature = self.u.grad(self.x).grad(self.x)
        self.loss = curvature.mse_loss(self.right_side)

    def layer(
        self, rng: np.random.Generator, x: gs.Node, into: int, out: int, activation: Literal["none", "tanh"]
    ) -> gs.Node:
        """Return activation(x @ w + b), with new parameters."""
        w, b = self.graph.parameter(), self.graph.parameter()
        self.parameters |= {w: rng.normal(0, into**-0.5, (into, out)), b: np.zeros(out)}
        return x.linear(w, b, activation=activation)


def work(client: gs.Client, steps: int) -> None:
    """Train, print the loss ten times, and finally the largest distance from the solution."""
    solution = Solution(np.random.default_rng(0))
    x = np.linspace(0, 1, POINTS)[:, None]
    points = {solution.x: x, solution.right_side: -(np.pi**2) * np.sin(np.pi * x)}
    adam = Adam(solution.parameters, rate=1e-2)
    for step in range(steps):
        answer = client.gradients(solution.graph, {**points, **solution.parameters}, of=solution.loss)
        adam.step(answer)
        if step % max(1, steps // 10) == 0:
            print(f"step {step:4}: loss {answer.value:.3e}")
    u = client.forward(solution.graph, {solution.x: x, **solution.parameters}, outputs=[solution.u]).value
    print(f"largest error: {np.abs(u - np.sin(np.pi * x)).max():.1e}")


if __name__ == "__main__":
    run(work, __doc__, steps=500)
