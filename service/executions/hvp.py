from __future__ import annotations

from engine import HVP, Call
from service.calls.hvp import HvpCall
from service.executions.computing import CallArguments, Computing


class HvpExecution(Computing):
    """The Hessian times vectors."""

    description = HvpCall

    def call(self, arguments: CallArguments) -> Call:
        """The products with `vectors`."""
        return HVP.along(arguments.program, arguments.beside["vectors"], *arguments.get("of", "wrt", "outputs"))
