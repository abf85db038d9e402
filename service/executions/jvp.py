from __future__ import annotations

from engine import JVP, Call
from service.calls.jvp import JvpCall
from service.executions.computing import CallArguments, Computing


class JvpExecution(Computing):
    """The Jacobian times tangents."""

    description = JvpCall

    def call(self, arguments: CallArguments) -> Call:
        """The products with `tangents`."""
        return JVP.of_program(arguments.program, arguments.beside["tangents"], *arguments.get("outputs"))
