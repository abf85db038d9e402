"""Merging of axes: arrays are stepped along as few axes as their strides allow."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codegen.microkernels.axis_kernels import ITEM, Axes, batch_type, broadcast_strides
from engine.ir.tensor_type import Strided, TensorType


@pytest.mark.parametrize(
    ("shape", "strides", "outer", "run"),
    [
        ((), [()], (), 1),
        ((1, 1), [(8, 8)], (), 1),
        ((2, 3, 4), [(96, 32, 8)], (), 24),
        ((2, 3, 4), [(96, 32, 8), (0, 0, 0)], (), 24),
        ((2, 3, 4), [(96, 32, 8), (32, 0, 8)], (2, 3), 4),
        ((2, 3, 4), [(96, 32, 8), (96, 32, 8), (8, 0, 0)], (2,), 12),
        ((2, 1, 4), [(32, 7, 8)], (), 8),
        ((2, 3, 4), [(8, 16, 48)], (2, 3), 4),
    ],
)
def test_adjacent_axes_with_matching_strides_are_merged(
    shape: tuple[int, ...], strides: list[tuple[int, ...]], outer: tuple[int, ...], run: int
) -> None:
    axes = Axes.of(shape, strides)
    assert (axes.outer, axes.run) == (outer, run)


def test_long_runs_are_split_into_items() -> None:
    assert Axes.of((3, 2 * ITEM + 1), [(8, 8)]).items == 9
    assert Axes.of((12,), [(8,)], 5).items == 3


def test_operand_is_repeated_along_missing_axes() -> None:
    x = Strided(TensorType((3, 1, 4), np.dtype("float64")), (64, 32, 8))
    assert broadcast_strides((2, 3, 5, 4), x) == (0, 64, 0, 8)
    assert (batch_type(x).shape, batch_type(x).strides) == ((3,), (64,))
