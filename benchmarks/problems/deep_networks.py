"""N1 and N2: networks of many layers, value and all gradients, float32; smaller ones of the same kind for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.workload import Array, Maker, Workload, normal

Shape = tuple[int, ...]


def residual_network(
    widths: Sequence[int] = (64, 128, 256, 512),
    *,
    blocks: int = 2,
    batch: int = 32,
    side: int = 64,
    classes: int = 1000,
    name: str = "N1",
    title: str = "ResNet-18",
) -> Workload:
    """N1: ResNet-18, on images that are smaller than it was made for, with cross-entropy.

    A stem, and for each width some basic blocks, the first of which is strided, but for the first width. K. He,
    X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition" (2015), table 1. Batches are normalised by
    their own mean and variance, as in training.
    """

    def loss(ops: Any, *leaves: Any) -> Any:
        *parameters, x, wanted = leaves
        given = iter(parameters)
        h = ops.relu(_normalised_convolution(ops, given, x, stride=2, padding=3))
        h = ops.max_pool2d(h, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
        for k in range(len(widths)):
            for block in range(blocks):
                h = _basic_block(ops, given, h, 2 if k and not block else 1)
        return ops.cross_entropy(ops.mean(h, axes=(2, 3)) @ next(given) + next(given), wanted)

    drawn = _residual_parameters(widths, blocks)
    drawn.product(widths[-1], classes)
    targets = np.random.default_rng(2).integers(0, classes, batch)
    title = f"{name}: {title}, {batch} images of 3 × {side} × {side}"
    return Workload(name, title, loss, drawn.arrays, [normal(1, batch, 3, side, side), targets])


def _basic_block(ops: Any, given: Iterator[Any], x: Any, stride: int) -> Any:
    """Two convolutions of 3 × 3, and x added to them; where it has another shape, by a convolution of 1 × 1."""
    h = ops.relu(_normalised_convolution(ops, given, x, stride=stride, padding=1))
    h = _normalised_convolution(ops, given, h, stride=1, padding=1)
    x = _normalised_convolution(ops, given, x, stride=stride, padding=0) if stride != 1 else x
    return ops.relu(h + x)


def _normalised_convolution(ops: Any, given: Iterator[Any], x: Any, *, stride: int, padding: int) -> Any:
    kernel, weight, bias = (next(given) for _ in range(3))
    return ops.batch_norm(ops.conv2d(x, kernel, stride=(stride,) * 2, padding=(padding,) * 2), weight, bias)


class _Drawn:
    """Parameters, drawn one after the other: the variance of what goes through is kept (K. He et al., 2015)."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def product(self, inputs: int, outputs: int) -> None:
        """A matrix, and a bias."""
        self.arrays += [normal(len(self.arrays), inputs, outputs, scale=inputs**-0.5), np.zeros(outputs, "float32")]

    def norm(self, features: int) -> None:
        """Weight and bias."""
        self.arrays += [np.ones(features, "float32"), np.zeros(features, "float32")]

    def convolution(self, features: int, channels: int, size: int) -> None:
        """A square kernel, and the norm behind it."""
        scale = (2 / (channels * size * size)) ** 0.5
        self.arrays.append(normal(len(self.arrays), features, channels, size, size, scale=scale))
        self.norm(features)


def _residual_parameters(widths: Sequence[int], blocks: int) -> _Drawn:
    drawn, before = _Drawn(), widths[0]
    drawn.convolution(before, 3, 7)
    for k, width in enumerate(widths):
        for block in range(blocks):
            drawn.convolution(width, before, 3)
            drawn.convolution(width, width, 3)
            if k and not block:
                drawn.convolution(width, before, 1)
            before = width
    return drawn


def transformer(
    layers: int = 6,
    *,
    width: int = 512,
    heads: int = 8,
    batch: int = 8,
    tokens: int = 256,
    name: str = "N2",
    dtype: str = "float32",
) -> Workload:
    """N2: transformer layers, each of attention and a perceptron behind norms, by composites; a mean of squares.

    Of float16 the mean is that of the tokens' sums: gradients of a mean of all would be no numbers of that dtype.
    As W4n: R. Xiong et al., "On layer normalization in the transformer architecture" (2020), figure 1 (b).
    """
    shape = (batch, tokens, width)

    def loss(ops: Any, *leaves: Any) -> Any:
        *parameters, h = leaves
        given = iter(parameters)
        for _ in range(layers):
            h = h + _attention(ops, given, ops.layer_norm(h, next(given), next(given)), shape, heads)
            a = ops.layer_norm(h, next(given), next(given)) @ next(given) + next(given)
            h = h + ops.gelu(a, approximate="tanh") @ next(given) + next(given)
        return ops.mean(ops.sum(h * h, axes=(2,)) if dtype == "float16" else h * h)

    title = f"{name}: {layers} transformer layers of width {width}, {heads} heads, batch {batch}, {tokens} tokens"
    parameters = [array.astype(dtype) for array in _transformer_parameters(layers, width)]
    # What is added to all keys is added to all scores of a row, which softmax does not see; the value comes first.
    of_keys = tuple(1 + _OF_A_LAYER * layer + _KEY_BIAS for layer in range(layers))
    return Workload(name, title, loss, parameters, [normal(1, *shape, dtype=dtype)], vanishing=of_keys)


def _attention(ops: Any, given: Iterator[Any], x: Any, shape: Shape, heads: int) -> Any:
    *lead, width = shape
    cut = (*lead, heads, width // heads)
    q, k, v = (
        ops.transpose(ops.reshape(x @ next(given) + next(given), shape=cut), axes=(0, 2, 1, 3)) for _ in range(3)
    )
    mixed = ops.reshape(ops.transpose(ops.attention(q, k, v), axes=(0, 2, 1, 3)), shape=shape)
    return mixed @ next(given) + next(given)


#: parameters of a layer, and which of them is added to keys
_OF_A_LAYER: Final = 16
_KEY_BIAS: Final = 5


def _transformer_parameters(layers: int, width: int) -> list[Array]:
    drawn = _Drawn()
    for _ in range(layers):
        drawn.norm(width)
        for _ in range(4):
            drawn.product(width, width)
        drawn.norm(width)
        drawn.product(width, 4 * width)
        drawn.product(4 * width, width)
    return drawn.arrays


def in_tf32(make: Maker, name: str) -> Workload:
    """The same, but that products and convolutions of a card may read float32 as TF32."""
    work = make()
    title = work.title.replace(work.name, name, 1)
    return replace(work, name=name, title=f"{title}, in TF32", precision="tf32")


def in_halves() -> Workload:
    """N2 in float16."""
    work = transformer(name="N2-half", dtype="float16")
    return replace(work, title=f"{work.title}, in float16")


DEEP: Final[dict[str, Callable[[], Workload]]] = {"N1": residual_network, "N2": transformer}
#: what makes a difference on a card alone
DEEP_ON_CARDS: Final[dict[str, Maker]] = {
    **{f"{name}-tf32": partial(in_tf32, make, f"{name}-tf32") for name, make in DEEP.items()},
    "N2-half": in_halves,
}
