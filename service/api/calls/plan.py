"""Call `plan`: dry run of a request."""

from __future__ import annotations

from schemas.calls.plan import PlanAnswer, PlanRequest
from service.api.calls.description import TYPED, CallDescription, Guide


class PlanCall(CallDescription):
    """Estimate shapes, FLOPs and peak memory

    This is a dry run: the server plans a call from the types of the leaves, and does not run the graph.
    """

    name = "plan"
    position = 9
    tag = "analysis"
    request = PlanRequest
    answer = PlanAnswer
    roles = ("constants",)
    scalar = True
    guide = Guide("shapes, FLOPs, peak memory", "no execution", "checking the cost before sending tensors")
    examples = {"mean of squares and its gradient": TYPED}
