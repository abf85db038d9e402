"""Train a classifier of handwritten digits over HTTP.

The data are the 1,797 scanned digits of the UCI repository, 8 × 8 pixels each, as scikit-learn ships them. By default
this program holds the parameters and updates them, and the server stores nothing: the program sends graph, batch and
parameters, and receives gradients. With --store the server stores graph, parameters and the optimiser's averages, and
updates them: the program sends a batch and receives the loss. With --reduce the server stores the data, too: a step
names rows of them. The loss of one digit is averaged over these rows, and the gradient stays on the server.

    python examples/digits.py                 starts its own server and stops it
    python examples/digits.py --url URL       uses a running server
    python examples/digits.py --picture FILE  saves the loss curve, in the format of the file name's suffix
    python examples/digits.py --store         stores the parameters on the server, on disk before each response
    python examples/digits.py --store behind  lets each response precede the disk by up to a second
    python examples/digits.py --reduce        stores the data on the server, too, and averages over rows of them
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from adam import Adam
from client import Client as PlainClient
from resident_adam import ResidentAdam
from server import running_server
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import gradserve_client as gs
from gradserve_client.tensors import Array

PICTURE = Path(__file__).parents[1] / "build" / "digits-loss.png"
HIDDEN, BATCH, RATE = 64, 128, 3e-3
#: learning rate of gradient descent
DESCENT = 0.5

Data = tuple[Array, Array]  # images [n, 64] between 0 and 1, labels [n]
Batch = tuple[Array | gs.Rows, Array | gs.Rows]


class Classifier:
    """Two layers, 64 → 64 → 10, as a graph, with its parameters."""

    def __init__(self, rng: np.random.Generator) -> None:
        g = self.graph = gs.Graph()
        self.images, self.labels = g.input(), g.input()
        w1, b1, w2, b2 = (g.parameter() for _ in range(4))
        self.logits = self.images.linear(w1, b1, activation="relu").linear(w2, b2)
        self.loss = self.logits.cross_entropy(self.labels)

        self.parameters: dict[gs.Node, Array] = {
            w1: rng.normal(0, np.sqrt(2 / 64), (64, HIDDEN)).astype(np.float32),
            b1: np.zeros(HIDDEN, np.float32),
            w2: rng.normal(0, np.sqrt(2 / HIDDEN), (HIDDEN, 10)).astype(np.float32),
            b2: np.zeros(10, np.float32),
        }
        self.adam = Adam(self.parameters, rate=RATE)

    def batches(self, data: Data, epochs: int, rng: np.random.Generator) -> Iterator[Batch]:
        """Yield the batches of every epoch, in a new random order each time. The last, smaller one is left out."""
        images, labels = data
        for _ in range(epochs):
            order = rng.permutation(len(images))
            for i in range(0, len(order) - BATCH + 1, BATCH):
                yield images[order[i : i + BATCH]], labels[order[i : i + BATCH]]

    def train_on(self, client: gs.Client, images: Any, labels: Any) -> float:
        """Take one step on one batch. Return the loss before it."""
        feeds = {self.images: images, self.labels: labels, **self.parameters}
        answer = client.gradients(self.graph, feeds, of=self.loss)
        self.adam.step(answer)
        return float(answer.value)

    def accuracy(self, client: gs.Client, images: Array, labels: Array) -> float:
        """Return the share of images whose largest logit is that of their label."""
        feeds = {self.images: images, **self.parameters}
        logits = client.forward(self.graph, feeds, outputs=[self.logits]).value
        return float(np.mean(logits.argmax(axis=1) == labels))

    def finish(self, client: gs.Client) -> None:
        """Do nothing: the server stores nothing."""


class StoredClassifier(Classifier):
    """A classifier whose parameters are stored on the server."""

    def __init__(self, rng: np.random.Generator, client: gs.Client, *, durable: bool) -> None:
        super().__init__(rng)
        self.durable = durable
        self.names = {leaf: f"digits.{i}" for i, leaf in enumerate(self.parameters)}
        self.resident = ResidentAdam(client, self.loss, self.parameters, self.names, RATE)

    def train_on(self, client: gs.Client, images: Any, labels: Any) -> float:
        """Take one step on one batch, in one call. Return the loss before it."""
        return self.resident.step({self.images: images, self.labels: labels}, durable=self.durable)

    def finish(self, client: gs.Client) -> None:
        """Fetch the parameters, and delete everything from the server."""
        self.parameters = {leaf: client.get(name).array for leaf, name in self.names.items()}
        self.resident.end()


class SummedClassifier(Classifier):
    """A classifier whose parameters and data are stored on the server: a graph of one digit, and one of a step."""

    def __init__(self, rng: np.random.Generator, client: gs.Client) -> None:
        super().__init__(rng)
        self.client = client
        one = gs.Graph()
        self.image, self.label = one.input(), one.input()
        self.leaves = [one.parameter() for _ in self.parameters]
        w1, b1, w2, b2 = self.leaves
        logits = self.image.reshape(shape=[1, 64]).linear(w1, b1, activation="relu").linear(w2, b2)
        self.digit_loss = logits.cross_entropy(self.label.reshape(shape=[1]))
        self.kept = [client.put(f"digits.{i}", value) for i, value in enumerate(self.parameters.values())]
        self.data: list[gs.Resident] = []
        step = gs.Graph()
        self.before, self.gradients = ([step.input() for _ in self.kept] for _ in range(2))
        self.after = [w - DESCENT * g for w, g in zip(self.before, self.gradients, strict=True)]

    def batches(self, data: Data, epochs: int, rng: np.random.Generator) -> Iterator[Batch]:
        """Store the data, and yield every epoch's batches as consecutive rows of it, in a new order each time."""
        self.data = [self.client.put(name, array) for name, array in zip(("images", "labels"), data, strict=True)]
        images, labels = self.data
        for _ in range(epochs):
            for start in BATCH * rng.permutation(len(data[0]) // BATCH):
                rows = int(start), int(start) + BATCH
                yield images.rows(*rows), labels.rows(*rows)

    def train_on(self, client: gs.Client, images: Any, labels: Any) -> float:
        """Compute the mean gradient over the rows, which stays on the server, and take a step."""
        stores = [gs.Store(f"digits.{i}.gradient", durable=False, gradient=True) for i in range(len(self.kept))]
        feeds = {self.image: images, self.label: labels, **dict(zip(self.leaves, self.kept, strict=True))}
        answer = client.batch(
            self.image.graph,
            feeds,
            mapped=[self.image, self.label],
            of=self.digit_loss,
            reduce="mean",
            store=dict(zip(self.leaves, stores, strict=True)),
        )
        before = dict(zip(self.before, self.kept, strict=True))
        gradients = {g: answer.stored[leaf] for g, leaf in zip(self.gradients, self.leaves, strict=True)}
        kept = [gs.Store(tensor.name, durable=False) for tensor in self.kept]
        client.forward(
            self.after[0].graph,
            before | gradients,
            outputs=[self.after[1]],
            store=dict(zip(self.after, kept, strict=True)),
        )
        return float(answer.value)

    def finish(self, client: gs.Client) -> None:
        """Fetch the parameters, and delete everything from the server."""
        self.parameters = {leaf: client.get(t).array for leaf, t in zip(self.parameters, self.kept, strict=True)}
        for tensor in (*self.kept, *self.data):
            client.delete(tensor)
        for tensor in self.kept:
            client.delete(f"{tensor.name}.gradient")


def digits() -> tuple[Data, Data]:
    """Return four fifths of the digits for training and one fifth for testing, with equal shares of each digit."""
    images, labels = load_digits(return_X_y=True)
    images, labels = (images / 16).astype(np.float32), labels.astype(np.int64)
    x, x_test, y, y_test = train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)
    return (x, y), (x_test, y_test)


