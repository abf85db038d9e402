"""Differentiate principal components: the share of the data's variance that lies in a plane.

The sum of the two largest eigenvalues of a covariance is a function of the whole eigenspace, so its gradient holds even
if other eigenvalues coincide: it is 2 x v vᵀ / n for the plane v (Hellmann and Feynman). The nuclear norm of the same
data, the sum of its singular values, has the gradient u vh. Both are compared with NumPy's decompositions. Then
gradient ascent moves the data in small steps until the plane holds nearly all of their variance.

    python examples/pca.py                starts its own server and stops it
    python examples/pca.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

POINTS, AXES, KEPT = 40, 6, 2


class Components:
    """The share of the variance in the largest components, this variance, and the nuclear norm."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.data = g.parameter()
        apart = self.data - self.data.mean(axes=[0], keepdims=True)
        covariance = apart.transpose().matmul(apart) / POINTS
        values = covariance.eigh().get_output(0)
        self.held = values.slice(starts=[AXES - KEPT]).sum()
        self.part = self.held / values.sum()
        self.nuclear = self.data.svd().get_output(1).sum()


def plane(data: Array) -> Array:
    """Return the gradient of the variance in the plane, computed by NumPy."""
    apart = data - data.mean(axis=0)
    v = np.linalg.eigh(apart.T @ apart / POINTS)[1][:, AXES - KEPT :]
    return np.asarray(2 * apart @ v @ v.T / POINTS)


def work(client: gs.Client, steps: int) -> None:
    """Compare the gradients, then run gradient ascent."""
    model, rng = Components(), np.random.default_rng(0)
    data = rng.normal(size=(POINTS, AXES)) * np.linspace(2, 1, AXES)
    u, _, vh = np.linalg.svd(data, full_matrices=False)
    for name, of, right in (("variance", model.held, plane(data)), ("nuclear norm", model.nuclear, u @ vh)):
        found = client.gradients(model.graph, {model.data: data}, of=of).gradients[model.data]
        print(f"{name}: {np.abs(found - right).max():.1e} off at most")
    parts = []
    for _ in range(steps):
        answer = client.gradients(model.graph, {model.data: data}, of=model.part)
        parts.append(float(answer.value))
        data = data + 40 * answer.gradients[model.data]
    print(f"held by the plane: {parts[0]:.3f} at first, {parts[-1]:.3f} after {steps} steps")


if __name__ == "__main__":
    run(work, __doc__, steps=60)
