"""A gradient before and after each pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

import numpy as np

from engine import Builder, Graph, TensorType, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.ir.passes import PASSES
from scripts.drawings.drawn import Drawn, of_nodes

FOLDER: Final = "drawings/passes"
NAMES: Final = {0: "x", 1: "w"}
_TYPE: Final = TensorType((3,), np.dtype("float64"))


@cache
def passes() -> Mapping[str, Drawn]:
    """Return the drawings by name: `written`, then each pass. A pass that runs twice is drawn after its last run."""
    return {name: Drawn(f"{FOLDER}/{name}", title, of_nodes(graph, NAMES)) for name, title, graph in _graphs()}


def _graphs() -> Iterator[tuple[str, str, Graph]]:
    graph = _gradient()
    yield "written", "the gradient as its rules write it", graph
    for turn, apply in enumerate(PASSES):
        graph = apply(graph)
        suffix = "_again" if apply in PASSES[:turn] else ""
        yield f"{apply.__name__}{suffix}", f"the same after {apply.__name__}{suffix.replace('_', ' ')}", graph


def _gradient() -> Graph:
    """Return the mean of tanh(x · w)² · tanh(w · x) and its gradient with respect to w.

    The loss has common subexpressions for the passes to merge.
    """
    builder = Builder(registry())
    x, w = (builder.leaf(_TYPE, i) for i in NAMES)
    loss = ((x * w).tanh().square() * (w * x).tanh()).mean()
    (gradient,) = vjp_or_zeros(builder, [(loss, loss.full_like(1.0))], [w])
    return builder.graph([loss, gradient])
