"""Call `jvp`: Jacobian-vector products."""

from __future__ import annotations

from schemas.calls.jvp import JvpAnswer, JvpRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide, feed


class JvpCall(ComputingDescription):
    """Compute Jacobian-vector products

    Returns the derivatives of the outputs along the tangents of the leaves. They are exact, by forward-mode
    differentiation.
    """

    name = "jvp"
    position = 4
    request = JvpRequest
    answer = JvpAnswer
    extra_roles = ("tangents",)
    guide = Guide("J · tangent", "2", "the effect of changing all inputs along one direction")
    examples = {"derivative of a mean of squares along a direction": MEAN | {"tangents": [feed([2], [1.0, 0.0])]}}
