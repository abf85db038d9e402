"""Leading-extent analysis: how much of each result, from its beginning, is ever read."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, Graph, TensorType, Value, registry
from engine.compiler.fused_kernel import read_extents
from engine.ir.tensor_type import Shape


@pytest.fixture
def x() -> Value:
    """A value of shape [4, 6]."""
    return Builder(registry()).leaf(TensorType((4, 6), np.dtype("float64")), 0).sin()


def read(graph: Graph, value: Value) -> Shape:
    return read_extents(graph)[value.index]


def test_output_is_read_in_full(x: Value) -> None:
    assert read(x.builder.graph([x]), x) == (4, 6)


def test_leading_slice_reads_its_extents(x: Value) -> None:
    assert read(x.builder.graph([x.slice(starts=(0, 0), stops=(3, 2))]), x) == (3, 2)


@pytest.mark.parametrize(
    "bounds",
    [
        {"starts": (1, 0), "stops": (3, 2)},
        {"starts": (0, 0), "stops": (3, 5), "steps": (1, 2)},
    ],
)
def test_other_slices_read_everything(x: Value, bounds: dict[str, Shape]) -> None:
    assert read(x.builder.graph([x.slice(**bounds)]), x) == (4, 6)


def test_transpose_maps_extents_back(x: Value) -> None:
    turned = x.transpose().slice(starts=(0, 0), stops=(5, 1))
    assert read(x.builder.graph([turned]), x) == (1, 5)


def test_transpose_of_three_axes_maps_extents_back() -> None:
    y = Builder(registry()).leaf(TensorType((2, 3, 5), np.dtype("float64")), 0).sin()
    turned = y.transpose(axes=(2, 0, 1)).slice(starts=(0, 0, 0), stops=(4, 1, 2))
    assert read(y.builder.graph([turned]), y) == (1, 2, 4)


def test_two_readers_take_the_larger_extent_per_axis(x: Value) -> None:
    wide, high = x.slice(starts=(0, 0), stops=(1, 5)), x.slice(starts=(0, 0), stops=(3, 2))
    assert read(x.builder.graph([wide, high]), x) == (3, 5)


def test_compute_ops_read_everything(x: Value) -> None:
    assert read(x.builder.graph([x.cos().slice(starts=(0, 0), stops=(1, 1))]), x) == (4, 6)
    assert read(x.builder.graph([x.reshape(shape=(24,)).slice(starts=(0,), stops=(2,))]), x) == (4, 6)


def test_unread_value_has_zero_extents(x: Value) -> None:
    unread = x.cos()
    assert read(x.builder.graph([x]), unread) == (0, 0)
