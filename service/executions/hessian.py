from __future__ import annotations

from engine import Call, Hessian
from service.calls.hessian import HessianCall
from service.executions.computing import CallArguments, Computing


class HessianExecution(Computing):
    """Whole Hessians."""

    description = HessianCall

    def call(self, arguments: CallArguments) -> Call:
        """The Hessian of `of`."""
        return Hessian.of_program(arguments.program, *arguments.get("of", "wrt", "outputs"))
