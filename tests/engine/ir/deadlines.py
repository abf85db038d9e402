"""A graph, and a deadline that has passed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, Deadline, DeadlineExceeded, Graph, TensorType, registry


def chain() -> Graph:
    """Some nodes, the first of which nobody needs."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((2,), np.dtype("float64")), 0)
    x.sin()
    return builder.graph([x.cos().cos()])


def assert_stops(apply: Callable[[Graph, Deadline], object]) -> None:
    """A pass does not begin where nobody waits any more."""
    with pytest.raises(DeadlineExceeded, match="nobody waits"):
        apply(chain(), Deadline(60, stop=b"\1"))
