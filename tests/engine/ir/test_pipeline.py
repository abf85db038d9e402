"""The pass pipeline: order, disabling by name, and timings."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, Graph, TensorType, registry
from engine.ir.passes import PASSES, optimise, run_passes, switched


@pytest.fixture
def graph() -> Graph:
    """A graph of x · 1, twice, with a constant to fold."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((2,), np.dtype("float64")), 0)
    one = builder.full((2,), 4.0, x.dtype).sqrt() - 1.0
    return builder.graph([(x * one).sin() + (x * one).sin()])


def test_each_pass_enables_the_next(graph: Graph) -> None:
    """Folding finds that a factor is 1, simplification drops it, and equal nodes are then merged."""
    assert [node.op.name for node in optimise(graph).nodes] == ["input", "sin", "add"]


def test_disabled_pass_does_not_run(graph: Graph) -> None:
    assert [p.__name__ for p in switched(["fold", "dce"])] == ["simplify", "cse"]
    names = [node.op.name for node in optimise(graph, off=["fold"]).nodes]
    assert {"mul", "sqrt"} <= set(names)


def test_unknown_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no pass called fuse, fuss"):
        switched(["cse", "fuss", "fuse"])


def test_timings_list_passes_and_remaining_nodes(graph: Graph) -> None:
    small, timings = run_passes(graph)
    assert [t.name for t in timings] == [p.__name__ for p in PASSES]
    assert timings[-1].nodes == len(small.nodes)
    assert all(t.seconds >= 0 for t in timings)
