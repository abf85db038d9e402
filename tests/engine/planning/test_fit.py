"""Fused plans within the memory of those whose places they take."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.planning.fit import compiled_within
from engine.planning.fused import Fused
from engine.planning.plan import make_plan

NOTHING = 0


def leaf(size: int) -> Value:
    return Builder(registry()).leaf(TensorType((size,), np.dtype("float32")), 0)


@pytest.mark.parametrize("views", [0, 1, 5])
def test_what_fits_nowhere_is_given_up(views: int) -> None:
    """Also where nodes come after the last one that takes memory: views of it, which take none."""
    y = leaf(1 << 12).exp() * 2.0
    for i in range(views):
        y = y.reshape(shape=(1 << (i + 1), (1 << 12) >> (i + 1)))
    assert compiled_within(y.builder.graph([y]), NOTHING, 1) is None


def test_what_fits_is_fused() -> None:
    y = (leaf(1 << 12).exp() * 2.0).sin()
    graph = y.builder.graph([y])
    found = compiled_within(graph, make_plan(graph, Limits()).peak_bytes, 1)
    assert found is not None
    assert sum(isinstance(step.op, Fused) for step in found.steps) == 1
