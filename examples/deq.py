"""Find the result of a layer of infinite depth with `fixed_point`, and its implicit gradient.

x = tanh(x W + u V + b) (Bai, Kolter and Koltun, Deep equilibrium models, 2019). The gradient does not depend on the
iterations that found x: by the implicit function theorem it is that of one application at x, with the cotangent
(I − J)⁻ᵀ g. The server computes this cotangent by iteration, too. Here NumPy solves for it with dense Jacobians of
8 × 8.

    python examples/deq.py                starts its own server and stops it
    python examples/deq.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

ROWS, UNITS, INPUTS = 12, 8, 3
TOLERANCE, MAX_STEPS = 1e-13, 500


class Layer:
    """The equilibrium of each row, and its mean squared distance from the target."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.w, self.v, self.b = (g.parameter() for _ in range(3))
        self.inputs, self.targets = g.input(), g.input()
        fed, start = self.inputs @ self.v + self.b, g.constant(np.zeros((ROWS, UNITS)))
        layer = g.function(equation)
        loop = g.fixed_point(self.w, fed, start, body=layer, carries=1, tolerance=TOLERANCE, max_steps=MAX_STEPS)
        self.x, self.steps, self.finished = (loop.get_output(i) for i in range(3))
        self.loss = self.x.mse_loss(self.targets)


def equation(f: gs.Graph) -> gs.Node:
    """Return the right-hand side of the equation for x."""
    w, fed, x = (f.input() for _ in range(3))
    return (x @ w + fed).tanh()


def implicit(x: Array, weights: dict[str, Array], inputs: Array, targets: Array) -> dict[str, Array]:
    """Return the gradients by the implicit function theorem: for each row, u = (I − J)⁻ᵀ g and its VJP."""
    passed = np.empty_like(x)
    for i, row in enumerate(x):
        slope = 1 - row**2
        jacobian = slope[:, None] * weights["w"].T
        cotangent = np.linalg.solve(np.eye(UNITS) - jacobian.T, 2 * (row - targets[i]) / x.size)
        passed[i] = slope * cotangent
    return {"w": x.T @ passed, "v": inputs.T @ passed, "b": passed.sum(axis=0)}


def work(client: gs.Client) -> None:
    """Find the equilibrium and its gradients, and compare them with the dense solution."""
    rng = np.random.default_rng(0)
    layer = Layer()
    weights = {
        "w": rng.normal(0, 0.3 / np.sqrt(UNITS), (UNITS, UNITS)) + 0.5 * np.eye(UNITS),
        "v": rng.normal(size=(INPUTS, UNITS)),
        "b": rng.normal(size=UNITS),
    }
    leaves = {"w": layer.w, "v": layer.v, "b": layer.b}
    inputs, targets = rng.normal(size=(ROWS, INPUTS)), rng.uniform(-1, 1, (ROWS, UNITS))
    feeds = {layer.inputs: inputs, layer.targets: targets, **{leaves[name]: each for name, each in weights.items()}}
    answer = client.gradients(layer.graph, feeds, of=layer.loss, outputs=[layer.x, layer.steps, layer.finished])
    x = answer.values[layer.x]
    left = np.abs(np.tanh(x @ weights["w"] + inputs @ weights["v"] + weights["b"]) - x).max()
    print(f"iterations: {answer.values[layer.steps]}, finished: {answer.values[layer.finished]}, left: {left:.1e}")
    for name, right in implicit(x, weights, inputs, targets).items():
        found = answer.gradients[leaves[name]]
        print(f"by {name}: norm {np.linalg.norm(found):.10f}, largest difference {np.abs(found - right).max():.1e}")


if __name__ == "__main__":
    run(work, __doc__)
