"""Call `vjp`: vector-Jacobian products."""

from __future__ import annotations

from schemas.calls.gradients import GradientsAnswer
from schemas.calls.vjp import VjpRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide, feed


class VjpCall(ComputingDescription):
    """Compute vector-Jacobian products

    Returns the gradients of the sum of all outputs, each multiplied by its cotangent. With `batched`, it does this for
    K sets of cotangents at once.
    """

    name = "vjp"
    position = 3
    request = VjpRequest
    answer = GradientsAnswer
    extra_roles = ("cotangents",)
    guide = Guide("cotangent · J, once or K times", "2 to 3, or 1 + K", "the adjoint method, a few rows of J")
    examples = {
        "weighted sum of the rows of a Jacobian": MEAN | {"outputs": [1], "cotangents": [feed([2], [1.0, 0.5], 1)]},
        "three weighted sums at once": MEAN
        | {"outputs": [1], "batched": True, "cotangents": [feed([3, 2], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 1)]},
    }
