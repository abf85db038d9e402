"""Fit a logistic regression with Newton's method and conjugate gradients, over HTTP.

The data are the 569 tumours of the Wisconsin breast cancer data (UCI), with 30 features each, as scikit-learn ships
them. The loss is the mean cross-entropy of y given σ(x · w + b), plus λ/2 ‖w‖². Newton's step p solves H p = −∇f. H is
never formed: conjugate gradients only need products H v. Each of these is one call of `hvp`, exact, at the cost of a
few gradients. Nocedal and Wright, Numerical Optimization (2006), algorithm 7.1, with backtracking.

    python examples/newton.py                starts its own server and stops it
    python examples/newton.py --url URL      uses a running server
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from run import picture, run
from sklearn.datasets import load_breast_cancer

import gradserve_client as gs
from gradserve_client.tensors import Array

PENALTY = 1e-2  # λ


class Regression:
    """The loss as a graph of one parameter, the weights and the bias as one vector, with its data."""

    def __init__(self, client: gs.Client) -> None:
        self.client = client
        x, y = load_breast_cancer(return_X_y=True)
        x = np.column_stack([(x - x.mean(axis=0)) / x.std(axis=0), np.ones(len(x))])
        g = self.graph = gs.Graph()
        points, labels, penalised = g.input(), g.input(), g.input()
        self.weights = g.parameter()
        entropy = (points @ self.weights).bce_with_logits(labels)
        norm = (penalised * self.weights.square()).sum()
        self.loss = entropy + PENALTY / 2 * norm
        self.size = x.shape[1]
        self.data = {points: x, labels: y.astype(float), penalised: (np.arange(self.size) < self.size - 1) * 1.0}

    def feeds(self, w: Array) -> dict[gs.Node, Array]:
        """Return the data and the weights."""
        return {**self.data, self.weights: w}

    def value(self, w: Array) -> float:
        """Return f(w)."""
        return float(self.client.forward(self.graph, self.feeds(w), outputs=[self.loss]).value)

    def slope(self, w: Array) -> tuple[float, Array]:
        """Return f(w) and ∇f(w)."""
        answer = self.client.gradients(self.graph, self.feeds(w), of=self.loss)
        return float(answer.value), answer.gradients[self.weights]

    def curvature(self, w: Array) -> Callable[[Array], Array]:
        """Return the function v → H(w) v."""
        return lambda v: self.client.hvp(self.graph, self.feeds(w), vectors={self.weights: v}).hvp[self.weights]


def newton(f: Regression, tolerance: float) -> Iterator[tuple[Array, float]]:
    """Return the points that Newton's method visits, and the norm of the gradient at each."""
    w = np.zeros(f.size)
    while True:
        value, gradient = f.slope(w)
        length = float(np.linalg.norm(gradient))
        yield w, length
        if length < tolerance:
            return
        step = conjugate_gradients(f.curvature(w), -gradient, min(0.5, length**0.5) * length)
        w = w + backtracked(f, w, value, float(gradient @ step), step)


def conjugate_gradients(times: Callable[[Array], Array], b: Array, tolerance: float) -> Array:
    """Return x with ‖H x − b‖ < tolerance, for positive definite H, given as v → H v. Hestenes and Stiefel (1952)."""
    x, r = np.zeros_like(b), b
    p = r
    while np.linalg.norm(r) >= tolerance:
        product = times(p)
        rate = (r @ r) / (p @ product)
        x, before = x + rate * p, r
        r = r - rate * product
        p = r + (r @ r) / (before @ before) * p
    return x


def backtracked(f: Regression, w: Array, value: float, slope: float, step: Array) -> Array:
    """Return the step, halved until the loss falls by a ten-thousandth of what the slope predicts (Armijo)."""
    rate = 1.0
    while f.value(w + rate * step) > value + 1e-4 * rate * slope and rate > 1e-9:
        rate /= 2
    return rate * step


def descent(f: Regression, steps: int) -> Iterator[tuple[Array, float]]:
    """Return the same for gradient descent at the largest safe constant rate: 1/L, with L ≥ the curvature."""
    points = next(iter(f.data.values()))
    rate = 1 / (np.linalg.norm(points, 2) ** 2 / (4 * len(points)) + PENALTY)
    w = np.zeros(f.size)
    for _ in range(steps):
        _, gradient = f.slope(w)
        yield w, float(np.linalg.norm(gradient))
        w = w - rate * gradient


def work(client: gs.Client, steps: int) -> None:
    """Fit with both methods, and print the progress of each."""
    f = Regression(client)
    fitted = list(newton(f, 1e-9))
    plain = list(descent(f, steps))
    w = fitted[-1][0]
    for name, path in (("Newton-CG", fitted), ("gradient descent", plain)):
        print(f"{name}: {len(path) - 1} steps, length of the gradient {path[-1][1]:.1e}")
    points, labels, _ = f.data.values()
    print(f"loss: {f.value(w):.12f}")
    print(f"right: {np.mean((points @ w > 0) == labels):.4f} of the tumours")
    with picture("newton", title="logistic regression, 569 tumours", xlabel="step", ylabel="‖gradient‖") as axes:
        axes.semilogy([length for _, length in fitted], "o-", label="Newton-CG, by hvp")
        axes.semilogy([length for _, length in plain], label="gradient descent")


if __name__ == "__main__":
    run(work, __doc__, steps=60)
