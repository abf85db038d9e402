"""Batching of a body: on N examples at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.bodies.tidy import derived, tidy
from engine.graph.body import Body
from engine.transforms.vmap import vmap


class BatchedBody(NamedTuple):
    """A body of operands of which some have a leading axis N, and which of its results have one."""

    body: Body
    mapped: tuple[bool, ...]


def batched(body: Body, mapped: Sequence[bool], size: int, wanted: Sequence[bool] | None = None) -> BatchedBody:
    """The body where the `mapped` inputs have a leading axis of extent `size`, and so every result that depends on one.

    Those that are `wanted` have it in any case; None: all have.
    """
    wanted = tuple(wanted) if wanted is not None else (True,) * len(body.graph.outputs)
    asked = tuple(mapped), size, wanted
    return body.made(("batched", *asked), lambda: _batched(body, *asked))


def _batched(body: Body, mapped: tuple[bool, ...], size: int, wanted: tuple[bool, ...]) -> BatchedBody:
    source, budget = tidy(body), body.budget
    has_axis = tuple([w or depends for w, depends in zip(wanted, _dependent(source, mapped), strict=True)])
    feeds = {i for i, m in enumerate(mapped) if m}
    graph = vmap(source.graph, feeds, size, budget.limits, budget.deadline, has_axis)
    types = [t.with_shape((size, *t.shape)) if m else t for t, m in zip(body.inputs, mapped, strict=True)]
    return BatchedBody(derived(body, graph, types), has_axis)


def _dependent(body: Body, mapped: Sequence[bool]) -> list[bool]:
    """Which results depend on a mapped input."""
    reached: list[bool] = []
    for node in body.graph.nodes:
        reached.append(mapped[node.attrs["feed"]] if node.is_leaf else any(reached[i] for i in node.operands))
    return [reached[i] for i in body.graph.outputs]
