from __future__ import annotations

from engine import Call, Jacobian
from service.calls.jacobian import JacobianCall
from service.executions.computing import CallArguments, Computing


class JacobianExecution(Computing):
    """Whole Jacobians."""

    description = JacobianCall

    def call(self, arguments: CallArguments) -> Call:
        """The Jacobian of `outputs`."""
        return Jacobian.of_program(arguments.program, *arguments.get("wrt", "outputs"))
