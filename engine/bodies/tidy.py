"""A body without `grad` nodes, and without what its results do not need: what is differentiated, batched and run."""

from __future__ import annotations

from engine.graph.body import Body
from engine.graph.ir import Graph
from engine.passes.allowance import Allowance
from engine.passes.pipeline import optimise
from engine.transforms.expand_grad import expand_grad


def tidy(body: Body) -> Body:
    """The body, its gradients written out. Raises EngineError for what they find wrong."""
    return body.made("tidy", lambda: _tidied(body))


def tidied(body: Body, graph: Graph) -> Graph:
    """A graph made of a body, within what that is allowed."""
    budget = body.budget
    return optimise(graph, Allowance(budget.limits.flops, budget.deadline))


def _tidied(body: Body) -> Body:
    budget = body.budget
    graph = tidied(body, expand_grad(body.graph, budget.limits, budget.deadline))
    found = body.derived(graph, body.inputs)
    found.made("tidy", lambda: found)
    return found
