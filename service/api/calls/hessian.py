"""Whole Hessians."""

from __future__ import annotations

from schemas.calls.hessian import HessianAnswer, HessianRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide


class HessianCall(ComputingDescription):
    """Whole Hessians.

    The second derivatives of `of` by every pair of nodes in `wrt`; exact, never by differences.
    """

    name = "hessian"
    position = 7
    request = HessianRequest
    answer = HessianAnswer
    scalar = True
    guide = Guide("∇²f, n × n", "at most 4 n", "Laplace's approximation, Newton's method, small n")
    examples = {"of a mean of squares": MEAN}
