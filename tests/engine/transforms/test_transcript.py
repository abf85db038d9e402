"""Sums of cotangents, as they are foreseen: of the type of the result at which these arrive."""

from __future__ import annotations

import numpy as np

from engine import Builder, TensorType, registry
from engine.graph.limits import NO_DEADLINE, NO_LIMITS
from engine.transforms.sketch import Sketch
from engine.transforms.vjp import vjp
from tests.engine.transforms.sketched import assert_alike, indices


def test_sums_at_the_last_of_three_results() -> None:
    """Two of them, of two ops: of other types than the first results and than each other."""
    builder = Builder(registry(), NO_LIMITS)
    x = builder.leaf(TensorType((6,), np.dtype("float64")), "x")
    first, second = x.exp().split(sizes=(1, 2, 3), axis=0), x.sin().split(sizes=(3, 2, 1), axis=0)
    y = first.output(2) * first.output(2) * second.output(2) * second.output(2)
    sketch = Sketch(registry(), NO_LIMITS, NO_DEADLINE, builder.nodes)
    found = vjp(builder, [(y, builder.leaf(y.type, "seed"))], [x])
    assert sketch.vjp([(y.index, sketch.leaf(y.index))], [x.index]) == indices(found)
    assert_alike(sketch, builder)
