"""Correlations by im2col, and their kernel gradients, against explicit sums."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ops.conv import im2col as convolution_layout
from engine.ops.conv.im2col import correlate, correlate_by_kernel, layout, split_groups, windows_of
from engine.ops.conv.windows import Windows

Array = np.ndarray[Any, Any]
HOST = RunContext(np)

#: windows, extents, groups
CASES = [
    (Windows((3,), (1,), (0,), (1,)), (7,), 1),
    (Windows((2, 3), (2, 1), (1, 0), (1, 2)), (5, 8), 1),
    (Windows((3, 3), (1, 1), (1, 1), (1, 1)), (4, 4), 2),
    (Windows((4, 4), (3, 3), (2, 2), (1, 1)), (4, 5), 2),
    (Windows((1, 2, 2), (1, 2, 1), (0, 1, 0), (1, 1, 1)), (2, 4, 3), 3),
]


def overlaps(windows: Windows, extents: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Each position and tap that lies on an element, and that element."""
    for position in np.ndindex(*windows.positions(extents)):
        for tap in np.ndindex(*windows.size):
            axes = zip(position, windows.stride, tap, windows.dilation, windows.padding, strict=True)
            element = tuple(p * s + t * d - q for p, s, t, d, q in axes)
            if all(0 <= e < n for e, n in zip(element, extents, strict=True)):
                yield position, tap, element


def operands(windows: Windows, extents: tuple[int, ...], groups: int) -> tuple[Array, Array, Array]:
    """x, a kernel, and an output buffer."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(2, 2 * groups, *extents))
    return x, rng.normal(size=(3 * groups, 2, *windows.size)), np.empty((2, 3 * groups, *windows.positions(extents)))


@pytest.fixture(params=[1, 600, 1 << 21], ids=["one window", "some windows", "all windows"])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a chunk."""
    monkeypatch.setattr(convolution_layout, "CHUNK_BYTES", request.param)
    monkeypatch.setattr(convolution_layout, "LEAST_WINDOWS", 1)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(("windows", "extents", "groups"), CASES)
def test_correlations(windows: Windows, extents: tuple[int, ...], groups: int) -> None:
    x, kernel, out = operands(windows, extents, groups)
    expected = np.zeros(out.shape)
    for (position, tap, element), g in product(overlaps(windows, extents), range(groups)):
        seen, weights = x[:, 2 * g : 2 * g + 2, *element], kernel[3 * g : 3 * g + 3, :, *tap]
        expected[:, 3 * g : 3 * g + 3, *position] += seen @ weights.T
    correlate(HOST, x, kernel, out, windows, groups)
    np.testing.assert_allclose(out, expected, 1e-12, 1e-13)
    transposed = np.empty(out.shape)
    correlate(HOST, np.asfortranarray(x), np.asfortranarray(kernel), transposed, windows, groups)
    np.testing.assert_allclose(transposed, expected, 1e-12, 1e-13)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(("windows", "extents", "groups"), CASES)
def test_kernel_gradient_of_a_correlation(windows: Windows, extents: tuple[int, ...], groups: int) -> None:
    """Σ over images and positions of the element under a tap times the cotangent of its window."""
    x, _, narrow = operands(windows, extents, groups)
    narrow[...] = np.random.default_rng(6).normal(size=narrow.shape)
    expected = np.zeros((groups, 3, 2, *windows.size))
    for (position, tap, element), g in product(overlaps(windows, extents), range(groups)):
        cotangent, seen = narrow[:, 3 * g : 3 * g + 3, *position], x[:, 2 * g : 2 * g + 2, *element]
        expected[g][:, :, *tap] += cotangent.T @ seen
    out = np.empty(expected.shape)
    sizes = layout(x, narrow, narrow, windows, groups)
    correlate_by_kernel(HOST, split_groups(x, groups), split_groups(narrow, groups), out, sizes)
    np.testing.assert_allclose(out, expected, 1e-12, 1e-13)


def test_windows_of() -> None:
    windows, extents, groups = CASES[1]
    x, _, narrow = operands(windows, extents, groups)
    actual = windows_of(np, split_groups(x, groups), layout(x, narrow, narrow, windows, groups))
    expected = np.zeros(actual.shape)
    for position, tap, element in overlaps(windows, extents):
        expected[:, 0, :, *tap, *position] = x[:, :, *element]
    np.testing.assert_array_equal(actual, expected)
