"""Ops that run functions without the results that nobody reads, nor what these alone need.

A rule of derivatives writes the cotangents of all operands at once. Without this, what nobody asked for would be run,
and forward mode would read the cotangents that it only pretends to have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from engine.bodies.tidy import tidy
from engine.graph.body import Body
from engine.graph.ir import Graph
from engine.passes.dce import dce


def inputs_of(body: Body, results: Iterable[int]) -> frozenset[int]:
    """The inputs that these results depend on."""
    asked = tuple(sorted(results))
    return body.made(("needed", asked), lambda: frozenset(map(int, _of(body, asked).feeds)))  # type: ignore[arg-type]


def narrow(body: Body, results: Sequence[int], inputs: Sequence[int]) -> Body:
    """The body of these inputs, among which all are that these results, the only ones, need."""
    if len(results) == len(body.outputs) and len(inputs) == len(body.inputs):
        return body
    return body.made(("narrow", tuple(results), tuple(inputs)), lambda: _narrowed(body, tuple(results), inputs))


def step_needs(
    body: Body, consts: int, carries: int, read: Iterable[int], also: Set[int] = frozenset()
) -> tuple[list[int], list[int]]:
    """Return the results of a step that are needed for those read after a loop, and the inputs that these need.

    `also` are inputs that something else reads at each step.
    """
    results = set(read)
    inputs = set(also)
    # A carry that a step reads is a result of the step before, which needs inputs of its own: until none is new.
    while True:
        results |= {i - consts for i in inputs if consts <= i < consts + carries}
        more = inputs_of(body, results) | {consts + k for k in results if k < carries}
        if more <= inputs:
            return sorted(results), sorted(inputs)
        inputs |= more


def _of(body: Body, results: tuple[int, ...]) -> Graph:
    graph = tidy(body).graph
    return dce(graph.rewritten(graph.nodes, [graph.outputs[k] for k in results]))


def _narrowed(body: Body, results: tuple[int, ...], inputs: Sequence[int]) -> Body:
    graph, places = _of(body, results), {i: place for place, i in enumerate(inputs)}
    nodes = [
        node._replace(attrs={"feed": places[node.attrs["feed"]]}) if node.is_leaf else node for node in graph.nodes
    ]
    narrowed = body.derived(graph.rewritten(nodes, graph.outputs), [body.inputs[i] for i in inputs])
    narrowed.made("tidy", lambda: narrowed)
    return narrowed
