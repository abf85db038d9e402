"""Train an LSTM written as one `scan`, and compare it with the same network unrolled step by step.

Hochreiter and Schmidhuber, Long short-term memory (1997), with a forget gate (Gers and others, 2000). It reads 200
numbers of each of 16 sine waves and predicts the next number each time. As a scan, the graph has one step, whatever the
length. Unrolled, it has one step per number, and the gradient's plan covers all of them.

    python examples/lstm.py                starts its own server and stops it
    python examples/lstm.py --url URL      uses a running server
"""

from __future__ import annotations

import time

import numpy as np
from adam import Adam
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

UNITS, BATCH = 16, 16


class Network:
    """The mean squared error of all predictions, as a graph of the weights and the waves [steps, batch, 1]."""

    def __init__(self, length: int, *, unrolled: bool = False) -> None:
        g = self.graph = gs.Graph()
        self.leaves = [g.parameter() for _ in range(5)]
        w, u, b, out, bias = self.leaves
        self.waves, nothing = g.input(), g.constant(np.zeros((BATCH, UNITS)))
        seen, next_ones = (self.waves.slice(starts=[i], stops=[i + length]) for i in (0, 1))
        along = outputs_unrolled if unrolled else outputs_by_scan
        hidden = along(g, [w, u, b], nothing, seen, length)
        self.loss = hidden.linear(out, bias).mse_loss(next_ones)


def cell(w: gs.Node, u: gs.Node, b: gs.Node, hidden: gs.Node, state: gs.Node, x: gs.Node) -> tuple[gs.Node, gs.Node]:
    """Make one step: return the new hidden state, which is the output, and the new cell state."""
    parts = (x @ w + hidden @ u + b).chunk(4, axis=1)
    take, forget, say = (parts.get_output(i).sigmoid() for i in (0, 1, 2))
    state = forget * state + take * parts.get_output(3).tanh()
    return say * state.tanh(), state


def outputs_by_scan(g: gs.Graph, weights: list[gs.Node], nothing: gs.Node, x: gs.Node, _: int) -> gs.Node:
    """Return the output of each step, [steps, batch, units]."""

    @g.function
    def step(f: gs.Graph) -> list[gs.Node]:
        w, u, b, hidden, state, x = (f.input() for _ in range(6))
        hidden, state = cell(w, u, b, hidden, state, x)
        return [hidden, state, hidden]

    return g.scan(*weights, nothing, nothing, x, body=step, carries=2, sequences=1).get_output(2)


def outputs_unrolled(g: gs.Graph, weights: list[gs.Node], nothing: gs.Node, x: gs.Node, length: int) -> gs.Node:
    """Return the same, unrolled step by step."""
    w, u, b = weights
    hidden, state, said = nothing, nothing, []
    for t in range(length):
        hidden, state = cell(w, u, b, hidden, state, x.select(t))
        said.append(hidden)
    return g.stack(*said)


def first_weights(rng: np.random.Generator) -> list[Array]:
    """Return initial weights: small numbers, with forget gates that remember."""
    forget = np.repeat([0.0, 1.0, 0.0, 0.0], UNITS)
    shapes = [(1, 4 * UNITS), (UNITS, 4 * UNITS), (UNITS, 1)]
    w, u, out = (rng.normal(0, 1 / np.sqrt(UNITS), shape) for shape in shapes)
    return [w, u, forget, out, np.zeros(1)]


def waves(length: int, rng: np.random.Generator) -> Array:
    """Return sine waves of different periods, [steps + 1, batch, 1]."""
    period, phase = rng.uniform(10, 40, BATCH), rng.uniform(0, 2 * np.pi, BATCH)
    return np.sin(2 * np.pi * np.arange(length + 1)[:, None] / period + phase)[:, :, None]


def train(client: gs.Client, length: int, steps: int) -> list[float]:
    """Return the losses of some steps of Adam."""
    rng = np.random.default_rng(0)
    network = Network(length)
    adam = Adam(dict(zip(network.leaves, first_weights(rng), strict=True)), rate=1e-2)
    losses = []
    for _ in range(steps):
        feeds = {**adam.parameters, network.waves: waves(length, rng)}
        answer = client.gradients(network.graph, feeds, of=network.loss)
        adam.step(answer)
        losses.append(float(answer.value))
    return losses


def work(client: gs.Client, length: int, steps: int) -> None:
    """Train, and compare the gradients of both forms."""
    losses = train(client, length, steps)
    print(f"loss: {losses[0]:.4f} at first, {losses[-1]:.4f} after {steps} steps")
    found = []
    for name, unrolled in (("scan", False), ("unrolled", True)):
        rng = np.random.default_rng(1)
        network = Network(length, unrolled=unrolled)
        feeds = {**dict(zip(network.leaves, first_weights(rng), strict=True)), network.waves: waves(length, rng)}
        start = time.perf_counter()
        answer = client.gradients(network.graph, feeds, of=network.loss)
        found.append([answer.gradients[leaf] for leaf in network.leaves])
        taken = 1000 * (time.perf_counter() - start)
        print(f"{name}: {len(network.graph)} nodes, {taken:.0f} ms for the first gradient, its planning among them")
    scale = max(float(np.abs(one).max()) for one in found[1])
    largest = max(float(np.abs(one - other).max()) for one, other in zip(*found, strict=True))
    print(f"largest difference of the gradients: {largest / scale:.1e} of the largest one")


if __name__ == "__main__":
    run(work, __doc__, length=200, steps=100)
