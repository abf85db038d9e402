"""Values of nodes."""

from __future__ import annotations

from schemas.calls.forward import ForwardAnswer, ForwardRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide


class ForwardCall(ComputingDescription):
    """Values.

    Runs the graph forward. The answer has the values of `outputs`, by node id, in the order of the request.
    """

    name = "forward"
    position = 2
    request = ForwardRequest
    answer = ForwardAnswer
    differentiates = False
    guide = Guide("f(x)", "1", "predictions, line searches", page="gradients.md#values-alone")
    examples = {"a mean of squares": MEAN}
