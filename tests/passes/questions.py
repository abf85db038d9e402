"""Questions, on which passes are tested: a graph before any pass, and its feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import Builder, Graph, Program, TensorType, Value, registry
from engine.autodiff.vjp import expand_grad, vjp_or_zeros

Array = np.ndarray[Any, Any]
#: the feed of the seed of `of`
COTANGENT = "cotangent"


@dataclass(frozen=True)
class Question:
    """A graph, with its gradients expanded, and its feeds."""

    name: str
    graph: Graph
    feeds: Mapping[Any, Array]


def ask(
    name: str,
    program: Program,
    feeds: Mapping[int, Array],
    outputs: Sequence[int] = (),
    of: int | None = None,
    wrt: Sequence[int] = (),
    cotangent: Array | None = None,
) -> Question:
    """Ask for the values of `outputs` and `of`, and the gradients of sum(of · cotangent) with respect to `wrt`."""
    roots = (*outputs, *(() if of is None else (of,)), *wrt)
    needed = set(program.needed(roots))
    fed: dict[Any, Array] = {node: array for node, array in feeds.items() if node in needed}
    builder, values = program.build({i: TensorType.of(a) for i, a in fed.items()}, roots, wrt=wrt)
    expanded = expand_grad(builder.graph([values[i] for i in roots]))
    writing = Builder(registry(), nodes=list(expanded.nodes))
    placed = {i: writing.value(j) for i, j in zip(roots, expanded.outputs, strict=True)}
    results = [placed[i] for i in outputs]
    if of is not None:
        y = placed[of]
        seed = y.full_like(1.0) if cotangent is None else writing.leaf(TensorType.of(cotangent), COTANGENT)
        results += [y, *vjp_or_zeros(writing, [(y, seed)], [placed[i] for i in wrt])]
    return Question(name, writing.graph(results), fed if cotangent is None else {**fed, COTANGENT: cotangent})


def with_gradients(builder: Builder, outputs: Sequence[Value], operands: Sequence[Value]) -> Graph:
    """The outputs, and the gradients of Σ sum(output · weight) with respect to the float operands."""
    rng = np.random.default_rng(2)
    floats = [y for y in outputs if y.type.is_differentiable]
    seeds = [(y, builder.constant(rng.uniform(0.5, 1.5, y.shape).astype(y.dtype))) for y in floats]
    return builder.graph([*outputs, *vjp_or_zeros(builder, seeds, [x for x in operands if x.type.is_differentiable])])


def float64(array: Array) -> Array:
    """Floats as float64; other arrays unchanged."""
    return array.astype("float64") if array.dtype.kind == "f" else array
