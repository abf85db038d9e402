"""Convolution and pooling, window by window; gradients by complex steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tests.reference.case import Case, case, draw

Pair = Sequence[int]


def conv2d(
    x: Any,
    kernel: Any,
    bias: Any = None,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Any:
    (n, channels, *_), (features, _, kh, kw) = x.shape, kernel.shape
    wide = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, (kh, kw), strict=True)]
    size = [(e - r) // s + 1 for e, r, s in zip(wide.shape[2:], reach, stride, strict=True)]
    y = np.zeros((n, features, *size), np.result_type(x, kernel))
    for o, i, j in np.ndindex(features, *size):
        first = o // (features // groups) * (channels // groups)
        window = wide[:, first : first + channels // groups, i * stride[0] :, j * stride[1] :]
        window = window[:, :, : reach[0] : dilation[0], : reach[1] : dilation[1]]
        y[:, o, i, j] = np.sum(window * kernel[o], axis=(1, 2, 3))
    return y if bias is None else y + bias[:, None, None]


def conv_transpose2d(
    x: Any,
    kernel: Any,
    bias: Any = None,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    output_padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Any:
    (n, channels, *extents), (_, per_group, *k) = x.shape, kernel.shape
    size = [(extents[a] - 1) * stride[a] + dilation[a] * (k[a] - 1) + 1 + output_padding[a] for a in (0, 1)]
    y = np.zeros((n, per_group * groups, *size), np.result_type(x, kernel))
    for c, i, j, a, b in np.ndindex(channels, *extents, *k):
        first = c // (channels // groups) * per_group
        row, column = i * stride[0] + a * dilation[0], j * stride[1] + b * dilation[1]
        y[:, first : first + per_group, row, column] += x[:, c, i, j, None] * kernel[c, :, a, b]
    y = y[:, :, padding[0] : size[0] - padding[0], padding[1] : size[1] - padding[1]]
    return y if bias is None else y + bias[:, None, None]


def windows(x: Any, kernel_size: Pair, stride: Pair | None, padding: Pair, outside: float) -> Iterator[tuple[Any, Any]]:
    """Each window's place and its elements, row by row."""
    steps = stride or kernel_size
    around = [(0, 0)] * (x.ndim - 2) + [(padding[0],) * 2, (padding[1],) * 2]
    wide = np.pad(x, around, constant_values=outside)
    size = [(e - k) // s + 1 for e, k, s in zip(wide.shape[-2:], kernel_size, steps, strict=True)]
    for i, j in np.ndindex(*size):
        top, left = i * steps[0], j * steps[1]
        window = wide[..., top : top + kernel_size[0], left : left + kernel_size[1]]
        yield (i, j), window.reshape(*x.shape[:-2], -1)


def pooled(x: Any, pick: Callable[[Any], Any], **how: Any) -> Any:
    values = {place: pick(window) for place, window in windows(x, **how)}
    rows, columns = (1 + max(place[a] for place in values) for a in (0, 1))
    return np.stack([np.stack([values[i, j] for j in range(columns)], -1) for i in range(rows)], -2)


def first_largest(window: Any) -> Any:
    return np.argmax(np.real(window), axis=-1)


def max_pool2d(x: Any, kernel_size: Pair, stride: Pair | None = None, padding: Pair = (0, 0)) -> Any:
    def pick(window: Any) -> Any:
        return np.take_along_axis(window, first_largest(window)[..., None], -1)[..., 0]

    return pooled(x, pick, kernel_size=kernel_size, stride=stride, padding=padding, outside=-np.inf)


def max_pool2d_indices(x: Any, kernel_size: Pair, stride: Pair | None = None, padding: Pair = (0, 0)) -> Any:
    steps, width = stride or kernel_size, x.shape[-1]
    inside = pooled(x, first_largest, kernel_size=kernel_size, stride=stride, padding=padding, outside=-np.inf)
    i, j = np.indices(inside.shape[-2:])
    rows = i * steps[0] - padding[0] + inside // kernel_size[1]
    return rows * width + j * steps[1] - padding[1] + inside % kernel_size[1]


def avg_pool2d(x: Any, kernel_size: Pair, stride: Pair | None = None, padding: Pair = (0, 0)) -> Any:
    def pick(window: Any) -> Any:
        return np.sum(window, axis=-1) / (kernel_size[0] * kernel_size[1])

    return pooled(x, pick, kernel_size=kernel_size, stride=stride, padding=padding, outside=0.0)


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 2, 4, 5), (3, 2, 2, 3), {}),
    ((1, 2, 5, 5), (2, 2, 3, 3), {"stride": [2, 1], "padding": [1, 2]}),
    ((1, 1, 6, 5), (2, 1, 2, 2), {"dilation": [3, 2]}),
    ((1, 4, 3, 3), (6, 2, 2, 2), {"groups": 2}),
    ((1, 2, 5, 4), (2, 1, 2, 2), {"groups": 2, "stride": [2, 3], "padding": [1, 1], "dilation": [1, 2]}),
    ((0, 2, 3, 3), (1, 2, 2, 2), {}),
]
TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 2, 3, 2), (2, 3, 2, 3), {}),
    ((1, 2, 3, 3), (2, 2, 3, 3), {"stride": [2, 3], "padding": [1, 2], "output_padding": [1, 2]}),
    ((1, 1, 3, 2), (1, 2, 2, 2), {"dilation": [3, 2]}),
    ((1, 4, 2, 2), (4, 3, 2, 2), {"groups": 2}),
]
POOLS: list[dict[str, Any]] = [
    {"kernel_size": [2, 2]},
    {"kernel_size": [3, 2], "stride": [1, 2]},
    {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1]},
]


def cases() -> Iterator[Case]:
    """All cases of this family."""
    for op, f, table in (("conv2d", conv2d, CONVOLUTIONS), ("conv_transpose2d", conv_transpose2d, TRANSPOSED)):
        for x, kernel, attrs in table:
            features = kernel[0] if op == "conv2d" else kernel[1] * attrs.get("groups", 1)
            yield case(op, f, draw(*x), draw(*kernel), **attrs)
            yield case(op, f, draw(*x), draw(*kernel), draw(features), **attrs)
    tied = np.array([[1.0, 3.0, 3.0, 0.0], [3.0, 3.0, 1.0, 0.0], [0.0, 0.0, -1.0, -1.0], [0.0, 0.0, -1.0, -1.0]])
    for attrs in POOLS:
        for x in (draw(2, 2, 5, 4), tied[None, None], -np.abs(draw(3, 4, 4))):
            yield case("max_pool2d", max_pool2d, x, **attrs)
            yield case("max_pool2d_indices", max_pool2d_indices, x, **attrs)
            yield case("avg_pool2d", avg_pool2d, x, **attrs)
