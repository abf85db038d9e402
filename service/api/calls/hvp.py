"""Call `hvp`: Hessian-vector products."""

from __future__ import annotations

from schemas.calls.hvp import HvpAnswer, HvpRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide, feed


class HvpCall(ComputingDescription):
    """Compute Hessian-vector products

    Returns the derivative of the gradients of `of` along `vectors`. It is exact: the server does not use finite
    differences.
    """

    name = "hvp"
    position = 6
    request = HvpRequest
    answer = HvpAnswer
    extra_roles = ("vectors",)
    scalar = True
    guide = Guide("∇²f · v", "5", "Newton's method with conjugate gradients, curvature")
    examples = {"Hessian of a mean of squares times a vector": MEAN | {"vectors": [feed([2], [1.0, 0.0])]}}
