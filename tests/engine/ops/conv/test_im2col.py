"""Correlations by columns, and of kernels by kernels, against sums that are written out."""

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


def meetings(windows: Windows, extents: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Each position and tap that lies on an element, and that element."""
    for position in np.ndindex(*windows.positions(extents)):
        for tap in np.ndindex(*windows.size):
            at = zip(position, windows.stride, tap, windows.dilation, windows.padding, strict=True)
            element = tuple(p * s + t * d - q for p, s, t, d, q in at)
            if all(0 <= e < n for e, n in zip(element, extents, strict=True)):
                yield position, tap, element


def operands(windows: Windows, extents: tuple[int, ...], groups: int) -> tuple[Array, Array, Array]:
    """x, a kernel, and a place for what they come to."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(2, 2 * groups, *extents))
    return x, rng.normal(size=(3 * groups, 2, *windows.size)), np.empty((2, 3 * groups, *windows.positions(extents)))


@pytest.fixture(params=[1, 600, 1 << 21], ids=["one window", "some windows", "all windows"])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How much is laid out at a time."""
    monkeypatch.setattr(convolution_layout, "CHUNK_BYTES", request.param)
    monkeypatch.setattr(convolution_layout, "LEAST_WINDOWS", 1)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(("windows", "extents", "groups"), CASES)
def test_correlations(windows: Windows, extents: tuple[int, ...], groups: int) -> None:
    x, kernel, out = operands(windows, extents, groups)
    wanted = np.zeros(out.shape)
    for (position, tap, element), g in product(meetings(windows, extents), range(groups)):
        seen, weights = x[:, 2 * g : 2 * g + 2, *element], kernel[3 * g : 3 * g + 3, :, *tap]
        wanted[:, 3 * g : 3 * g + 3, *position] += seen @ weights.T
    correlate(HOST, x, kernel, out, windows, groups)
    np.testing.assert_allclose(out, wanted, 1e-12, 1e-13)
    turned = np.empty(out.shape)
    correlate(HOST, np.asfortranarray(x), np.asfortranarray(kernel), turned, windows, groups)
    np.testing.assert_allclose(turned, wanted, 1e-12, 1e-13)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(("windows", "extents", "groups"), CASES)
def test_the_kernel_of_a_correlation(windows: Windows, extents: tuple[int, ...], groups: int) -> None:
    """Σ over images and positions of what a tap sees times what the window gives."""
    x, _, narrow = operands(windows, extents, groups)
    narrow[...] = np.random.default_rng(6).normal(size=narrow.shape)
    wanted = np.zeros((groups, 3, 2, *windows.size))
    for (position, tap, element), g in product(meetings(windows, extents), range(groups)):
        given, seen = narrow[:, 3 * g : 3 * g + 3, *position], x[:, 2 * g : 2 * g + 2, *element]
        wanted[g][:, :, *tap] += given.T @ seen
    out = np.empty(wanted.shape)
    sizes = layout(x, narrow, narrow, windows, groups)
    correlate_by_kernel(HOST, split_groups(x, groups), split_groups(narrow, groups), out, sizes)
    np.testing.assert_allclose(out, wanted, 1e-12, 1e-13)


def test_what_windows_see() -> None:
    windows, extents, groups = CASES[1]
    x, _, narrow = operands(windows, extents, groups)
    seen = windows_of(np, split_groups(x, groups), layout(x, narrow, narrow, windows, groups))
    wanted = np.zeros(seen.shape)
    for position, tap, element in meetings(windows, extents):
        wanted[:, 0, :, *tap, *position] = x[:, :, *element]
    np.testing.assert_array_equal(seen, wanted)
