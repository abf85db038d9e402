"""Bodies: functions that ops run, and the transforms of these: tidy, narrow, batch, differentiate.

Every transform begins with a tidy body: its `grad` nodes are written out, and what its results do not need is gone.
What is made of a body is kept with it (`Body.made`), so that each is made once.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.bodies.compare import compared_as_floats
from engine.graph.body import Body
from engine.graph.ir import Graph
from engine.graph.tensor_type import TensorType
from engine.passes.allowance import Allowance
from engine.passes.pipeline import optimise
from engine.transforms.expand_grad import expand_grad


def tidy(body: Body) -> Body:
    """The body, its gradients written out. Raises EngineError for what they find wrong."""
    limits, deadline = body.budget.limits, body.budget.deadline
    return body.made(
        "tidy",
        lambda: derived(body, compared_as_floats(expand_grad(body.graph, limits, deadline)), body.inputs),
    )


def derived(body: Body, graph: Graph, inputs: Sequence[TensorType]) -> Body:
    """A tidy body that is made of another one, within what that may have. Raises TooManyNodes, DeadlineExceeded."""
    budget = body.budget
    allowance = Allowance(budget.limits.flops, budget.deadline, stops_stay=True)
    tidied = body.derived(optimise(graph, allowance), inputs)
    tidied.made("tidy", lambda: tidied)
    return tidied
