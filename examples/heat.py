"""Solve the heat equation with a neural network and nested `grad` nodes, over HTTP.

u_t = k u_xx for 0 < x < 1 and 0 < t < 1, with u = 0 at both ends and u = sin(πx) at t = 0. The solution is
exp(−k π² t) sin(πx). The network's output is multiplied by t x (1 − x) and added to sin(πx), so the boundary and
initial conditions hold by construction. The loss is the mean square of u_t − k u_xx at interior points: `grad` computes
the gradient with respect to (t, x), and `grad` of one of its columns the second derivative. As in Raissi, Perdikaris
and Karniadakis, Physics-informed neural networks (2019).

    python examples/heat.py                starts its own server and stops it
    python examples/heat.py --url URL      uses a running server
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from adam import Adam
from run import picture, run

import gradserve_client as gs
from gradserve_client.tensors import Array

CONDUCTIVITY, WIDTH, POINTS = 0.1, 24, 12


class Solution:
    """u at points [n, 2] of (t, x) as a graph, with the residual of the equation as its loss."""

    def __init__(self, rng: np.random.Generator) -> None:
        g = self.graph = gs.Graph()
        self.points = g.input()
        self.parameters: dict[gs.Node, Array] = {}
        t, x = self.column(self.points, 0), self.column(self.points, 1)
        hidden = self.layer(rng, self.points, 2, WIDTH, "tanh")
        hidden = self.layer(rng, hidden, WIDTH, WIDTH, "tanh")
        inside = t * (x - x.square())
        self.u = (np.pi * x).sin() + inside * self.layer(rng, hidden, WIDTH, 1, "none")
        slope = self.u.grad(self.points)
        u_t, u_x = self.column(slope, 0), self.column(slope, 1)
        u_xx = self.column(u_x.grad(self.points), 1)
        self.loss = u_t.mse_loss(CONDUCTIVITY * u_xx)

    def column(self, x: gs.Node, i: int) -> gs.Node:
        """Return x[:, i], of shape [n, 1]."""
        return x.slice(starts=[0, i], stops=[POINTS**2, i + 1])

    def layer(
        self, rng: np.random.Generator, x: gs.Node, into: int, out: int, activation: Literal["none", "tanh"]
    ) -> gs.Node:
        """Return activation(x @ w + b), with new parameters."""
        w, b = self.graph.parameter(), self.graph.parameter()
        self.parameters |= {w: rng.normal(0, into**-0.5, (into, out)), b: np.zeros(out)}
        return x.linear(w, b, activation=activation)


def grid(low: float, high: float) -> Array:
    """Return the points (t, x) of a square grid, [n², 2]."""
    ticks = np.linspace(low, high, POINTS)
    return np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)


def exact(points: Array) -> Array:
    """Return the solution at points [n, 2]."""
    t, x = points.T
    return np.asarray(np.exp(-CONDUCTIVITY * np.pi**2 * t) * np.sin(np.pi * x))


def work(client: gs.Client, steps: int) -> None:
    """Train, print the distance of u from the solution between the points, and plot."""
    solution = Solution(np.random.default_rng(0))
    points = {solution.points: grid(0.02, 0.98)}
    adam = Adam(solution.parameters, rate=1e-2)
    for step in range(steps):
        adam.rate = 1e-2 * 0.1 ** (step / steps)
        answer = client.gradients(solution.graph, {**points, **solution.parameters}, of=solution.loss)
        adam.step(answer)
        if step % max(1, steps // 5) == 0:
            print(f"step {step:4}: loss {answer.value:.3e}")
    everywhere = grid(0, 1)
    feeds = {solution.points: everywhere, **solution.parameters}
    u = client.forward(solution.graph, feeds, outputs=[solution.u]).value[:, 0]
    print(f"largest error: {np.abs(u - exact(everywhere)).max():.1e}")
    draw(everywhere, u)


def draw(points: Array, u: Array) -> None:
    """Plot profiles at four times, with the solution."""
    x = np.linspace(0, 1, 101)
    with picture("heat", title="u_t = u_xx / 10", xlabel="x", ylabel="u") as axes:
        for start in range(0, POINTS**2, POINTS * 3):
            t, row = points[start, 0], slice(start, start + POINTS)
            (dots,) = axes.plot(points[row, 1], u[row], "o", label=f"t = {t:.2f}")
            axes.plot(x, exact(np.column_stack([np.full_like(x, t), x])), color=dots.get_color())


if __name__ == "__main__":
    run(work, __doc__, steps=300)
