"""Solve a differential equation with a neural network and nested `grad` nodes, through HTTP.

The equation is u″(x) = −π² sin(πx) on [0, 1] with u = 0 at both ends; its solution is sin(πx). The network's output is
multiplied by x (1 − x), so that the ends hold by construction. The loss asks for the equation at 64 points: it has the
second derivative of the network by its input in it, made by two nested `grad` nodes, and is itself differentiated by
the weights. As in Raissi, Perdikaris and Karniadakis, Physics-informed neural networks (2019).

    python examples/poisson.py                starts a server of its own, and stops it
    python examples/poisson.py --url URL      uses one that is running
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext

import numpy as np
from adam import Adam
from client import Client, Feeds, Graph
from server import running_server

WIDTH, POINTS = 24, 64


class Solution:
    """u(x) = x (1 − x) · network(x) as a graph, the residual of the equation as its loss."""

    def __init__(self, rng: np.random.Generator) -> None:
        g = self.graph = Graph()
        self.x, self.right_side = g.input(), g.input()
        self.parameters: Feeds = {}
        hidden = self.layer(rng, self.x, 1, WIDTH, "tanh")
        hidden = self.layer(rng, hidden, WIDTH, WIDTH, "tanh")
        ends = g.op("sub", self.x, g.op("square", self.x))
        self.u = g.op("mul", ends, self.layer(rng, hidden, WIDTH, 1, "none"))
        slope = g.op("grad", self.u, self.x)
        curvature = g.op("grad", slope, self.x)
        self.loss = g.op("mse_loss", curvature, self.right_side)

    def layer(self, rng: np.random.Generator, x: int, into: int, out: int, activation: str) -> int:
        """activation(x @ w + b), with new parameters."""
        w, b = self.graph.parameter(), self.graph.parameter()
        self.parameters |= {w: rng.normal(0, into**-0.5, (into, out)), b: np.zeros(out)}
        return self.graph.op("linear", x, w, b, activation=activation)


def solve(client: Client, steps: int) -> float:
    """Train, and return the largest distance from the solution. The loss is printed ten times."""
    solution = Solution(np.random.default_rng(0))
    x = np.linspace(0, 1, POINTS)[:, None]
    points = {solution.x: x, solution.right_side: -(np.pi**2) * np.sin(np.pi * x)}
    adam = Adam(solution.parameters, rate=1e-2)
    for step in range(steps):
        loss, gradients = client.gradients(solution.graph, {**points, **solution.parameters}, solution.loss)
        adam.step(gradients)
        if step % max(1, steps // 10) == 0:
            print(f"step {step:4}: loss {loss:.3e}")
    u = client.forward(solution.graph, {solution.x: x, **solution.parameters}, solution.u)
    return float(np.abs(u - np.sin(np.pi * x)).max())


def main() -> None:
    """Read the options, find or start a server, solve."""
    parser = argparse.ArgumentParser(description="Solve a differential equation through gradserve.")
    parser.add_argument("--url", help="the address of a running server; default: start one")
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    with nullcontext(options.url) if options.url else running_server() as url, Client(url) as client:
        print(f"largest error: {solve(client, options.steps):.1e}")


if __name__ == "__main__":
    main()
