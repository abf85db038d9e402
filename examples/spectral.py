"""Solve Poisson's equation with Fourier transforms, and learn an operator between functions in the spectrum.

On a square with periodic boundaries, −Δu = f is a division by |k|² in the spectrum. For J = ½ Σ u², the gradient with
respect to f is the solution operator applied twice, (−Δ)⁻² f: for f made of waves it is known, wave by wave. Then a
layer of a Fourier neural operator (Li et al., arXiv:2010.08895), y = F⁻¹(w · F x) with complex weights w, is fitted to
the diffusion of heat in rods of random temperatures within a time t. The exact weights are exp(−k² t).

    python examples/spectral.py                starts its own server and stops it
    python examples/spectral.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

POINTS, RODS, TIME = 32, 16, 0.05


class Poisson:
    """u with −Δu = f on the square [0, 2π)², with mean 0, as a graph of f; and J = ½ Σ u²."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.f, factors = g.parameter(), g.constant(inverse_laplacian())
        self.u = (self.f.rfft(axes=[0, 1]) * factors).irfft(axes=[0, 1], sizes=[POINTS, POINTS])
        self.loss = 0.5 * self.u.square().sum()


class Operator:
    """The layer, with the squares of its errors as a loss."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.x, self.y = g.input(), g.input()
        self.real, self.imaginary = g.parameter(), g.parameter()
        weights = self.real.make_complex(self.imaginary)
        found = (self.x.rfft(norm="ortho") * weights).irfft(norm="ortho")
        self.loss = (found - self.y).square().sum()


def waves() -> tuple[Array, Array]:
    """Return a right-hand side of three waves, and |k|² of each, [3, points, points]."""
    x = 2 * np.pi * np.arange(POINTS) / POINTS
    x, y = np.meshgrid(x, x, indexing="ij")
    numbers = np.array([1 + 4, 9 + 0, 4 + 25])
    return np.array([np.sin(x) * np.cos(2 * y), 2 * np.cos(3 * x), 0.5 * np.sin(2 * x) * np.sin(5 * y)]), numbers


def inverse_laplacian() -> Array:
    """Return 1 / |k|² on the half spectrum, and 0 for the mean."""
    rows, columns = np.fft.fftfreq(POINTS, 1 / POINTS), np.arange(POINTS // 2 + 1)
    squares = rows[:, None] ** 2 + columns**2
    found: Array = np.divide(1, squares, out=np.zeros_like(squares), where=squares > 0)
    return found


def solve(client: gs.Client) -> None:
    """Return solution and gradient, next to the exact ones."""
    model, (parts, numbers) = Poisson(), waves()
    answer = client.gradients(model.graph, {model.f: parts.sum(axis=0)}, of=model.loss, outputs=[model.u])
    for name, found, power in (("solution", answer.values[model.u], 1), ("gradient", answer.gradients[model.f], 2)):
        right = np.tensordot(1.0 / numbers**power, parts, 1)
        print(f"{name}: {np.abs(found - right).max():.1e} off at most, of {np.abs(right).max():.3f}")


def learn(client: gs.Client, steps: int) -> None:
    """Run gradient descent, and compare the weights with the exact ones."""
    model, rng = Operator(), np.random.default_rng(0)
    decay = np.exp(-TIME * np.arange(POINTS // 2 + 1) ** 2)
    rods = rng.normal(size=(RODS, POINTS))
    later = np.fft.irfft(np.fft.rfft(rods) * decay)
    weights = {model.real: np.zeros(decay.size), model.imaginary: np.zeros(decay.size)}
    for _ in range(steps):
        answer = client.gradients(model.graph, {model.x: rods, model.y: later, **weights}, of=model.loss)
        weights = {leaf: value - answer.gradients[leaf] / (4 * RODS) for leaf, value in weights.items()}
    error = np.abs(weights[model.real] + 1j * weights[model.imaginary] - decay).max()
    print(f"operator: {error:.1e} off at most, after {steps} steps")


def work(client: gs.Client, steps: int) -> None:
    """Run both parts."""
    solve(client)
    learn(client, steps)


if __name__ == "__main__":
    run(work, __doc__, steps=60)
