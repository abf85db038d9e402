"""Sample by diffusion: noise becomes three clusters, step by step, in one request.

Data with noise of width σ have a density that is smoother the larger σ is. With its score ∇ log p(x; σ), one can start
from pure noise and reduce σ (Song and others, Score-based generative modeling, 2021, appendix F). Usually the score is
a neural network. Here the data are three normal clusters, so the score is known: p is a mixture whose components are
widened by σ, and the score is a `grad` node. The whole sampler is one `scan` over σ, with a random key for each step.

    python examples/diffusion.py                starts its own server and stops it
    python examples/diffusion.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import picture, run

import gradserve_client as gs
from gradserve_client.tensors import Array

CENTRES = np.array([[0.0, 2.0], [-2.0, -1.0], [2.0, -1.0]])
WIDTHS = np.array([0.3, 0.5, 0.2])
SHARES = np.array([0.5, 0.3, 0.2])
#: noise widths at the beginning and at the end
MOST, LEAST = 30.0, 0.005


class Sampler:
    """Points [count, 2], as a graph of the seed, the clusters, and the noise width of each step."""

    def __init__(self, count: int, steps: int) -> None:
        g = self.graph = gs.Graph()
        self.count = count
        self.seed, self.noise = g.input(dtype="int64", zero_d=True), g.input()
        self.clusters = [g.input() for _ in range(3)]
        keys = self.seed.random_key().random_split(steps + 1)
        first, others = keys.select(0), keys.slice(starts=[1])
        noise, less = (self.noise.slice(starts=[i], stops=[i + steps]) for i in (0, 1))
        start = MOST * first.random_normal([count, 2], "float64")
        step = g.function(self.denoise)
        loop = g.scan(*self.clusters, start, noise, less, others, body=step, carries=1, sequences=3)
        self.points = loop.get_output(0)

    def denoise(self, f: gs.Graph) -> gs.Node:
        """Reduce the noise of points: move them along the score, and add fresh noise of a smaller width."""
        centres, widths, shares, x, noise, less, key = (f.input() for _ in range(7))
        gone = noise.square() - less.square()
        score = log_density(x, centres, widths.square() + noise.square(), shares).sum().grad(x)
        return x + gone * score + less / noise * gone.sqrt() * key.random_normal([self.count, 2], "float64")


def log_density(x: gs.Node, centres: gs.Node, variances: gs.Node, shares: gs.Node) -> gs.Node:
    """Return log p of each point, up to a constant."""
    distances = (x.unsqueeze(axes=[1]) - centres).square().sum(axes=[2])
    return (shares.log() - variances.log() - 0.5 * distances / variances).logsumexp(axes=[1])


def sample(client: gs.Client, count: int, steps: int, seed: int) -> Array:
    """Return the points of one request."""
    sampler = Sampler(count, steps)
    feeds = {sampler.seed: np.asarray(seed), sampler.noise: np.geomspace(MOST, LEAST, steps + 1)}
    feeds |= dict(zip(sampler.clusters, (CENTRES, WIDTHS, SHARES), strict=True))
    return client.forward(sampler.graph, feeds, outputs=[sampler.points]).value


def work(client: gs.Client, count: int, steps: int, seed: int) -> None:
    """Sample, and print the moments of each cluster next to the exact ones."""
    points = sample(client, count, steps, seed)
    print(f"{count} points from one request of {steps} steps")
    with picture("diffusion", title="three clusters, by diffusion", xlabel="x", ylabel="y") as axes:
        axes.plot(*points[:4000].T, ",")
    nearest = np.linalg.norm(points[:, None] - CENTRES, axis=2).argmin(axis=1)
    for i, (share, centre, width) in enumerate(zip(SHARES, CENTRES, WIDTHS, strict=True)):
        own = points[nearest == i]
        (x, y), deviation = own.mean(axis=0), (own - own.mean(axis=0)).std()
        print(
            f"cluster {i}: share {len(own) / count:.4f} of {share}, centre {x:.3f} {y:.3f} of {centre[0]} {centre[1]}, "
            f"width {deviation:.3f} of {width}"
        )


if __name__ == "__main__":
    run(work, __doc__, count=4000, steps=400, seed=0)
