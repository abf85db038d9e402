"""W1 to W6: from a few numbers to a transformer block, value and all gradients, float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from benchmarks.workload import Array, Question, Workload, normal

CHAIN: Final = 4_000_000
WIDE: Final = 2_000
BATCH, TIME, WIDTH, HEADS = 8, 128, 256, 4
UNROLLED: Final = {"torch.compile": "compiling 2,000 nodes takes minutes"}


def scalar_ops(*shape: int) -> Workload:
    """W1: twelve elementwise ops; what a call costs before any arithmetic."""

    def loss(ops: Any, mean: Any, log_scale: Any, x: Any) -> Any:
        z = (x - mean) / ops.exp(log_scale)
        level = ops.tanh(mean)
        return ops.sum(z * z * -0.5 - log_scale - level * level * 0.1)

    title = f"W1: twelve ops on shape {shape}" if shape else "W1: twelve ops on one number"
    return Workload("W1" if shape else "W1-0d", title, loss, [normal(i, *shape, scale=0.5) for i in range(3)])


def from_host(work: Workload, name: str) -> Workload:
    """The same from arrays of the host to arrays of the host."""
    return replace(work, name=name, title=f"{work.title}, from host arrays to host arrays", from_host=True)


def perceptron(*widths: int, batch: int, name: str = "W2") -> Workload:
    """W2: linear layers with relu between them and cross-entropy at the end."""
    weights = [normal(i, m, n, scale=m**-0.5) for i, (m, n) in enumerate(pairwise(widths))]
    biases = [np.zeros(n, "float32") for n in widths[1:]]
    targets = np.random.default_rng(2).integers(0, widths[-1], batch)
    depth = len(weights)

    def loss(ops: Any, *leaves: Any) -> Any:
        *parameters, h, wanted = leaves
        for i, (w, b) in enumerate(zip(parameters[:depth], parameters[depth:], strict=True)):
            h = h @ w + b
            h = ops.relu(h) if i < depth - 1 else h
        return ops.cross_entropy(h, wanted)

    title = f"{name}: perceptron {'-'.join(map(str, widths))}, batch {batch}"
    return Workload(name, title, loss, [*weights, *biases], [normal(3, batch, widths[0]), targets])


def elementwise_chain(size: int = CHAIN, name: str = "W3", *, compiled: bool = True) -> Workload:
    """W3: twenty elementwise ops and a mean; bound by memory where nothing is fused. W3-numpy: fused, not compiled."""

    def loss(ops: Any, x: Any) -> Any:
        t = ops.tanh(ops.sqrt(ops.exp(x * 0.5) + 1.0))
        t = ops.sigmoid(t * x) + x
        t = ops.sqrt(t * t + 1.0)
        t = ops.tanh(ops.exp(t * -0.7) * x)
        t = ops.sigmoid(t * 0.3) - x
        return ops.mean(t * t * 0.5)

    x = normal(3, size)
    title = f"{name}: twenty elementwise ops on {size:,} numbers" + (", by NumPy alone" if not compiled else "")
    return Workload(name, title, loss, [x], extent=size, compiled=compiled)


def transformer_block(*, composites: bool) -> Workload:
    """W4: a transformer block with its loss, from primitives; W4n: the same by the composites that people write."""
    parts = _BY_COMPOSITES if composites else _FROM_PRIMITIVES

    def loss(ops: Any, *leaves: Any) -> Any:
        g1, b1, wq, bq, wo, bo, g2, b2, wa, ba, wb, bb, x = leaves
        h = parts["norm"](ops, x, g1, b1)
        qkv = ops.reshape(h @ wq + bq, shape=(BATCH, TIME, 3, HEADS, WIDTH // HEADS))
        qkv = ops.transpose(qkv, axes=(2, 0, 3, 1, 4))
        q, k, v = (_head(ops, qkv, i) for i in range(3))
        mixed = ops.transpose(parts["attention"](ops, q, k, v), axes=(0, 2, 1, 3))
        mixed = ops.reshape(mixed, shape=(BATCH, TIME, WIDTH))
        x = x + mixed @ wo + bo
        a = parts["gelu"](ops, parts["norm"](ops, x, g2, b2) @ wa + ba)
        y = x + a @ wb + bb
        return ops.mean(y * y)

    name, how = ("W4n", "by composites") if composites else ("W4", "from primitives")
    title = f"{name}: transformer block {how}, batch {BATCH}, {TIME} tokens of {WIDTH}"
    return Workload(name, title, loss, _block_parameters(), [normal(4, BATCH, TIME, WIDTH)])


def _head(ops: Any, qkv: Any, i: int) -> Any:
    shape = (BATCH, HEADS, TIME, WIDTH // HEADS)
    return ops.reshape(ops.slice(qkv, starts=[i, 0, 0, 0, 0], stops=[i + 1, *shape]), shape=shape)


def _block_parameters() -> list[Array]:
    d, ones = WIDTH, np.ones(WIDTH, "float32")
    shapes = [(d, 3 * d), (3 * d,), (d, d), (d,), (d, 4 * d), (4 * d,), (4 * d, d), (d,)]
    wq, bq, wo, bo, wa, ba, wb, bb = (normal(i, *shape, scale=0.05) for i, shape in enumerate(shapes))
    return [ones, 0 * ones, wq, bq, wo, bo, ones.copy(), 0 * ones, wa, ba, wb, bb]


def norm_from_primitives(ops: Any, x: Any, weight: Any, bias: Any) -> Any:
    """Layer norm over the last axis."""
    centred = x - ops.mean(x, axes=[-1], keepdims=True)
    variance = ops.mean(centred * centred, axes=[-1], keepdims=True)
    return centred / ops.sqrt(variance + 1e-5) * weight + bias


def softmax_from_primitives(ops: Any, x: Any) -> Any:
    """Softmax over the last axis, stable."""
    powers = ops.exp(x - ops.max(x, axes=[-1], keepdims=True))
    return powers / ops.sum(powers, axes=[-1], keepdims=True)


def _attention_from_primitives(ops: Any, q: Any, k: Any, v: Any) -> Any:
    scores = q @ ops.transpose(k, axes=(0, 1, 3, 2)) * (HEADS / WIDTH) ** 0.5
    return ops.softmax(scores) @ v


def gelu_from_primitives(ops: Any, x: Any) -> Any:
    """GELU's approximation by tanh."""
    return x * 0.5 * (ops.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1.0)


