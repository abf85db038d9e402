"""Differentiate a quantum circuit, and find the ground state of a chain of spins with it.

Each layer rotates every spin about y and z, and couples neighbours (controlled Z). The energy is ⟨ψ|H|ψ⟩ of the Ising
chain in a transverse field, H = −Σ Zᵢ Zᵢ₊₁ − Σ Xᵢ. Its derivative with respect to an angle is also exactly half the
difference of the energies with this angle shifted by ±π/2 (Schuld et al., Evaluating analytic gradients on quantum
hardware, Phys. Rev. A 99, 2019). NumPy computes this parameter-shift rule here. The result of the descent is compared
with the smallest eigenvalue of H.

    python examples/quantum.py                starts its own server and stops it
    python examples/quantum.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from adam import Adam
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

SPINS, LAYERS = 4, 3
STATES = 2**SPINS


class Circuit:
    """The energy as a graph of the angles [layers, 2, spins]."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.angles = g.parameter()
        signs, hamiltonian = g.constant(entangler()), g.constant(ising())
        state = g.constant(np.eye(STATES)[0])
        state = state.make_complex(state * 0)
        for layer in range(LAYERS):
            for spin in range(SPINS):
                half = self.angles.select(layer).select(0).select(spin) * 0.5
                state = turned(g, state, spin, half.cos(), half.sin())
                half = self.angles.select(layer).select(1).select(spin) * 0.5
                state = state * (half * g.constant(-z_of(spin))).cos().make_complex(
                    (half * g.constant(-z_of(spin))).sin()
                )
            state = state * signs
        self.energy = (state.conj() * hamiltonian.matmul(state)).real().sum()


def turned(g: gs.Graph, state: gs.Node, spin: int, cos: gs.Node, sin: gs.Node) -> gs.Node:
    """Return the state with a spin rotated about y."""
    apart = state.reshape(shape=[2**spin, 2, -1])
    up, down = apart.select(0, axis=1), apart.select(1, axis=1)
    return g.stack(cos * up - sin * down, sin * up + cos * down, axis=1).reshape(shape=[STATES])


def z_of(spin: int) -> Array:
    """Return +1 for each state in which this spin is up, and −1 if it is down."""
    return np.where(np.arange(STATES) >> (SPINS - 1 - spin) & 1, -1.0, 1.0)


def entangler() -> Array:
    """Return −1 for each pair of neighbours that are both down."""
    pairs = [np.where((z_of(i) < 0) & (z_of(i + 1) < 0), -1.0, 1.0) for i in range(SPINS - 1)]
    return np.asarray(np.prod(pairs, axis=0))


def ising() -> Array:
    """Return H."""
    flips = sum(np.eye(STATES)[np.arange(STATES) ^ (1 << i)] for i in range(SPINS))
    return np.asarray(-np.diag(sum(z_of(i) * z_of(i + 1) for i in range(SPINS - 1))) - flips)


def energy(angles: Array) -> float:
    """Return the same energy, computed by NumPy gate by gate as matrices."""
    state, identity = np.eye(STATES)[0].astype(complex), np.eye(2)
    for about_y, about_z in angles:
        for spin in range(SPINS):
            c, s, phase = np.cos(about_y[spin] / 2), np.sin(about_y[spin] / 2), np.exp(-0.5j * about_z[spin])
            gate = np.diag([phase, phase.conjugate()]) @ np.array([[c, -s], [s, c]])
            whole = np.eye(1)
            for other in range(SPINS):
                whole = np.kron(whole, gate if other == spin else identity)
            state = whole @ state
        state = entangler() * state
    return float(np.vdot(state, ising() @ state).real)


def shifted(angles: Array) -> Array:
    """Return the gradient by the parameter-shift rule."""
    found = np.empty_like(angles)
    for place in np.ndindex(angles.shape):
        turn = np.zeros_like(angles)
        turn[place] = np.pi / 2
        found[place] = (energy(angles + turn) - energy(angles - turn)) / 2
    return found


def work(client: gs.Client, steps: int) -> None:
    """Compare the gradients, then run gradient descent."""
    circuit, rng = Circuit(), np.random.default_rng(1)
    descent = Adam({circuit.angles: rng.normal(0, 0.5, (LAYERS, 2, SPINS))}, rate=0.1)
    for step in range(steps):
        answer = client.gradients(circuit.graph, dict(descent.parameters), of=circuit.energy)
        if step == 0:
            error = np.abs(answer.gradients[circuit.angles] - shifted(descent.parameters[circuit.angles])).max()
            print(f"gradient: {error:.1e} off at most, by the parameter-shift rule")
        descent.step(answer)
    print(f"energy: {float(answer.value):.6f}, smallest eigenvalue {np.linalg.eigvalsh(ising())[0]:.6f}")


if __name__ == "__main__":
    run(work, __doc__, steps=200)
