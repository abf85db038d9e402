"""Estimate the noise in the Nile's flow: the likelihood of a hundred years from a Kalman filter, which is one `scan`.

The flow of a year is a level plus noise, and the level follows a random walk: y = a + ε, a' = a + η. The maximum
likelihood estimates of the variances of ε and η are 15,099 and 1,469.1 according to Durbin and Koopman (Time series
analysis by state space methods, 2001), chapter 2, who start with the first year. Newton's method finds them with
gradients and Hessians of the filter. Without a filter, the years are one normal vector of 99 entries, with a covariance
in closed form.

    python examples/kalman.py                starts its own server and stops it
    python examples/kalman.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from gaussian_process import FLOW
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array


class Filter:
    """−log p(years after the first | the first), as a graph of the logarithms of the two variances."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.theta, self.years = g.parameter(), g.input()
        noise, drift = (self.theta.exp().select(i) for i in (0, 1))
        first, rest = self.years.select(0), self.years.slice(starts=[1])
        loop = g.scan(noise, drift, first, noise, rest, body=g.function(year), carries=2, sequences=1)
        self.energy = loop.get_output(2).sum()


def year(f: gs.Graph) -> list[gs.Node]:
    """Return the mean and variance of the level after a year, and the negative log likelihood of the year."""
    noise, drift, mean, variance, flow = (f.input() for _ in range(5))
    variance = variance + drift
    miss, expected = flow - mean, variance + noise
    gain = variance / expected
    surprise = 0.5 * ((2 * np.pi * expected).log() + miss.square() / expected)
    return [mean + gain * miss, variance * (1 - gain), surprise]


def fit(client: gs.Client, model: Filter) -> Array:
    """Return the variances at the maximum, found by Newton's method."""
    theta = np.log([1e4, 1e3])
    for _ in range(8):
        feeds = {model.theta: theta, model.years: FLOW}
        slope = client.gradients(model.graph, feeds, of=model.energy).gradients[model.theta]
        curvature = client.hessian(model.graph, feeds, of=model.energy).hessian[model.theta, model.theta]
        theta = theta - np.linalg.solve(curvature, slope)
    return theta


def dense(theta: Array) -> tuple[float, Array]:
    """Return the same energy and its gradient, from the covariance matrix of all years."""
    n, y = len(FLOW) - 1, FLOW[1:] - FLOW[0]
    parts = np.exp(theta)[:, None, None] * [np.eye(n) + 1, np.minimum.outer(np.arange(n), np.arange(n)) + 1.0]
    covariance = parts.sum(axis=0)
    inverse = np.linalg.inv(covariance)
    whitened = inverse @ y
    energy = (n * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + y @ whitened) / 2
    return float(energy), np.array([np.sum(inverse * part) - whitened @ part @ whitened for part in parts]) / 2


def work(client: gs.Client) -> None:
    """Compare with the dense matrix away from the maximum, then find the maximum."""
    model, theta = Filter(), np.log([1e4, 1e3])
    answer = client.gradients(model.graph, {model.theta: theta, model.years: FLOW}, of=model.energy)
    energy, slope = dense(theta)
    print(f"energy: {float(answer.value):.10f}, by the dense matrix {energy:.10f}")
    for name, found, right in zip(("ε", "η"), answer.gradients[model.theta], slope, strict=True):
        print(f"by log var {name}: {found:.10f}, by the dense matrix {right:.10f}")
    noise, drift = np.exp(fit(client, model))
    print(f"variances: {noise:.1f} and {drift:.1f}, published 15099 and 1469.1")


if __name__ == "__main__":
    run(work, __doc__)
