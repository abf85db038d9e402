"""Approximate a posterior by Laplace's method: the inverse of a Hessian at the mode, over HTTP.

The data are the twelve initial rates of an enzyme treated with puromycin (Treloar 1974, in Bates and Watts, Nonlinear
Regression Analysis, 1988, table A1.3). The model is that of Michaelis and Menten, rate = V c / (K + c), with normal
errors of standard deviation σ. With a flat prior, the posterior of θ = (V, K, log σ) near its mode is approximately
normal, with the inverse Hessian of −log p as its covariance (MacKay, Information Theory, Inference, and Learning
Algorithms, 2003, chapter 27). The Hessian is one call. Newton's method finds the mode with the same call. `jacobian`
gives the derivative of the curve with respect to θ, and so its uncertainty.

    python examples/laplace.py                starts its own server and stops it
    python examples/laplace.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import picture, run

import gradserve_client as gs
from gradserve_client.tensors import Array

CONCENTRATION = np.repeat([0.02, 0.06, 0.11, 0.22, 0.56, 1.10], 2)
RATE = np.array([76, 47, 97, 107, 123, 139, 159, 152, 191, 201, 207, 200.0])


class Enzyme:
    """−log p(θ | data) up to a constant, as a graph, with the curve as one of its nodes."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.concentration, self.rate, self.theta = g.input(), g.input(), g.parameter()
        v, k, log_sigma = (self.element(i) for i in range(3))
        self.curve = (v * self.concentration) / (k + self.concentration)
        misses = (self.rate - self.curve) / log_sigma.exp()
        self.energy = (0.5 * misses.square() + log_sigma).sum()

    def element(self, i: int) -> gs.Node:
        """Return θ[i], of shape [1]."""
        return self.theta.slice(starts=[i], stops=[i + 1])


def mode(client: gs.Client, enzyme: Enzyme, theta: Array) -> tuple[Array, Array]:
    """Return the most probable θ and its covariance, found by Newton's method from a nearby θ."""
    for _ in range(20):
        feeds = {enzyme.concentration: CONCENTRATION, enzyme.rate: RATE, enzyme.theta: theta}
        answer = client.hessian(enzyme.graph, feeds)
        gradient, hessian = answer.gradients[enzyme.theta], answer.hessian[enzyme.theta, enzyme.theta]
        step = np.linalg.solve(hessian, gradient)
        theta = theta - step
        if gradient @ step < 1e-16:
            break
    return theta, np.linalg.inv(hessian)


def band(client: gs.Client, enzyme: Enzyme, theta: Array, covariance: Array, at: Array) -> tuple[Array, Array]:
    """Return the curve and its standard deviation, √(J Σ Jᵀ), at each concentration."""
    feeds = {enzyme.concentration: at, enzyme.theta: theta}
    answer = client.jacobian(enzyme.graph, feeds, outputs=[enzyme.curve])
    j = answer.jacobian[enzyme.curve, enzyme.theta]
    return answer.value, np.sqrt(np.einsum("ci,ij,cj->c", j, covariance, j))


def work(client: gs.Client) -> None:
    """Print the posterior, and plot the curve with its band."""
    enzyme = Enzyme()
    theta, covariance = mode(client, enzyme, np.array([200.0, 0.05, 2.3]))
    for name, value, deviation in zip(("V", "K", "log σ"), theta, np.sqrt(np.diag(covariance)), strict=True):
        print(f"{name}: {value:.5f} ± {deviation:.5f}")
    at = np.linspace(0, 1.2, 121)
    curve, deviation = band(client, enzyme, theta, covariance, at)
    print(f"rate at 0.4: {curve[40]:.4f} ± {deviation[40]:.4f}")
    print(f"correlation of V and K: {covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]):.4f}")
    with picture("laplace", title="treated with puromycin", xlabel="concentration, ppm", ylabel="rate") as axes:
        axes.plot(CONCENTRATION, RATE, "o", label="measured")
        axes.plot(at, curve, label="most probable")
        axes.fill_between(at, curve - 2 * deviation, curve + 2 * deviation, alpha=0.3, label="two deviations")


if __name__ == "__main__":
    run(work, __doc__)