Part = Callable[..., Any]
_FROM_PRIMITIVES: dict[str, Part] = {
    "norm": norm_from_primitives,
    "attention": _attention_from_primitives,
    "gelu": gelu_from_primitives,
}
_BY_COMPOSITES: dict[str, Part] = {
    "norm": lambda ops, x, weight, bias: ops.layer_norm(x, weight, bias),
    "attention": lambda ops, q, k, v: ops.attention(q, k, v),
    "gelu": lambda ops, x: ops.gelu(x, approximate="tanh"),
}


def convolutions(name: str = "W5", *, compiled: bool = True) -> Workload:
    """W5: two convolutions with relu and pooling, a linear layer, cross-entropy. W5-numpy: nothing is compiled."""

    def loss(ops: Any, *leaves: Any) -> Any:
        k1, b1, k2, b2, w, b, x, wanted = leaves
        h = ops.max_pool2d(ops.relu(ops.conv2d(x, k1, b1, padding=(1, 1))), kernel_size=(2, 2))
        h = ops.max_pool2d(ops.relu(ops.conv2d(h, k2, b2, padding=(1, 1))), kernel_size=(2, 2))
        return ops.cross_entropy(ops.reshape(h, shape=(32, 1568)) @ w + b, wanted)

    kernels = [normal(1, 16, 1, 3, 3, scale=1 / 3), normal(2, 32, 16, 3, 3, scale=1 / 12)]
    biases = [np.zeros(n, "float32") for n in (16, 32, 10)]
    linear = normal(3, 1568, 10, scale=1568**-0.5)
    parameters = [kernels[0], biases[0], kernels[1], biases[1], linear, biases[2]]
    data = [normal(4, 32, 1, 28, 28), np.random.default_rng(5).integers(0, 10, 32)]
    title = f"{name}: two convolutions on 32 images of 28 × 28" + (", by NumPy alone" if not compiled else "")
    return Workload(name, title, loss, parameters, data, compiled=compiled)


def wide_graph(nodes: int = WIDE, name: str = "W6") -> Workload:
    """W6: many small nodes, each on a recent one and on an input or another recent one."""
    rng = np.random.default_rng(6)
    reads = [int(rng.integers(max(0, i - 16), i + 4)) if i % 12 == 0 else int(rng.integers(4)) for i in range(nodes)]

    def loss(ops: Any, *inputs: Any) -> Any:
        known = list(inputs)
        for i, other in enumerate(reads):
            known.append(_step(ops, i, known[-1], known[other]))
        return ops.mean(known[-1] + known[-2] + known[-3])

    title = f"{name}: {nodes:,} nodes on 64 numbers"
    without = UNROLLED if nodes > 1_000 else {}
    return Workload(name, title, loss, [normal(i, 64, scale=0.5) for i in range(4)], without=without, extent=nodes)


def _step(ops: Any, i: int, last: Any, other: Any) -> Any:
    steps: tuple[Callable[[], Any], ...] = (
        lambda: last + other,
        lambda: last * other,
        lambda: ops.tanh(last),
        lambda: last - other,
        lambda: ops.sin(last),
        lambda: last * 0.9,
    )
    return steps[i % 6]()


def per_example(batch: int) -> Workload:
    """Value and gradients of a perceptron 8-16-1 for each of so many examples by itself."""

    def loss(ops: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
        return ops.sum(ops.square(ops.tanh(x @ w1 + b1) @ w2 + b2 - y))

    parameters = [normal(i, *shape) for i, shape in enumerate([(8, 16), (16,), (16, 1), (1,)])]
    data = [normal(5, batch, 8), normal(6, batch, 1)]
    title = f"gradients of a perceptron 8-16-1 for each of {batch:,} examples"
    return Workload(f"batch-{batch}", title, loss, parameters, data, Question.EXAMPLES, extent=batch)


NETWORKS: Final[dict[str, Callable[[], Workload]]] = {
    "W1": lambda: scalar_ops(8),
    "W1-0d": scalar_ops,
    "W1-host": lambda: from_host(scalar_ops(8), "W1-host"),
    "W2": lambda: perceptron(784, 256, 128, 10, batch=128),
    "W3": elementwise_chain,
    "W3-numpy": lambda: elementwise_chain(name="W3-numpy", compiled=False),
    "W4": lambda: transformer_block(composites=False),
    "W4n": lambda: transformer_block(composites=True),
    "W5": convolutions,
    "W5-numpy": lambda: convolutions("W5-numpy", compiled=False),
    "W6": wide_graph,
}
