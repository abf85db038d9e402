"""What is timed: losses of a few leaves, written against any library that has `ops`' functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Workload:
    """A scalar `loss(ops, *parameters, *data)`, to be differentiated by the parameters."""

    name: str
    parameters: list[Array]
    data: list[Array]
    loss: Callable[..., Any]


def scalar_ops() -> Workload:
    """Ten elementwise ops on eight numbers: what a call costs before any arithmetic."""

    def loss(ops: Any, x: Any, w: Any) -> Any:
        h = ops.tanh(ops.mul(x, w))
        h = ops.add(ops.sin(h), ops.square(h))
        return ops.sum(ops.mul(ops.exp(ops.mul(h, x)), ops.sin(ops.add(h, w))))

    x = np.linspace(0.1, 0.8, 8).astype("float32")
    return Workload("ten ops on 8 numbers", [x, x], [], loss)


def perceptron(*widths: int, batch: int) -> Workload:
    """Linear layers with relu between them and cross-entropy at the end, float32."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(0, m**-0.5, (m, n)).astype("float32") for m, n in pairwise(widths)]
    biases = [np.zeros(n, "float32") for n in widths[1:]]
    data: list[Array] = [rng.random((batch, widths[0]), np.float32), rng.integers(0, widths[-1], batch)]
    depth = len(weights)

    def loss(ops: Any, *leaves: Any) -> Any:
        *parameters, h, targets = leaves
        for i, (w, b) in enumerate(zip(parameters[:depth], parameters[depth:], strict=True)):
            h = ops.add(ops.matmul(h, w), b)
            h = ops.relu(h) if i < depth - 1 else h
        return ops.cross_entropy(h, targets)

    return Workload(f"MLP {'-'.join(map(str, widths))}, batch {batch}", [*weights, *biases], data, loss)


def elementwise_chain(length: int, size: int) -> Workload:
    """`length` elementwise ops in a row on `size` numbers, float32: bound by memory where nothing is fused."""

    def loss(ops: Any, x: Any) -> Any:
        for i in range(length):
            x = ops.sin(x) if i % 2 else ops.tanh(x)
        return ops.sum(x)

    x = np.linspace(-1, 1, size).astype("float32")
    return Workload(f"{length:,} ops in a row on {size:,} numbers", [x], [], loss)
