"""Sample a posterior with 64 chains at once, over HTTP.

The eight schools of Rubin (1981): the effect y_j of a coaching programme in each, with its standard error σ_j. With
θ_j = μ + τ η_j, η_j ~ N(0, 1), y_j ~ N(θ_j, σ_j), μ ~ N(0, 5) and τ ~ half-Cauchy(5), as in Gelman et al., Bayesian
Data Analysis (2013), chapter 5. Hamiltonian Monte Carlo (Neal, MCMC using Hamiltonian dynamics, 2011) moves
z = (η, μ/5, log τ): a leapfrog trajectory needs the gradient of −log p at each of its steps. The graph is one
trajectory of one chain, with its gradients as `grad` nodes. `batch` runs it for all chains in one execution.

    python examples/schools.py                starts its own server and stops it
    python examples/schools.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import picture, run

import gradserve_client as gs
from gradserve_client.tensors import Array

EFFECT = np.array([28, 8, -3, 7, -1, 1, 18, 12.0])
ERROR = np.array([15, 10, 16, 11, 9, 11, 10, 18.0])
CHAINS, LEAPS, STEP = 64, 10, 0.2


class Trajectory:
    """Leapfrog steps from (z, p) as a graph, and the energy −log p(z) at both ends."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.z, self.p, self.effect, self.error = (g.input() for _ in range(4))
        self.before, slope = self.energy(self.z)
        z, p = self.z, self.p
        for _ in range(LEAPS):
            p = p - STEP / 2 * slope
            z = z + STEP * p
            self.after, slope = self.energy(z)
            p = p - STEP / 2 * slope
        self.z_end, self.p_end = z, p

    def energy(self, z: gs.Node) -> tuple[gs.Node, gs.Node]:
        """Return −log p(z | data), up to a constant, and its gradient. The density of log τ has the factor τ."""
        eta, mean, log_tau = (z.slice(starts=[i], stops=[j]) for i, j in ((0, 8), (8, 9), (9, 10)))
        tau = log_tau.exp()
        theta = 5 * mean + tau * eta
        misses = (self.effect - theta) / self.error
        normal = 0.5 * self.graph.cat(misses, eta, mean, axis=0).square().sum()
        cauchy = (1 / 5 * tau).square().log1p()
        energy = normal + (cauchy - log_tau).sum()
        return energy, energy.grad(z)


def sample(client: gs.Client, count: int, rng: np.random.Generator) -> Array:
    """Return `count` points of each chain, after dropping as many, [chains, count, 10]."""
    t = Trajectory()
    z = rng.normal(size=(CHAINS, 10)) / 2
    points = []
    for _ in range(2 * count):
        p = rng.normal(size=z.shape)
        feeds = {t.z: z, t.p: p, t.effect: EFFECT, t.error: ERROR}
        wanted = [t.before, t.after, t.z_end, t.p_end]
        ends = client.batch(t.graph, feeds, mapped=[t.z, t.p], outputs=wanted).values
        rise = ends[t.after] - ends[t.before] + (np.sum(ends[t.p_end] ** 2, axis=1) - np.sum(p**2, axis=1)) / 2
        taken = np.log(rng.uniform(size=CHAINS)) < -rise
        z = np.where(taken[:, None], ends[t.z_end], z)
        points.append(z)
    return np.stack(points[count:], axis=1)


def r_hat(x: Array) -> float:
    """Return R-hat of chains [chains, n]: the spread of all relative to each, with halves as chains (BDA, 11.4)."""
    halves = np.concatenate(np.split(x[:, : x.shape[1] // 2 * 2], 2, axis=1))
    n = halves.shape[1]
    within, between = halves.var(axis=1, ddof=1).mean(), halves.mean(axis=1).var(ddof=1)
    return float(np.sqrt((n - 1) / n + between / within))


def work(client: gs.Client, count: int) -> None:
    """Sample, and print estimates of μ and τ."""
    z = sample(client, count, np.random.default_rng(0))
    mu, tau = 5 * z[:, :, 8], np.exp(z[:, :, 9])
    for name, x in (("μ", mu), ("τ", tau)):
        print(f"{name}: mean {x.mean():.4f} ± {x.mean(axis=1).std() / np.sqrt(CHAINS):.4f}, R-hat {r_hat(x):.4f}")
    print(f"{z.shape[0] * z.shape[1]} points from {2 * count} requests")
    with picture("schools", title="eight schools", xlabel="τ", ylabel="density") as axes:
        axes.hist(tau.ravel(), bins=80, range=(0, 20), density=True, alpha=0.5, label="64 chains")
        axes.plot(*density_of_tau(), label="exact")


def density_of_tau() -> tuple[Array, Array]:
    """Return p(τ | y) on a grid, with μ and the effects integrated out: BDA, equation 5.21, with our priors."""
    tau = np.linspace(0, 20, 401)
    weights = 1 / (ERROR**2 + tau[:, None] ** 2)
    precision = weights.sum(axis=1) + 1 / 25
    mean = (weights * EFFECT).sum(axis=1) / precision
    log = np.log(weights).sum(axis=1) - np.log(precision) - (weights * EFFECT**2).sum(axis=1) + precision * mean**2
    density = np.exp((log - log.max()) / 2) / (1 + (tau / 5) ** 2)
    return tau, density / np.trapezoid(density, tau)


if __name__ == "__main__":
    run(work, __doc__, count=150)
