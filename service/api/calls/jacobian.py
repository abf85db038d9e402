"""Call `jacobian`: full Jacobians."""

from __future__ import annotations

from schemas.calls.jacobian import JacobianAnswer, JacobianRequest
from service.api.calls.description import MEAN, ComputingDescription, Guide


class JacobianCall(ComputingDescription):
    """Compute full Jacobians

    Returns a block for each output and each node in `wrt`. The server computes the rows, or the columns if there are
    fewer columns, in pieces that fit into its memory.
    """

    name = "jacobian"
    position = 5
    request = JacobianRequest
    answer = JacobianAnswer
    guide = Guide("J, m × n", "1 + min(m, n)", "sensitivities, Gauss-Newton, error propagation")
    examples = {"Jacobian of the squares with respect to w": MEAN | {"outputs": [1]}}