def show_one_call(url: str) -> None:
    """Show the smallest useful request and response: the gradient of sum(w²) at w = (1, 2, 3), without a library."""
    request = {
        "graph": {
            "nodes": [
                {"op": "parameter", "name": "w"},
                {"op": "square", "operands": [0]},
                {"op": "sum", "operands": [1]},
            ]
        },
        "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [3], "data": [1, 2, 3]}}],
    }
    with PlainClient(url) as client:
        answer = client.call("/v1/gradients", request)
    print("POST /v1/gradients", json.dumps(request), "200 OK", json.dumps(answer), sep="\n", end="\n\n")


def classifier_of(rng: np.random.Generator, client: gs.Client, store: str | None, *, reduce: bool) -> Classifier:
    """Return the classifier for these options."""
    if reduce:
        return SummedClassifier(rng, client)
    return StoredClassifier(rng, client, durable=store == "durable") if store else Classifier(rng)


def train(
    client: gs.Client, epochs: int, picture: Path = PICTURE, store: str | None = None, *, reduce: bool = False
) -> list[float]:
    """Train, print the accuracy on the test images, and return the loss of every step."""
    rng = np.random.default_rng(0)
    training, test = digits()
    classifier = classifier_of(rng, client, store, reduce=reduce)
    steps = list(classifier.batches(training, epochs, rng))
    losses = []
    every = 0.1 if sys.stderr.isatty() else 5.0  # a log shows every state of the bar
    with tqdm(steps, desc="training", unit="step", mininterval=every) as progress:
        for images, labels in progress:
            losses.append(classifier.train_on(client, images, labels))
            progress.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    rate = len(losses) / progress.format_dict["elapsed"]
    print(f"loss: {losses[0]:.4f} at first, {losses[-1]:.4f} after {len(losses)} steps, {rate:.0f} steps/s")
    classifier.finish(client)
    save_picture(losses, picture)
    print(f"test accuracy: {classifier.accuracy(client, *test):.4f}")
    return losses


def save_picture(losses: list[float], picture: Path) -> None:
    """Save the loss curve, on a logarithmic scale."""
    from matplotlib import rc_context  # noqa: PLC0415 - takes a second, needed only now
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(losses, linewidth=1)
    axes.set(title="digits, 64-64-10, Adam", xlabel="step", ylabel="cross-entropy of the batch")
    axes.grid(alpha=0.3)
    picture.parent.mkdir(exist_ok=True)
    # SVG: keep text as text, and omit date and program, so that the same picture gives the same file.
    plain = dict.fromkeys(("Date", "Creator", "Format", "Type")) if picture.suffix == ".svg" else None
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "digits"}):
        figure.savefig(picture, dpi=150, metadata=plain)
    print(f"loss curve: {picture}")


def main() -> None:
    """Read the options, find or start a server, and train."""
    parser = argparse.ArgumentParser(description="Train a classifier of digits through gradserve.")
    parser.add_argument("--url", help="the address of a running server; default: start one")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--picture", type=Path, default=PICTURE, help="a file for the loss curve")
    parser.add_argument(
        "--store",
        nargs="?",
        const="durable",
        choices=["durable", "behind"],
        help="store the parameters on the server; each step is on disk before its response, or behind it",
    )
    parser.add_argument(
        "--reduce", action="store_true", help="store the data on the server, too, and average over rows of them"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is stopped in this case, too
    with nullcontext(options.url) if options.url else running_server() as url, gs.Client(url) as client:
        print(f"server: {url}\n", flush=True)
        show_one_call(url)
        train(client, options.epochs, options.picture, options.store, reduce=options.reduce)


if __name__ == "__main__":
    main()
