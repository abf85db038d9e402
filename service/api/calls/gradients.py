"""Values, and the gradients of one node."""

from __future__ import annotations

from schemas.calls.gradients import GradientsAnswer, GradientsRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide


class GradientsCall(ComputingDescription):
    """Values and gradients.

    Runs the graph forward, and backward from `of` to every node in `wrt`. The answer has the values of `outputs`
    and the gradients, by node id, in the order of the request.
    """

    name = "gradients"
    position = 1
    request = GradientsRequest
    answer = GradientsAnswer
    extra_roles = ("cotangents",)
    extra_fields = ("cotangent",)
    scalar = True
    guide = Guide("∇f, where m = 1", "2 to 3", "training, maximum likelihood, controls")
    examples = {
        "the gradient of a mean of squares": MEAN,
        "an inner node, with a cotangent": MEAN
        | {
            "of": 1,
            "wrt": [0],
            "outputs": [1, 2],
            "cotangent": {"dtype": "float64", "shape": [2], "data": [1.0, 0.5]},
            "encoding": "base64",
        },
    }
