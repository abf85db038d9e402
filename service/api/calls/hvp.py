"""The Hessian times vectors."""

from __future__ import annotations

from schemas.calls.hvp import HvpAnswer, HvpRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide, feed


class HvpCall(ComputingDescription):
    """The Hessian times vectors.

    The derivative of the gradients of `of` along `vectors`; exact, never by differences.
    """

    name = "hvp"
    position = 6
    request = HvpRequest
    answer = HvpAnswer
    extra_roles = ("vectors",)
    scalar = True
    guide = Guide("∇²f · v", "5", "Newton's method with conjugate gradients, curvature")
    examples = {"the Hessian of a mean of squares times a vector": MEAN | {"vectors": [feed([2], [1.0, 0.0])]}}
