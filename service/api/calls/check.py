"""A certificate for gradients."""

from __future__ import annotations

from schemas.calls.check import CheckAnswer, CheckRequest
from service.api.calls.description import MEAN, CallDescription, Guide


class CheckCall(CallDescription):
    """A certificate for gradients.

    Compares them with central differences, in float64, along random directions; and says which nodes could not be
    compared, and why.
    """

    name = "check"
    position = 10
    tag = "analysis"
    request = CheckRequest
    answer = CheckAnswer
    scalar = True
    guide = Guide("gradients against differences", "6 for each direction", "a graph that is new")
    examples = {"the gradient of a mean of squares": MEAN}
