"""Compute the energy of fermions from the Laplacian of a Slater determinant.

N fermions in a harmonic well have the wave function det φⱼ(xᵢ), in which φⱼ are the first N one-particle states: a
determinant of powers of xᵢ, times exp(−Σ xᵢ² / 2). At any positions of the particles, −½ ∇²ψ / ψ + ½ Σ xᵢ² is the
energy of the ground state, N² / 2. Because ∇²ψ / ψ = Σ ∂ᵢ² log|ψ| + (∂ᵢ log|ψ|)², this needs the gradient and the
Hessian of the logarithm of a determinant, which `slogdet` computes without overflow. The result is compared with `det`.

    python examples/slater.py                starts its own server and stops it
    python examples/slater.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

PARTICLES = 5


class WaveFunction:
    """log|ψ| of the particles' positions, from the logarithm of the determinant and from the determinant itself."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.x = g.parameter()
        columns = [g.constant(np.ones(PARTICLES))]
        for _ in range(PARTICLES - 1):
            columns.append(columns[-1] * self.x)
        states, envelope = g.stack(*columns, axis=1), 0.5 * self.x.square().sum()
        self.by_logarithm = states.slogdet().get_output(1) - envelope
        self.by_determinant = states.det().abs().log() - envelope


def energy(client: gs.Client, model: WaveFunction, of: gs.Node, x: Array) -> float:
    """Return the energy of particles at these positions."""
    slope = client.gradients(model.graph, {model.x: x}, of=of).gradients[model.x]
    curvature = client.hessian(model.graph, {model.x: x}, of=of).hessian[model.x, model.x]
    return float(-0.5 * (np.trace(curvature) + slope @ slope) + 0.5 * x @ x)


def work(client: gs.Client, places: int) -> None:
    """Show that the energy is the same at random positions."""
    model, rng = WaveFunction(), np.random.default_rng(0)
    right = PARTICLES**2 / 2
    for name, of in (("slogdet", model.by_logarithm), ("det", model.by_determinant)):
        found = [energy(client, model, of, rng.normal(0, 1.5, PARTICLES)) for _ in range(places)]
        print(f"{name}: {np.mean(found):.9f}, of {right}, {np.abs(np.array(found) - right).max():.1e} off at most")


if __name__ == "__main__":
    run(work, __doc__, places=8)
