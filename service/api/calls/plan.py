"""Dry run of a request: shapes, FLOPs and memory."""

from __future__ import annotations

from schemas.calls.plan import PlanAnswer, PlanRequest
from service.api.calls.description import TYPED, CallDescription, Guide


class PlanCall(CallDescription):
    """What a request would take.

    Shapes, FLOPs and peak bytes of the values and gradients of a graph, from the types of its leaves. Runs nothing.
    """

    name = "plan"
    position = 9
    tag = "analysis"
    request = PlanRequest
    answer = PlanAnswer
    roles = ("constants",)
    scalar = True
    guide = Guide("shapes, FLOPs, memory", "nothing runs", "asking before sending")
    examples = {"a mean of squares and its gradient": TYPED}
