"""Values of a builder and their arrays: helpers for tests of derivative rules and decompositions."""

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
    """Return the values that `write` builds from the arrays, and the arrays they evaluate to."""
    builder = Builder(registry())
    result = write(*(builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)))
    values = [result] if isinstance(result, Value) else list(result)
    return values, run_graph(builder.graph(values), dict(enumerate(arrays)))


def results_of(write: Callable[..., Sequence[Value]], *arrays: Array) -> list[Array]:
    """Evaluate several values."""
    return written(write, *arrays)[1]


def come_to(write: Callable[..., Value], *arrays: Array) -> Array:
    """Evaluate one value."""
    return written(write, *arrays)[1][0]


def body_of(types: Sequence[TensorType], write: Callable[..., Sequence[Value]]) -> Body:
    """Return the body that a function of its inputs builds."""
    builder = Builder(registry())
    return Body(builder.graph(write(*[builder.leaf(type, i) for i, type in enumerate(types)])), types)


def allocated(work: Callable[[], object]) -> int:
    """Return the peak number of bytes that NumPy allocates during the work; a first run does not count."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
