"""Call `hessian`: full Hessians."""

from __future__ import annotations

from schemas.calls.hessian import HessianAnswer, HessianRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide


class HessianCall(ComputingDescription):
    """Compute full Hessians

    Returns the second derivatives of `of` with respect to every pair of nodes in `wrt`. They are exact: the server does
    not use finite differences.
    """

    name = "hessian"
    position = 7
    request = HessianRequest
    answer = HessianAnswer
    scalar = True
    guide = Guide("∇²f, n × n", "at most 4 n", "Laplace approximation, Newton's method, small n")
    examples = {"Hessian of a mean of squares": MEAN}
