"""Fit a gamma distribution to the lifetimes of machines, some of which are still running (censored data).

A machine that failed at t contributes the density at t. A machine that still ran contributes the probability of a
longer lifetime, Q(k, t / θ), the regularised incomplete gamma function. Most libraries lack its derivative with respect
to the shape k. The gradient at the start is compared with finite differences of a numerically integrated density.

    python examples/survival.py                starts its own server and stops it
    python examples/survival.py --url URL      uses a running server
"""

from __future__ import annotations

import math

import numpy as np
from adam import Adam
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

MACHINES, SHAPE, SCALE, END = 400, 2.5, 3.0, 8.0


class Survival:
    """The mean negative log likelihood of the machines, as a graph of log k and log θ."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.theta, self.times, self.failed = g.parameter(), g.input(), g.input()
        k, scale = (self.theta.exp().select(i) for i in (0, 1))
        t = self.times / scale
        density = (k - 1.0).xlogy(t) - t - k.lgamma() - scale.log()
        still = k.igammac(t).log()
        self.loss = -(self.failed.where(density, still)).mean()


def machines() -> tuple[Array, Array]:
    """Return the times, cut off at the end, and whether each machine failed."""
    times = np.random.default_rng(4).gamma(SHAPE, SCALE, MACHINES)
    return np.minimum(times, END), times < END


def loss(theta: Array, times: Array, failed: Array) -> float:
    """Return the same, with the tail from the density, integrated with Simpson's rule."""
    k, scale = np.exp(theta)

    def density(t: Array) -> Array:
        return np.asarray((t / scale) ** (k - 1) * np.exp(-t / scale) / (math.gamma(k) * scale))

    t = np.linspace(0, END, 20001)
    weights = np.where(np.arange(t.size) % 2, 4.0, 2.0)
    weights[[0, -1]] = 1
    tail = 1 - (t[1] / 3) * weights @ density(t)
    return float(-np.mean(np.where(failed, np.log(density(times)), np.log(tail))))


def work(client: gs.Client, steps: int) -> None:
    """Compare the gradients, then run gradient descent."""
    model, (times, failed) = Survival(), machines()
    descent = Adam({model.theta: np.log([2.0, 2.0])}, rate=0.05)
    for step in range(steps):
        feeds = {**descent.parameters, model.times: times, model.failed: failed}
        answer = client.gradients(model.graph, feeds, of=model.loss)
        if step == 0:
            start, h = descent.parameters[model.theta], 1e-4
            pairs = [(loss(start + d, times, failed), loss(start - d, times, failed)) for d in h * np.eye(2)]
            other = np.array([(up - down) / (2 * h) for up, down in pairs])
            print(f"gradient: {np.abs(answer.gradients[model.theta] - other).max():.1e} off at most, by differences")
        descent.step(answer)
    k, scale = np.exp(descent.parameters[model.theta])
    print(f"found: shape {k:.4f}, scale {scale:.4f}, drawn with 2.5 and 3.0; {MACHINES - failed.sum()} still run")
    print(f"slope: {np.abs(answer.gradients[model.theta]).max():.1e}")


if __name__ == "__main__":
    run(work, __doc__, steps=300)
