"""Reverse mode of a body: a body of its operands and of cotangents of its results."""

from __future__ import annotations

from typing import NamedTuple

from engine.bodies.tidy import derived, tidy
from engine.graph.body import Body
from engine.graph.ir import Node
from engine.transforms.vjp import vjp


class BodyBack(NamedTuple):
    """A body of the operands, then of the cotangents of some results; it gives those of the operands `reached`."""

    body: Body
    reached: tuple[int, ...]

    @property
    def used_inputs(self) -> frozenset[int]:
        """Which of its inputs anything depends on."""
        return frozenset(int(feed) for feed in self.body.graph.feeds)  # type: ignore[call-overload]


def way_back(body: Body, given: tuple[int, ...]) -> BodyBack:
    """Differentiate a body for cotangents of the results `given`. It computes the way there again, as far as needed."""
    return body.made(("way back", given), lambda: _written(body, given))


def _written(body: Body, given: tuple[int, ...]) -> BodyBack:
    source = tidy(body)
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
    results = source.inline_into(builder, leaves)
    seeds = [(results[k], builder.leaf(results[k].type, len(leaves) + p)) for p, k in enumerate(given)]
    floats = [i for i, type in enumerate(body.inputs) if type.is_differentiable]
    gradients = zip(floats, vjp(builder, seeds, [leaves[i] for i in floats]), strict=True)
    reached = {i: g for i, g in gradients if g is not None}
    graph = builder.graph(list(reached.values()))
    types = [*body.inputs, *(seed.type for _, seed in seeds)]
    return BodyBack(derived(body, graph, types), tuple(reached))


def paths(body: Body) -> tuple[frozenset[int], ...]:
    """Return, for each result, the inputs that it may depend on differentiably."""
    return body.made("paths", lambda: _paths(tidy(body)))


def _paths(body: Body) -> tuple[frozenset[int], ...]:
    reach: list[frozenset[int]] = []
    for node in body.graph.nodes:
        reach.append(_reach(node, reach))
    return tuple([reach[i] for i in body.graph.outputs])


def _reach(node: Node, reach: list[frozenset[int]]) -> frozenset[int]:
    if not any(type.is_differentiable for type in node.types):
        return frozenset()
    if node.is_leaf:
        return frozenset([int(node.attrs["feed"])])
    if not node.op.is_differentiable:
        return frozenset()
    return frozenset().union(*[reach[i] for i in node.operands])
