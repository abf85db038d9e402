"""Call `differentiate`: the gradient as a graph."""

from __future__ import annotations

from schemas.calls.differentiate import DifferentiateAnswer, DifferentiateRequest
from service.api.calls.description import TYPED, CallDescription, Guide


class DifferentiateCall(CallDescription):
    """Get the gradient as a graph

    Returns the graph of the request with the same node ids, followed by the nodes of its gradients. You can send the
    result to `/v1/forward` or differentiate it again. The graph is not run.
    """

    name = "differentiate"
    position = 11
    tag = "analysis"
    request = DifferentiateRequest
    answer = DifferentiateAnswer
    roles = ("constants",)
    scalar = True
    guide = Guide("∇f as a graph", "no execution", "saving, inspecting or differentiating ∇f again")
    examples = {"mean of squares": TYPED}
