"""Whole Jacobians."""

from __future__ import annotations

from engine import Call, Jacobian
from schemas.calls.jacobian import JacobianAnswer, JacobianRequest
from service.calls.computing import CallArguments, Computing
from service.calls.definition import Guide
from service.calls.sample import MEAN


class JacobianCall(Computing):
    """Whole Jacobians.

    A block for each output and each node in `wrt`. All rows, or all columns where these are fewer, in one execution.
    """

    name = "jacobian"
    position = 5
    request = JacobianRequest
    answer = JacobianAnswer
    guide = Guide("J, m × n", "1 + min(m, n)", "sensitivities, Gauss-Newton, error propagation")
    examples = {"of the squares by w": MEAN | {"outputs": [1]}}

    def call(self, arguments: CallArguments) -> Call:
        """The Jacobian of `outputs`."""
        return Jacobian.of_program(arguments.program, *arguments.get("wrt", "outputs"))
