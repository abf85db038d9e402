"""Call `check`: a gradient check."""

from __future__ import annotations

from schemas.calls.check import CheckAnswer, CheckRequest
from service.api.calls.description import MEAN, CallDescription, Guide


class CheckCall(CallDescription):
    """Check gradients against finite differences

    Compares gradients with central differences in float64, along random directions. The response lists the nodes that
    could not be compared, with the reason.
    """

    name = "check"
    position = 10
    tag = "analysis"
    request = CheckRequest
    answer = CheckAnswer
    scalar = True
    guide = Guide("gradients versus finite differences", "6 per direction", "validating a new graph")
    examples = {"gradient of a mean of squares": MEAN}
