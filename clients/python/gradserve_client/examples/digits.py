"""A classifier of handwritten digits. Its parameters stay on the server; each step sends only a batch of images.

    python -m gradserve_client.examples.digits [URL]

The data, in digits.npz beside this file, are the 1,797 scans of 8 × 8 pixels of E. Alpaydin and C. Kaynak, Optical
Recognition of Handwritten Digits (UCI Machine Learning Repository, 1998, CC BY 4.0).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import gradserve_client as gs


def main(url: str = "http://127.0.0.1:8000") -> None:
    """Train on four fifths of the digits, and print the accuracy on the remaining fifth."""
    rng = np.random.default_rng(0)
    with np.load(Path(__file__).with_name("digits.npz")) as data:
        order = rng.permutation(len(data["labels"]))
        images, labels = data["images"][order] / 16, data["labels"][order]

    graph = gs.Graph()
    pixels, digit = graph.input("pixels"), graph.input("digit")
    shapes = {"w1": (64, 256), "b1": (256,), "w2": (256, 10), "b2": (10,)}
    w1, b1, w2, b2 = parameters = [graph.parameter(name) for name in shapes]
    logits = pixels.linear(w1, b1, activation="relu").linear(w2, b2)
    loss = logits.cross_entropy(digit)
    store = {p - 0.5 * loss.grad(p): gs.Store(f"digits.{p.name}", durable=False) for p in parameters}

    with gs.Client(url) as client:
        model = client.register(graph)
        handles = {name: client.put(f"digits.{name}", rng.normal(0, 0.15, shape)) for name, shape in shapes.items()}
        for _ in range(600):
            batch = rng.integers(360, len(labels), 128)
            model.forward({**handles, "pixels": images[batch], "digit": labels[batch]}, outputs=[loss], store=store)
        scores = model.forward({**handles, "pixels": images[:360]}, outputs=[logits]).value
        print(f"test accuracy: {np.mean(scores.argmax(axis=1) == labels[:360]):.4f}")
        for tensor in handles.values():
            client.delete(tensor)
        client.unregister(model)


if __name__ == "__main__":
    main(*sys.argv[1:])
