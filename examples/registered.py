"""Fit a curve with a registered graph: the data are sent once, and each step sends only the parameters.

The periods of the planets depend on their distance from the sun: log T = a + b log r, fitted by least squares. Newton's
method with the exact Hessian solves a quadratic loss in one step. Kepler's third law says b = 3/2.

    python examples/registered.py                starts its own server and stops it
    python examples/registered.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs

#: of the planets, Mercury first: distance in astronomical units, period in years
DISTANCE = np.array([0.387, 0.723, 1.0, 1.524, 5.203, 9.537, 19.191, 30.069])
PERIOD = np.array([0.2408, 0.6152, 1.0, 1.8808, 11.862, 29.457, 84.011, 164.79])


def residuals(repeats: int) -> tuple[gs.Graph, gs.Node]:
    """Return the mean of (a + b log r − log T)² over copies of the planets, and its parameter [a, b]."""
    graph = gs.Graph()
    ab = graph.parameter()
    r, t = np.log(np.tile(DISTANCE, repeats)), np.log(np.tile(PERIOD, repeats))
    (np.column_stack([np.ones_like(r), r]) @ ab - t).square().mean()
    return graph, ab


def work(client: gs.Client, steps: int, repeats: int) -> None:
    """Register the graph, and take steps of Newton's method on it."""
    graph, ab = residuals(repeats)
    model = client.register(graph, description="Kepler's third law")
    found = np.zeros(2)
    for _ in range(steps):
        answer = model.hessian({ab: found})
        found = found - np.linalg.solve(answer.hessian[ab, ab], answer.gradients[ab])
    print(f"T = {np.exp(found[0]):.4f} r^{found[1]:.4f}")
    print(f"bytes of the graph: {model.registration.length}, of the parameters of each step: {found.nbytes}")
    client.unregister(model)


if __name__ == "__main__":
    run(work, __doc__, steps=2, repeats=100)
