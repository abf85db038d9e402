"""Convolution on one and three spatial axes, tap by tap; gradients by complex steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from tests.reference.case import Case, case, draw

Numbers = Sequence[int]


def correlated(
    x: Any,
    kernel: Any,
    bias: Any = None,
    *,
    stride: Numbers = (1, 1, 1),
    padding: Numbers = (0, 0, 0),
    dilation: Numbers = (1, 1, 1),
    groups: int = 1,
) -> Any:
    rank, (features, depth) = x.ndim - 2, kernel.shape[:2]
    wide = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding[:rank])])
    counts = [
        (e - d * (k - 1) - 1) // s + 1
        for e, k, s, d in zip(wide.shape[2:], kernel.shape[2:], stride, dilation, strict=False)
    ]
    y = np.zeros((len(x), features, *counts), np.result_type(x, kernel))
    for o, tap in product(range(features), np.ndindex(*kernel.shape[2:])):
        first = o // (features // groups) * depth
        starts = [a * d for a, d in zip(tap, dilation, strict=False)]
        spans = [slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, counts, stride, strict=False)]
        window = wide[(slice(None), slice(first, first + depth), *spans)]
        y[:, o] += np.einsum("nc...,c->n...", window, kernel[(o, slice(None), *tap)])
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


def spread(
    x: Any,
    kernel: Any,
    bias: Any = None,
    *,
    stride: Numbers = (1, 1, 1),
    padding: Numbers = (0, 0, 0),
    output_padding: Numbers = (0, 0, 0),
    dilation: Numbers = (1, 1, 1),
    groups: int = 1,
) -> Any:
    extents, per_group, size = x.shape[2:], kernel.shape[1], kernel.shape[2:]
    placed = list(zip(extents, stride, dilation, size, output_padding, strict=True))
    whole = [(n - 1) * s + d * (k - 1) + 1 + e for n, s, d, k, e in placed]
    y = np.zeros((len(x), per_group * groups, *whole), np.result_type(x, kernel))
    for c, place, tap in product(range(x.shape[1]), np.ndindex(*extents), np.ndindex(*size)):
        first = c // (x.shape[1] // groups) * per_group
        index = tuple(i * s + a * d for i, a, (_, s, d, _, _) in zip(place, tap, placed, strict=True))
        value = x[(slice(None), c, *place)][:, None] * kernel[(c, slice(None), *tap)]
        y[(slice(None), slice(first, first + per_group), *index)] += value
    y = y[(..., *(slice(p, n - p) for p, n in zip(padding, whole, strict=True)))]
    return y if bias is None else y + bias.reshape(-1, 1, 1, 1)


Shape = tuple[int, ...]
CONVOLUTIONS: list[tuple[str, Shape, Shape, dict[str, Any]]] = [
    ("conv1d", (2, 2, 5), (3, 2, 2), {}),
    ("conv1d", (1, 2, 7), (2, 2, 3), {"stride": [2], "padding": [2]}),
    ("conv1d", (1, 4, 9), (4, 2, 2), {"stride": [3], "padding": [1], "dilation": [2], "groups": 2}),
    ("conv1d", (0, 2, 3), (1, 2, 2), {}),
    ("conv3d", (2, 2, 3, 2, 3), (2, 2, 2, 2, 1), {}),
    ("conv3d", (1, 1, 3, 4, 2), (2, 1, 2, 3, 1), {"stride": [2, 1, 1], "padding": [0, 1, 1]}),
    ("conv3d", (1, 2, 3, 2, 5), (2, 1, 2, 1, 2), {"stride": [1, 2, 3], "dilation": [2, 1, 1], "groups": 2}),
    ("conv_transpose3d", (1, 2, 2, 3, 1), (2, 2, 2, 1, 2), {}),
    ("conv_transpose3d", (1, 1, 2, 2, 1), (1, 2, 2, 2, 1), {"stride": [2, 1, 3], "output_padding": [1, 0, 2]}),
    ("conv_transpose3d", (1, 2, 2, 1, 2), (2, 1, 2, 2, 2), {"padding": [1, 0, 1], "dilation": [1, 3, 2], "groups": 2}),
]


def cases() -> Iterator[Case]:
    """All cases of this family."""
    for op, x, kernel, attrs in CONVOLUTIONS:
        f = spread if op == "conv_transpose3d" else correlated
        features = kernel[1] * attrs.get("groups", 1) if op == "conv_transpose3d" else kernel[0]
        yield case(op, f, draw(*x), draw(*kernel), **attrs)
        yield case(op, f, draw(*x), draw(*kernel), draw(features), **attrs)
