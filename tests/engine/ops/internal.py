"""What ops compute that the engine alone writes: with the builder itself, which no request can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine import Builder, Limits, TensorType, Value, open_executor, registry
from engine.graph.body import Body
from engine.passes.allowance import Allowance
from engine.planning.bodies import runnable
from engine.planning.plan import make_plan

EXECUTOR, LIMITS = open_executor("cpu"), Limits()
Array = np.ndarray[Any, Any]


def body_of(types: Sequence[TensorType], write: Callable[..., Sequence[Value]]) -> Body:
    """A body that is written by a function of its inputs."""
    builder = Builder(registry())
    return Body(builder.graph(write(*[builder.leaf(type, i) for i, type in enumerate(types)])), types)


def compute(arrays: Sequence[Any], write: Callable[..., Sequence[Value | None]]) -> list[Array]:
    """What is written on these operands, computed."""
    fed = {i: np.asarray(array) for i, array in enumerate(arrays)}
    builder = Builder(registry(), LIMITS)
    found = write(*[builder.leaf(TensorType.of(array), i) for i, array in fed.items()])
    graph = builder.graph([y for y in found if y is not None])
    return EXECUTOR.run(make_plan(runnable(graph, LIMITS, Allowance(LIMITS.flops)), LIMITS), fed)
