"""Call `gradients`: values, and the gradients of one node."""

from __future__ import annotations

from schemas.calls.gradients import GradientsAnswer, GradientsRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide


class GradientsCall(ComputingDescription):
    """Compute values and gradients

    Runs the forward pass, and the backward pass from `of` to every node in `wrt`. Returns the values of `outputs` and
    the gradients by node id, in the order of the request.
    """

    name = "gradients"
    position = 1
    request = GradientsRequest
    answer = GradientsAnswer
    extra_roles = ("cotangents",)
    extra_fields = ("cotangent",)
    scalar = True
    guide = Guide("∇f, if m = 1", "2 to 3", "training, maximum likelihood, optimal control")
    examples = {
        "gradient of a mean of squares": MEAN,
        "gradient of an inner node, with a cotangent": MEAN
        | {
            "of": 1,
            "wrt": [0],
            "outputs": [1, 2],
            "cotangent": {"dtype": "float64", "shape": [2], "data": [1.0, 0.5]},
            "encoding": "base64",
        },
    }
