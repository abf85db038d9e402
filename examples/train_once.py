"""Train the digits of examples/digits.py in one request: 440 steps of Adam as a `scan`, with `store` for the weights.

The request contains all images and labels once, and the order in which the steps use them. Each step of the scan takes
its batch, computes the gradients of the loss with `grad` nodes, and makes a step of Adam (Kingma and Ba, 2015,
algorithm 1). For comparison, a client makes 440 requests and updates the weights itself. Both must reach the same
weights. Both compute in float64, so that rounding errors cannot hide a mistake.

    python examples/train_once.py                starts its own server and stops it
    python examples/train_once.py --url URL      uses a running server
"""

from __future__ import annotations

import time

import numpy as np
from digits import BATCH, RATE, Classifier, Data, digits
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

B1, B2 = 0.9, 0.999


class Training:
    """A step for each row of `order`, as one graph that computes the final weights."""

    def __init__(self, first: list[Array]) -> None:
        g = self.graph = gs.Graph()
        self.images, self.labels, self.order = (g.input() for _ in range(3))
        self.leaves = [g.input() for _ in first]
        nothing = [g.constant(np.zeros_like(each)) for each in first]
        start = [*self.leaves, *nothing, *nothing, g.constant(0.0)]
        loop = g.scan(
            self.images, self.labels, *start, self.order, body=g.function(step), carries=len(start), sequences=1
        )
        self.weights = [loop.get_output(i) for i in range(len(first))]
        self.losses = loop.get_output(len(start))


def classifier() -> Classifier:
    """Return the network of examples/digits.py before the first step."""
    made = Classifier(np.random.default_rng(0))
    for leaf, weights in made.parameters.items():
        made.parameters[leaf] = weights.astype(np.float64)
    return made


def step(f: gs.Graph) -> list[gs.Node]:
    """Take one step on one batch. Return weights, means, squares and count after it, and the loss before it."""
    images, labels = f.input(), f.input()
    weights, means, squares = ([f.input() for _ in range(4)] for _ in range(3))
    count, batch = f.input() + 1, f.input()
    w1, b1, w2, b2 = weights
    logits = images.embedding(batch).linear(w1, b1, activation="relu").linear(w2, b2)
    loss = logits.cross_entropy(labels.gather(batch, axis=0))
    slopes = [loss.grad(weight) for weight in weights]
    means = [average(mean, slope, B1) for mean, slope in zip(means, slopes, strict=True)]
    squares = [average(square, slope.square(), B2) for square, slope in zip(squares, slopes, strict=True)]
    moved = [
        weight - RATE * unbiased(mean, B1, count) / (unbiased(square, B2, count).sqrt() + 1e-8)
        for weight, mean, square in zip(weights, means, squares, strict=True)
    ]
    return [*moved, *means, *squares, count, loss]


def average(before: gs.Node, new: gs.Node, decay: float) -> gs.Node:
    """Return the updated running average."""
    return decay * before + (1 - decay) * new


def unbiased(average: gs.Node, decay: float, count: gs.Node) -> gs.Node:
    """Return an average without its bias towards 0."""
    return average / (1 - (float(np.log(decay)) * count).exp())


def at_once(client: gs.Client, data: Data, order: Array) -> tuple[list[Array], Array]:
    """Return weights and losses of one request. The server stores the weights, which are then fetched and deleted."""
    first = list(classifier().parameters.values())
    training = Training(first)
    names = [f"train_once.{i}" for i in range(len(first))]
    feeds = dict(zip(training.leaves, first, strict=True))
    feeds |= {training.images: data[0], training.labels: data[1], training.order: order}
    store = dict(zip(training.weights, names, strict=True))
    losses = client.forward(training.graph, feeds, outputs=[training.losses], store=store).value
    weights = [client.get(name).array for name in names]
    for name in names:
        client.delete(name)
    return weights, losses


def step_by_step(client: gs.Client, data: Data, order: Array) -> tuple[list[Array], Array]:
    """Return the same from one request per step."""
    stepped = classifier()
    losses = [stepped.train_on(client, data[0][batch], data[1][batch]) for batch in order]
    return list(stepped.parameters.values()), np.array(losses)


def orders(count: int, epochs: int) -> Array:
    """Return the images of each step, [steps, BATCH]: all in a new order in every epoch, except the remainder."""
    rng = np.random.default_rng(1)
    whole = count // BATCH * BATCH
    return np.concatenate([rng.permutation(count)[:whole].reshape(-1, BATCH) for _ in range(epochs)])


def work(client: gs.Client, epochs: int) -> None:
    """Train both ways, and compare."""
    training, test = ((images.astype(np.float64), labels) for images, labels in digits())
    order = orders(len(training[0]), epochs)
    found = []
    for name, way in (("at once", at_once), ("step by step", step_by_step)):
        start = time.perf_counter()
        weights, losses = way(client, training, order)
        taken = time.perf_counter() - start
        print(f"{name}: {len(order)} steps in {taken:.2f} s, loss {losses[0]:.4f} to {losses[-1]:.4f}")
        found.append(weights)
    trained = classifier()
    trained.parameters = dict(zip(trained.parameters, found[0], strict=True))
    print(f"test accuracy: {trained.accuracy(client, *test):.4f}")
    largest = max(float(np.abs(one - other).max()) for one, other in zip(*found, strict=True))
    print(
        f"largest weight: {max(float(np.abs(each).max()) for each in found[0]):.4f}, largest difference {largest:.1e}"
    )


if __name__ == "__main__":
    run(work, __doc__, epochs=40)
