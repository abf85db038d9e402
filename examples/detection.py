"""Compute the loss of an object detector in which a mask selects the boxes that count.

From a grid of boxes, those count that overlap an object by more than a third. `compress` selects them, up to a maximum
number, and counts them. Positions beyond the count are empty and have no gradient. The loss is the mean of 1 − overlap
with the objects' boxes. It is compared with NumPy, where a mask can select any number, and its gradient with finite
differences. Then gradient descent moves the boxes onto the objects.

    python examples/detection.py                starts its own server and stops it
    python examples/detection.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

#: boxes are left, top, right, bottom; objects lie apart, so that each box overlaps at most one
OBJECTS = np.array([[0.08, 0.1, 0.42, 0.45], [0.55, 0.52, 0.95, 0.9]])
CELLS, SIZE, LEAST, MOST = 9, 0.36, 1 / 3, 24


class Detector:
    """The loss of boxes [n, 4], given the object [n, 4] that each may belong to."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.boxes, self.objects = g.parameter(), g.input()
        overlaps = overlap(self.boxes, self.objects)
        found = overlaps.compress(overlaps.stop_gradient().greater(g.constant(LEAST)), k=MOST, fill=1.0)
        self.count = found.get_output(1)
        kept = (1.0 - found.get_output(0)).sum()
        self.loss = kept / self.count.cast(dtype="float64")


def overlap(a: gs.Node, b: gs.Node) -> gs.Node:
    """Return the intersection over union of the boxes in each row."""
    low, high = a.slice(stops=[CELLS**2, 2]), a.slice(starts=[0, 2])
    other_low, other_high = b.slice(stops=[CELLS**2, 2]), b.slice(starts=[0, 2])
    both = (high.minimum(other_high) - low.maximum(other_low)).relu().prod(axes=[1])
    return both / ((high - low).prod(axes=[1]) + (other_high - other_low).prod(axes=[1]) - both)


def numpys(boxes: Array, objects: Array) -> tuple[Array, float]:
    """Return overlaps and loss, computed by NumPy."""
    sides = np.minimum(boxes[:, 2:], objects[:, 2:]) - np.maximum(boxes[:, :2], objects[:, :2])
    both = np.maximum(sides, 0).prod(axis=1)
    areas = [(each[:, 2:] - each[:, :2]).prod(axis=1) for each in (boxes, objects)]
    overlaps = both / (areas[0] + areas[1] - both)
    return overlaps, float(np.mean(1 - overlaps[overlaps > LEAST]))


def grid() -> tuple[Array, Array]:
    """Return boxes of one size around the centres of cells, and the object that each overlaps most."""
    x, y = np.meshgrid(*[(np.arange(CELLS) + 0.5) / CELLS] * 2)
    middles = np.stack([x.ravel(), y.ravel()], 1)
    boxes = np.concatenate([middles - SIZE / 2, middles + SIZE / 2], 1)
    each = [numpys(boxes, np.broadcast_to(one, boxes.shape))[0] for one in OBJECTS]
    return boxes, OBJECTS[np.argmax(each, axis=0)]


def work(client: gs.Client, steps: int) -> None:
    """Compare with NumPy, then run gradient descent."""
    model, (boxes, objects) = Detector(), grid()
    for step in range(steps):
        feeds = {model.boxes: boxes, model.objects: objects}
        answer = client.gradients(model.graph, feeds, of=model.loss, outputs=[model.count, model.loss])
        slope = answer.gradients[model.boxes]
        if step == 0:
            overlaps, right = numpys(boxes, objects)
            print(f"count: {int(answer.values[model.count])}, of {int((overlaps > LEAST).sum())}")
            print(f"loss: {float(answer.values[model.loss]):.12f}, by NumPy {right:.12f}")
            direction, h = np.random.default_rng(0).normal(size=boxes.shape), 1e-7
            ends = [numpys(boxes + s * h * direction, objects)[1] for s in (1, -1)]
            print(f"slope: {np.sum(slope * direction):.6f}, by differences {(ends[0] - ends[1]) / (2 * h):.6f}")
        boxes = boxes - 0.05 * slope
    print(f"loss: {float(answer.values[model.loss]):.4f} after {steps} steps")


if __name__ == "__main__":
    run(work, __doc__, steps=100)
