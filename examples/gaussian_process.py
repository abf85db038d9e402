"""Fit the hyperparameters of a Gaussian process with the gradient of the marginal likelihood, over HTTP.

The data are the flow of the Nile at Aswan in the years 1871 to 1970, in 10⁸ m³ (Cobb, The problem of the Nile, 1978).
With K = a² exp(−(s − t)²/(2 l²)) + n² I and its Cholesky factor L, −log p(y) = ½ ‖L⁻¹ y‖² + Σ log L_ii + ½ N log 2π
(Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1). The graph contains `cholesky`
and `triangular_solve`, and is differentiated with respect to (log a, log l, log n). SciPy's minimiser runs in this
program. It calls the server for value and gradient as it would call a function.

    python examples/gaussian_process.py                starts its own server and stops it
    python examples/gaussian_process.py --url URL      uses a running server
"""

from __future__ import annotations

from math import log, pi

import numpy as np
from run import picture, run
from scipy.optimize import minimize

import gradserve_client as gs
from gradserve_client.tensors import Array

YEARS = np.arange(1871.0, 1971.0)
FLOW = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958,
    1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050,
    969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
    781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890, 744,
    749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
], dtype=float)  # fmt: skip


class Process:
    """−log p(y), and the mean and variance of the process at other times, as one graph."""

    def __init__(self, times: Array, y: Array, at: Array) -> None:
        g = self.graph = gs.Graph()
        between, self.beyond, measured, identity = (g.input() for _ in range(4))
        self.theta = g.parameter()
        self.size = len(y)
        amplitude, length, noise = (self.element(i).exp() for i in range(3))
        covariance = self.kernel(between, amplitude, length) + self.scaled(identity, noise)
        factor = covariance.cholesky()
        z = factor.triangular_solve(measured)
        self.energy = self.negative_log_likelihood(factor, z)

        across = factor.triangular_solve(self.kernel(self.beyond, amplitude, length))
        self.mean = z @ across
        explained = across.square().sum(axes=[0])
        self.variance = amplitude.square() - explained

        squares = (times[:, None] - times) ** 2, (times[:, None] - at) ** 2
        self.data = {between: squares[0], self.beyond: squares[1], measured: y, identity: np.eye(len(y))}

    def element(self, i: int) -> gs.Node:
        """Return θ[i], of shape [1]."""
        return self.theta.slice(starts=[i], stops=[i + 1])

    def scaled(self, x: gs.Node, by: gs.Node) -> gs.Node:
        """Return by² · x."""
        return by.square() * x

    def kernel(self, squares: gs.Node, amplitude: gs.Node, length: gs.Node) -> gs.Node:
        """Return a² exp(−squares / (2 l²))."""
        return self.scaled((-0.5 * (squares / length.square())).exp(), amplitude)

    def negative_log_likelihood(self, factor: gs.Node, z: gs.Node) -> gs.Node:
        """Return ½ ‖z‖² + Σ log L_ii + ½ N log 2π."""
        fit = 0.5 * z.square().sum()
        width = factor.diag().log().sum()
        return fit + width + self.size / 2 * log(2 * pi)

    def feeds(self, theta: Array) -> dict[gs.Node, Array]:
        """Return the feeds of −log p(y): all leaves except the other times."""
        return {node: array for node, array in self.data.items() if node != self.beyond} | {self.theta: theta}

    def fit(self, client: gs.Client, theta: Array) -> Array:
        """Return the most probable θ = (log a, log l, log n), starting nearby."""

        def objective(theta: Array) -> tuple[float, Array]:
            answer = client.gradients(self.graph, self.feeds(theta), of=self.energy)
            return float(answer.value), answer.gradients[self.theta]

        return np.asarray(minimize(objective, theta, jac=True, method="BFGS").x)

    def predict(self, client: gs.Client, theta: Array) -> tuple[Array, Array]:
        """Return the mean of the process and its standard deviation."""
        feeds = {**self.data, self.theta: theta}
        mean, variance = client.forward(self.graph, feeds, outputs=[self.mean, self.variance]).values
        return mean, np.sqrt(variance)


def work(client: gs.Client) -> None:
    """Fit, predict, plot."""
    at = np.arange(1871.0, 1981.0, 0.5)
    level = FLOW.mean()
    process = Process(YEARS, FLOW - level, at)
    theta = process.fit(client, np.log([150.0, 10.0, 100.0]))
    amplitude, length, noise = np.exp(theta)
    energy = float(client.forward(process.graph, process.feeds(theta), outputs=[process.energy]).value)
    mean, deviation = process.predict(client, theta)
    print(f"log-likelihood: {-energy:.8f}")
    print(f"amplitude: {amplitude:.4f}")
    print(f"length: {length:.4f} years")
    print(f"noise: {noise:.4f}")
    print(f"flow in 1971: {level + mean[200]:.4f} ± {deviation[200]:.4f}")
    with picture("gaussian_process", title="the Nile at Aswan", xlabel="year", ylabel="flow, 10⁸ m³") as axes:
        axes.plot(YEARS, FLOW, ".", label="measured")
        axes.plot(at, level + mean, label="mean of the process")
        low, high = level + mean - 2 * deviation, level + mean + 2 * deviation
        axes.fill_between(at, low, high, alpha=0.3, label="two deviations")


if __name__ == "__main__":
    run(work, __doc__)
