"""Networks as used in practice: families × depths, widths, activations, norms, losses and initial scales.

Each is a small graph with its feeds and its loss, the same in every run. Biases start at 0 and norms at 1, as in the
frameworks, unless a family says otherwise. They cover cases that random points do not: gradients that are 0 except for
rounding (a bias before a norm), saturated layers, early layers of deep nets, values exactly at a kink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tests.engine.autodiff.calls.asking import Net


class Writer(Net):
    """A network under construction, with its own generator; `scale` is relative to He and Glorot initialization."""

    def __init__(self, seed: int, scale: float = 1.0, dtype: str = "float64") -> None:
        super().__init__()
        self.rng, self.scale, self.dtype = np.random.default_rng(seed), scale, dtype

    def data(self, *shape: int) -> int:
        """Add a standard normal input."""
        return self.leaf(self.rng.normal(size=shape).astype(self.dtype), "input")

    def labels(self, count: int, classes: int) -> int:
        """Add an input of class indices."""
        return self.leaf(self.rng.integers(0, classes, count), "input")

    def weight(self, *shape: int, fan: int) -> int:
        """Add a parameter for sums of `fan` terms."""
        return self.leaf((self.rng.normal(size=shape) * self.scale / np.sqrt(fan)).astype(self.dtype))

    def full(self, *shape: int, fill: float = 0.0) -> int:
        """Add a parameter that starts at one number."""
        return self.leaf(np.full(shape, fill, self.dtype))

    def linear(self, x: int, fan: int, out: int, act: str | None = None) -> int:
        """Add x w + b, and an activation."""
        y = self.add("add", self.add("matmul", x, self.weight(fan, out, fan=fan)), self.full(out))
        return self.add(act, y) if act else y

    def conv(
        self, x: int, fan: int, out: int, size: int = 3, groups: int = 1, stride: int = 1, bias: bool = True
    ) -> int:
        """Add a convolution that preserves the plane, or halves it."""
        kernel = self.weight(out, fan // groups, size, size, fan=fan // groups * size * size)
        attrs = {"padding": [size // 2] * 2, "groups": groups, "stride": [stride] * 2}
        return self.add("conv2d", x, kernel, *([self.full(out)] if bias else []), **attrs)

    def norm(self, x: int, width: int, kind: str) -> int:
        """Add batch_norm over all axes but 1, layer_norm over the last axis, rms_norm, or none."""
        if kind == "none":
            return x
        scale = self.full(width, fill=1.0)
        return self.add(kind, x, scale) if kind == "rms_norm" else self.add(kind, x, scale, self.full(width))

    def cross_entropy(self, logits: int, rows: int, classes: int) -> int:
        """Add a cross-entropy against random labels."""
        return self.add("cross_entropy", logits, self.labels(rows, classes))


def mlp(depth: int, act: str, norm: str = "none", loss: str = "mse", scale: float = 1.4, dtype: str = "float64") -> Net:
    """Dense layers, with a norm between sum and activation."""
    net = Writer(depth, scale, dtype)
    y = net.data(8, 6)
    for fan, out in pairwise([6, *[10] * depth]):
        y = net.add(act, net.norm(net.linear(y, fan, out), out, norm))
    if loss == "mse":
        net.add("mse_loss", net.linear(y, 10, 3), net.data(8, 3))
    elif loss == "bce":
        net.add("bce_with_logits", net.linear(y, 10, 1), net.leaf(net.rng.integers(0, 2, (8, 1)) * 1.0, "input"))
    else:
        net.cross_entropy(net.linear(y, 10, 4), 8, 4)
    return net


def padded(depth: int, act: str) -> Net:
    """A batch padded with zero rows, for which layers with zero biases give 0: the biases are at the kink."""
    net = Writer(depth)
    y = net.leaf(np.concatenate([net.rng.normal(size=(5, 6)), np.zeros((3, 6))]), "input")
    for fan, out in pairwise([6, *[10] * depth]):
        y = net.linear(y, fan, out, act)
    net.cross_entropy(net.linear(y, 10, 4), 8, 4)
    return net


def convnet(depth: int, act: str, norm: str = "batch_norm", pool: str = "max_pool2d", scale: float = 1.4) -> Net:
    """Convolution, norm, activation, pooling; then dense."""
    net = Writer(depth, scale)
    y, fan = net.data(3, 2, 8, 8), 2
    for layer in range(depth):
        y = net.add(act, net.norm(net.conv(y, fan, 4), 4, norm))
        y, fan = net.add(pool, y, kernel_size=[2, 2]) if layer < 2 else y, 4
    net.cross_entropy(net.linear(net.add("mean", y, axes=[2, 3]), 4, 3), 3, 3)
    return net


def mobile(blocks: int, width: int = 4, plane: int = 6, bias: bool = False, scale: float = 1.4) -> Net:
    """Depthwise and pointwise convolutions with batch norm and relu6, residual if the shapes match."""
    net = Writer(blocks, scale)

    def stage(y: int, fan: int, out: int, size: int, groups: int) -> int:
        normed = net.norm(net.conv(y, fan, out, size, groups, bias=bias), out, "batch_norm")
        return net.add("clamp", normed, min=0.0, max=6.0)

    y = stage(net.data(2, 3, plane, plane), 3, width, 3, 1)
    for _ in range(blocks):
        y = net.add("add", y, stage(stage(y, width, width, 3, width), width, width, 1, 1))
    net.cross_entropy(net.linear(net.add("mean", y, axes=[2, 3]), width, 4), 2, 4)
    return net


def resnet(blocks: int, act: str, norm: str, last: float = 1.0) -> Net:
    """Residual blocks; `last` is the initial scale of the second norm of each block."""
    net = Writer(blocks, 1.4)
    y = net.conv(net.data(3, 2, 6, 6), 2, 4)
    for _ in range(blocks):
        inner = net.add(act, net.norm(net.conv(y, 4, 4), 4, norm))
        branch = net.add("batch_norm", net.conv(inner, 4, 4), net.full(4, fill=last), net.full(4))
        y = net.add(act, net.add("add", y, branch))
    net.cross_entropy(net.linear(net.add("mean", y, axes=[2, 3]), 4, 3), 3, 3)
    return net


def transformer(
    layers: int, norm: str = "layer_norm", act: str = "gelu", first: bool = True, scale: float = 1.0
) -> Net:
    """Causal, from tokens to logits through a shared table; norms before each part (`first`), or after it."""
    net = Writer(layers, scale)
    width, words, length = 6, 7, 5
    table = net.weight(words, width, fan=1)
    y = net.add("add", net.add("embedding", table, net.labels(length, words)), net.weight(length, width, fan=10))

    def part(y: int, branch: Callable[[int], int]) -> int:
        if first:
            return net.add("add", y, branch(net.norm(y, width, norm)))
        return net.norm(net.add("add", y, branch(y)), width, norm)

    def attend(x: int) -> int:
        q, k, v = (net.linear(x, width, width) for _ in range(3))
        return net.linear(net.add("attention", q, k, v, causal=True), width, width)

    for _ in range(layers):
        y = part(part(y, attend), lambda x: net.linear(net.linear(x, width, 12, act), 12, width))
    net.cross_entropy(net.add("matmul", net.norm(y, width, norm), net.add("transpose", table)), length, words)
    return net


def recurrent(steps: int, cell: str, scale: float = 1.0) -> Net:
    """A cell unrolled over time: plain, gated (GRU) or with memory (LSTM)."""
    net = Writer(steps, scale)
    gates = {"plain": 1, "gru": 3, "lstm": 4}[cell]
    w, u, b = net.weight(3, 5 * gates, fan=3), net.weight(5, 5 * gates, fan=5), net.full(5 * gates)
    h, c = net.leaf(np.zeros((4, 5)), "input"), net.leaf(np.zeros((4, 5)), "input")
    for _ in range(steps):
        x = net.add("add", net.add("matmul", net.data(4, 3), w), b)
        z = net.add("matmul", h, u)
        if cell == "plain":
            h = net.add("tanh", net.add("add", x, z))
            continue
        xs, zs = ([net.add("slice", s, starts=[0, 5 * i], stops=[4, 5 * i + 5]) for i in range(gates)] for s in (x, z))
        if cell == "gru":
            r, update = (net.add("sigmoid", net.add("add", a, d)) for a, d in zip(xs[:2], zs[:2], strict=True))
            new = net.add("tanh", net.add("add", xs[2], net.add("mul", r, zs[2])))
            h = net.add("add", h, net.add("mul", update, net.add("sub", new, h)))
        else:
            i, f, o = (net.add("sigmoid", net.add("add", a, d)) for a, d in zip(xs[:3], zs[:3], strict=True))
            new = net.add("mul", i, net.add("tanh", net.add("add", xs[3], zs[3])))
            c = net.add("add", net.add("mul", f, c), new)
            h = net.add("mul", o, net.add("tanh", c))
    net.cross_entropy(net.linear(h, 5, 3), 4, 3)
    return net


def autoencoder(depth: int, act: str, variational: bool, scale: float = 1.4) -> Net:
    """Encoder and decoder; `variational` with noise as an input, and the divergence from a standard normal."""
    net = Writer(depth, scale)
    x = net.leaf(net.rng.uniform(size=(6, 8)), "input")
    widths = [8, *(8 - i for i in range(1, depth + 1))]
    y = x
    for fan, out in pairwise(widths):
        y = net.linear(y, fan, out, act)
    if variational:
        mean, log_var = (net.linear(y, widths[-1], 2) for _ in range(2))
        spread = net.add("exp", net.add("mul_scalar", log_var, scalar=0.5))
        y = net.linear(net.add("add", mean, net.add("mul", spread, net.data(6, 2))), 2, widths[-1], act)
    for fan, out in pairwise(widths[::-1]):
        y = net.linear(y, fan, out, act if out < 8 else None)
    loss = net.add("bce_with_logits", y, x)
    if variational:
        inner = net.add("sub", net.add("add", net.add("square", mean), net.add("exp", log_var)), log_var)
        net.add("add", loss, net.add("mul_scalar", net.add("mean", inner), scalar=0.01))
    return net


def u_net(levels: int, act: str, norm: str = "batch_norm") -> Net:
    """Down by pooling, up by transposed convolutions, with skip connections."""
    net = Writer(levels, 1.4)
    y, skips = net.conv(net.data(2, 1, 8, 8), 1, 4), []
    for _ in range(levels):
        y = net.add(act, net.norm(net.conv(y, 4, 4), 4, norm))
        skips.append(y)
        y = net.add("avg_pool2d", y, kernel_size=[2, 2])
    for skip in reversed(skips):
        up = net.add("conv_transpose2d", y, net.weight(4, 4, 2, 2, fan=4), net.full(4), stride=[2, 2])
        y = net.add(act, net.norm(net.conv(net.add("cat", up, skip, axis=1), 8, 4), 4, norm))
    net.add("mse_loss", net.conv(y, 4, 1, 1), net.data(2, 1, 8, 8))
    return net


def mixer(layers: int, act: str = "gelu") -> Net:
    """Dense layers over patches and over channels, alternating."""
    net = Writer(layers)
    y = net.linear(net.data(3, 4, 5), 5, 6)
    for _ in range(layers):
        transposed = net.add("transpose", net.norm(y, 6, "layer_norm"), axes=[0, 2, 1])
        mixed = net.linear(net.linear(transposed, 4, 8, act), 8, 4)
        y = net.add("add", y, net.add("transpose", mixed, axes=[0, 2, 1]))
        y = net.add("add", y, net.linear(net.linear(net.norm(y, 6, "layer_norm"), 6, 8, act), 8, 6))
    net.cross_entropy(net.linear(net.add("mean", y, axes=[1]), 6, 3), 3, 3)
    return net


def graph_net(layers: int, act: str, norm: str = "none") -> Net:
    """Messages along edges, summed at their target nodes; the mean over the nodes."""
    net = Writer(layers, 1.4)
    endpoints = np.array([[0, 1, 2, 3, 4, 5, 0, 2], [1, 2, 3, 4, 5, 0, 3, 5]])
    starts, stops = (net.add("constant", value=nodes) for nodes in endpoints)
    y, fan = net.data(6, 3), 3
    for _ in range(layers):
        messages = net.linear(net.add("embedding", y, starts), fan, 6)
        received = net.add("segment_sum", messages, stops, segments=6)
        y, fan = net.add(act, net.norm(net.add("add", received, net.linear(y, fan, 6)), 6, norm)), 6
    net.cross_entropy(net.linear(y, 6, 4), 6, 4)
    return net


def contrastive(depth: int, act: str, temperature: float) -> Net:
    """Two views, and cosines of all pairs over a temperature: a softmax that saturates at low temperatures."""
    net = Writer(depth, 1.4)
    a, b = net.data(5, 6), net.data(5, 6)
    view = net.add("add", a, net.add("mul_scalar", b, scalar=0.1))
    weights = [(net.weight(6, 6, fan=6), net.full(6)) for _ in range(depth)]

    def encode(y: int) -> int:
        for w, bias in weights:
            y = net.add(act, net.add("add", net.add("matmul", y, w), bias))
        length = net.add("sqrt", net.add("sum", net.add("square", y), axes=[1], keepdims=True))
        return net.add("div", y, net.add("add_scalar", length, scalar=1e-6))

    pairs = net.add("matmul", encode(a), net.add("transpose", encode(view)))
    scores = net.add("div_scalar", pairs, scalar=temperature)
    net.add("cross_entropy", scores, net.leaf(np.arange(5), "input"))
    return net


def mixture(parts: int, act: str) -> Net:
    """A mixture density network: weights, means and scales of normals from a dense layer; the mean log-likelihood."""
    net = Writer(parts)
    h = net.linear(net.linear(net.data(7, 2), 2, 8, act), 8, 8, act)
    weights, means, scales = (net.linear(h, 8, parts) for _ in range(3))
    spread = net.add("add_scalar", net.add("softplus", scales), scalar=1e-3)
    deviation = net.add("div", net.add("sub", net.data(7, 1), means), spread)
    single = net.add("sub", net.add("mul_scalar", net.add("square", deviation), scalar=-0.5), net.add("log", spread))
    joint = net.add("add", net.add("log_softmax", weights, axis=1), single)
    net.add("neg", net.add("mean", net.add("logsumexp", joint, axes=[1])))
    return net


Make = Callable[[], Net]


def _named(make: Callable[..., Net], options: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, Make]]:
    for arguments in options:
        yield f"{make.__name__} {' '.join(map(str, arguments))}", lambda arguments=arguments: make(*arguments)


FAMILIES: dict[Callable[..., Net], list[tuple[Any, ...]]] = {
    mlp: [
        (3, "relu"),
        (3, "relu", "batch_norm"),
        (12, "tanh"),
        (12, "sigmoid", "none", "ce"),
        (20, "relu", "layer_norm", "ce"),
        (4, "gelu", "batch_norm", "bce"),
        (4, "leaky_relu", "none", "ce", 20.0),
        (6, "tanh", "none", "mse", 0.01),
        (4, "relu", "batch_norm", "ce", 1.4, "float32"),
        (3, "silu", "rms_norm", "mse", 1.4, "float16"),
        (25, "tanh", "none", "ce", 0.3),
        (18, "sigmoid", "none", "bce", 1.0),
        (8, "relu", "none", "mse", 0.05),
        (6, "elu", "layer_norm", "ce", 50.0),
    ],
    padded: [(1, "relu"), (3, "relu"), (3, "gelu")],
    convnet: [
        (2, "relu"),
        (3, "tanh", "batch_norm", "avg_pool2d"),
        (5, "leaky_relu"),
        (2, "relu", "none"),
        (4, "gelu", "batch_norm", "max_pool2d", 0.1),
        (6, "sigmoid", "none", "avg_pool2d"),
        (6, "tanh", "none", "max_pool2d", 0.02),
    ],
    mobile: [(2,), (4, 4, 6, True), (8,), (8, 6, 4, True, 0.3)],
    resnet: [(2, "relu", "batch_norm"), (4, "silu", "batch_norm"), (3, "relu", "batch_norm", 0.0), (5, "tanh", "none")],
    transformer: [
        (1,),
        (3,),
        (2, "rms_norm", "silu"),
        (3, "layer_norm", "gelu", False),
        (2, "layer_norm", "relu", True, 4.0),
        (4, "layer_norm", "gelu", True, 0.02),
    ],
    recurrent: [(6, "plain"), (25, "plain", 0.5), (6, "gru"), (6, "lstm"), (15, "lstm", 3.0), (30, "gru", 0.1)],
    autoencoder: [
        (2, "relu", False),
        (5, "tanh", False),
        (3, "relu", True),
        (4, "sigmoid", True),
        (3, "silu", True, 5.0),
    ],
    u_net: [(1, "relu"), (2, "silu"), (2, "relu", "none")],
    mixer: [(1,), (3, "gelu"), (2, "relu")],
    graph_net: [(2, "relu"), (4, "tanh", "batch_norm"), (6, "relu", "layer_norm")],
    contrastive: [(2, "tanh", 0.5), (3, "relu", 0.07), (2, "tanh", 0.02), (2, "tanh", 0.002)],
    mixture: [(3, "tanh"), (5, "relu")],
}
REAL_NETWORKS: dict[str, Make] = dict(one for make, given in FAMILIES.items() for one in _named(make, given))
