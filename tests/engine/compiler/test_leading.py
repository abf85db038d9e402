"""Leading-extent analysis: how much of each result, from its beginning, is ever read."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, Graph, TensorType, Value, registry
from engine.compiler.fused_kernel import read_extents
from engine.ir.tensor_type import Shape


@pytest.fixture
def x() -> Value:
    """Of shape [4, 6]."""
    return Builder(registry()).leaf(TensorType((4, 6), np.dtype("float64")), 0).sin()


def read(graph: Graph, of: Value) -> Shape:
    return read_extents(graph)[of.index]


def test_an_output_is_read_to_its_end(x: Value) -> None:
    assert read(x.builder.graph([x]), x) == (4, 6)


def test_a_slice_from_the_beginning_reads_as_much(x: Value) -> None:
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


def test_a_transpose_reads_as_much_of_the_axes_it_moved(x: Value) -> None:
    turned = x.transpose().slice(starts=(0, 0), stops=(5, 1))
    assert read(x.builder.graph([turned]), x) == (1, 5)


def test_three_axes_come_from_where_they_were() -> None:
    y = Builder(registry()).leaf(TensorType((2, 3, 5), np.dtype("float64")), 0).sin()
    turned = y.transpose(axes=(2, 0, 1)).slice(starts=(0, 0, 0), stops=(4, 1, 2))
    assert read(y.builder.graph([turned]), y) == (1, 2, 4)


def test_of_two_readers_each_axis_has_the_longer(x: Value) -> None:
    wide, high = x.slice(starts=(0, 0), stops=(1, 5)), x.slice(starts=(0, 0), stops=(3, 2))
    assert read(x.builder.graph([wide, high]), x) == (3, 5)


def test_whatever_computes_reads_everything(x: Value) -> None:
    assert read(x.builder.graph([x.cos().slice(starts=(0, 0), stops=(1, 1))]), x) == (4, 6)
    assert read(x.builder.graph([x.reshape(shape=(24,)).slice(starts=(0,), stops=(2,))]), x) == (4, 6)


def test_what_nobody_reads_is_read_nowhere(x: Value) -> None:
    unread = x.cos()
    assert read(x.builder.graph([x]), unread) == (0, 0)
