"""A graph, and a deadline that has passed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, Deadline, DeadlineExceeded, Graph, TensorType, registry


def chain() -> Graph:
    """A chain of nodes, and one that no output needs."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((2,), np.dtype("float64")), 0)
    x.sin()
    return builder.graph([x.cos().cos()])


def assert_stops(apply: Callable[[Graph, Deadline], object]) -> None:
    """Assert that a pass stops at once if the client is gone."""
    with pytest.raises(DeadlineExceeded, match="no longer waits"):
        apply(chain(), Deadline(60, stop=b"\1"))
