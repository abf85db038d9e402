"""Values of a builder and what they come to, for tests of what rules are written with."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine import Builder, TensorType, registry
from engine.ir.graph import Value
from engine.ir.program import Body
from tests.contract.cases import run_graph

Array = np.ndarray[Any, Any]


def written(write: Callable[..., Value | Sequence[Value]], *arrays: Array) -> tuple[list[Value], list[Array]]:
    """What `write` makes of the arrays as values, and what these come to."""
    builder = Builder(registry())
    made = write(*(builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)))
    values = [made] if isinstance(made, Value) else list(made)
    return values, run_graph(builder.graph(values), dict(enumerate(arrays)))


def results_of(write: Callable[..., Sequence[Value]], *arrays: Array) -> list[Array]:
    """What several values come to."""
    return written(write, *arrays)[1]


def come_to(write: Callable[..., Value], *arrays: Array) -> Array:
    """What one value comes to."""
    return written(write, *arrays)[1][0]


def body_of(types: Sequence[TensorType], write: Callable[..., Sequence[Value]]) -> Body:
    """A body that is written by a function of its inputs."""
    builder = Builder(registry())
    return Body(builder.graph(write(*[builder.leaf(type, i) for i, type in enumerate(types)])), types)


def allocated(work: Callable[[], object]) -> int:
    """Bytes of memory that NumPy takes for it at most, at one time; not for what its first run leaves behind."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
