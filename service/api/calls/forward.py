"""Call `forward`: values of nodes."""

from __future__ import annotations

from schemas.calls.forward import ForwardAnswer, ForwardRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide


class ForwardCall(ComputingDescription):
    """Compute values

    Runs the forward pass. Returns the values of `outputs` by node id, in the order of the request.
    """

    name = "forward"
    position = 2
    request = ForwardRequest
    answer = ForwardAnswer
    differentiates = False
    guide = Guide("f(x)", "1", "predictions, line searches", page="gradients.md#values-alone")
    examples = {"mean of squares": MEAN}
