"""The energy of fermions from the Laplacian of a Slater determinant.

N fermions in a harmonic well have the wave function det φⱼ(xᵢ), where the φⱼ are the first N states of one of them: a
determinant of powers of the xᵢ, times exp(−Σ xᵢ² / 2). Wherever the particles are, −½ ∇²ψ / ψ + ½ Σ xᵢ² is the energy
of the ground state, N² / 2. With ∇²ψ / ψ = Σ ∂ᵢ² log|ψ| + (∂ᵢ log|ψ|)² that needs the gradient and the Hessian of the
logarithm of a determinant, which `slogdet` gives without an overflow; the same by `det` is compared with it.

    python examples/slater.py                starts a server of its own, and stops it
    python examples/slater.py --url URL      uses one that is running
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

PARTICLES = 5


class WaveFunction:
    """log|ψ| of the places of particles, by the logarithm of the determinant and by the determinant itself."""

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
    """Of particles at these places."""
    slope = client.gradients(model.graph, {model.x: x}, of=of).gradients[model.x]
    curvature = client.hessian(model.graph, {model.x: x}, of=of).hessian[model.x, model.x]
    return float(-0.5 * (np.trace(curvature) + slope @ slope) + 0.5 * x @ x)


def work(client: gs.Client, places: int) -> None:
    """At random places, the energy is the same everywhere."""
    model, rng = WaveFunction(), np.random.default_rng(0)
    right = PARTICLES**2 / 2
    for name, of in (("slogdet", model.by_logarithm), ("det", model.by_determinant)):
        found = [energy(client, model, of, rng.normal(0, 1.5, PARTICLES)) for _ in range(places)]
        print(f"{name}: {np.mean(found):.9f}, of {right}, {np.abs(np.array(found) - right).max():.1e} off at most")


if __name__ == "__main__":
    run(work, __doc__, places=8)
