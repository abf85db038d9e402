"""Whole Jacobians."""

from __future__ import annotations

from schemas.calls.jacobian import JacobianAnswer, JacobianRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide


class JacobianCall(ComputingDescription):
    """Whole Jacobians.

    A block for each output and each node in `wrt`. All rows, or all columns where these are fewer, in one execution.
    """

    name = "jacobian"
    position = 5
    request = JacobianRequest
    answer = JacobianAnswer
    guide = Guide("J, m × n", "1 + min(m, n)", "sensitivities, Gauss-Newton, error propagation")
    examples = {"of the squares by w": MEAN | {"outputs": [1]}}
