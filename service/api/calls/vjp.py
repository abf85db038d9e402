"""Cotangents times the Jacobian."""

from __future__ import annotations

from schemas.calls.gradients import GradientsAnswer
from schemas.calls.vjp import VjpRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide, feed


class VjpCall(ComputingDescription):
    """Cotangents times the Jacobian.

    The gradients of the sum of every output times its cotangent; with `batched`, for K cotangents at once.
    """

    name = "vjp"
    position = 3
    request = VjpRequest
    answer = GradientsAnswer
    extra_roles = ("cotangents",)
    guide = Guide("cotangent · J, once or K times", "2 to 3, or 1 + K", "adjoints of some of many outputs")
    examples = {
        "a weighted sum of the rows of a Jacobian": MEAN | {"outputs": [1], "cotangents": [feed([2], [1.0, 0.5], 1)]},
        "three of them at once": MEAN
        | {"outputs": [1], "batched": True, "cotangents": [feed([3, 2], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 1)]},
    }
