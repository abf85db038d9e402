"""The gradient as a graph."""

from __future__ import annotations

from schemas.calls.differentiate import DifferentiateAnswer, DifferentiateRequest
from service.api.calls.description import TYPED, CallDescription, Guide


class DifferentiateCall(CallDescription):
    """The gradient as a graph.

    The graph that was sent, under the same node ids, and behind it the nodes of its gradients: to be sent to
    `/v1/forward`, or to be differentiated again. Runs nothing.
    """

    name = "differentiate"
    position = 11
    tag = "analysis"
    request = DifferentiateRequest
    answer = DifferentiateAnswer
    roles = ("constants",)
    scalar = True
    guide = Guide("∇f as a graph", "nothing runs", "keeping, reading, differentiating it again")
    examples = {"a mean of squares": TYPED}
