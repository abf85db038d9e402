"""The Jacobian times tangents."""

from __future__ import annotations

from schemas.calls.jvp import JvpAnswer, JvpRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide, feed


class JvpCall(ComputingDescription):
    """The Jacobian times tangents.

    How the outputs move when the leaves move along their tangents; exact, by forward mode.
    """

    name = "jvp"
    position = 4
    request = JvpRequest
    answer = JvpAnswer
    extra_roles = ("tangents",)
    guide = Guide("J · tangent", "2", "the effect of one change, of all inputs together")
    examples = {"how a mean of squares moves with w": MEAN | {"tangents": [feed([2], [1.0, 0.0])]}}
