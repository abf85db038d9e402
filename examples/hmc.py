"""Sample a posterior with 64 chains of Hamiltonian Monte Carlo in one request: draws, leapfrog steps and acceptance.

A line is fitted to ten points with noise of known width and normal priors. The posterior is a normal distribution with
moments in closed form. As in examples/schools.py, a trajectory needs the gradient of −log p at each of its steps (Neal,
MCMC using Hamiltonian dynamics, 2011). There, each draw is a request, and the client generates the random numbers.
Here the graph is a `scan` over draws, which contains a scan over leapfrog steps, which contains a `grad` node. The
random numbers come from a key, so the same seed gives the same chains.

    python examples/hmc.py                starts its own server and stops it
    python examples/hmc.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

CHAINS, LEAPS, STEP = 64, 10, 0.03
NOISE, PRIOR = 0.5, 2.0
X = np.linspace(-1, 2, 10)
Y = np.array([-1.3, -0.9, -0.2, 0.1, 0.9, 0.8, 1.6, 2.3, 2.2, 3.1])
DESIGN = np.stack([np.ones_like(X), X], axis=1)


class Chains:
    """The points of all chains, [draws, chains, 2], and the number of accepted ones, as a graph of the seed."""

    def __init__(self, draws: int) -> None:
        g = self.graph = gs.Graph()
        self.seed, self.design, self.y = g.input(dtype="int64", zero_d=True), g.input(), g.input()
        keys = self.seed.random_key().random_split(draws)
        start = g.constant(np.zeros((CHAINS, 2)))
        chain = g.scan(self.design, self.y, start, keys, body=g.function(draw), carries=1, sequences=1)
        self.points, self.accepted = chain.get_output(1), chain.get_output(2).mean()


def draw(f: gs.Graph) -> list[gs.Node]:
    """Follow a trajectory of each chain from a random momentum, and accept or reject it."""
    leap = f.function(leapfrog)
    design, y, z, key = (f.input() for _ in range(4))
    keys = key.random_split(2)
    p = keys.select(0).random_normal([CHAINS, 2], "float64")
    path = f.scan(design, y, z, p, body=leap, carries=2, length=LEAPS)
    z_end, p_end = path.get_output(0), path.get_output(1)
    rise = total(design, y, z_end, p_end) - total(design, y, z, p)
    taken = keys.select(1).random_uniform([CHAINS], "float64").log() < -rise
    after = taken.unsqueeze(axes=[1]).where(z_end, z)
    return [after, after, taken.cast("float64")]


def leapfrog(f: gs.Graph) -> list[gs.Node]:
    """Make half a step of the momentum, a step of the position, and half a step of the momentum."""
    design, y, z, p = (f.input() for _ in range(4))
    p = p - STEP / 2 * slope(design, y, z)
    z = z + STEP * p
    return [z, p - STEP / 2 * slope(design, y, z)]


def slope(design: gs.Node, y: gs.Node, z: gs.Node) -> gs.Node:
    """Return the gradient of each chain's energy with respect to its position."""
    return energy(design, y, z).sum().grad(z)


def energy(design: gs.Node, y: gs.Node, z: gs.Node) -> gs.Node:
    """Return −log p(z | y) of each chain, up to a constant."""
    misses = (z @ design.transpose() - y) / NOISE
    return 0.5 * (misses.square().sum(axes=[1]) + (z / PRIOR).square().sum(axes=[1]))


def total(design: gs.Node, y: gs.Node, z: gs.Node, p: gs.Node) -> gs.Node:
    """Return energy plus kinetic energy of each chain."""
    return energy(design, y, z) + 0.5 * p.square().sum(axes=[1])


def exact() -> tuple[Array, Array]:
    """Return mean and covariance of the posterior."""
    covariance = np.linalg.inv(DESIGN.T @ DESIGN / NOISE**2 + np.eye(2) / PRIOR**2)
    return covariance @ DESIGN.T @ Y / NOISE**2, covariance


def work(client: gs.Client, draws: int, seed: int) -> None:
    """Sample, and print the moments next to the exact ones."""
    chains = Chains(draws)
    feeds = {chains.seed: np.asarray(seed), chains.design: DESIGN, chains.y: Y}
    answer = client.forward(chains.graph, feeds, outputs=[chains.points, chains.accepted])
    points = answer.values[chains.points][draws // 5 :]
    accepted = float(answer.values[chains.accepted])
    print(f"{len(points) * CHAINS} points from one request, {100 * accepted:.1f} % of the draws accepted")
    mean, covariance = exact()
    for i, name in enumerate(("intercept", "slope")):
        z, deviation = points[:, :, i], np.sqrt(covariance[i, i])
        error = z.mean(axis=0).std() / np.sqrt(CHAINS)
        print(f"{name}: mean {z.mean():.4f} ± {error:.4f}, exactly {mean[i]:.4f}")
        print(f"deviation of {name}: {z.std():.4f}, exactly {deviation:.4f}")
    right = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    print(f"correlation: {np.corrcoef(points.reshape(-1, 2).T)[0, 1]:.4f}, exactly {right:.4f}")


if __name__ == "__main__":
    run(work, __doc__, draws=500, seed=0)
