from __future__ import annotations

from engine import VJP, Call
from service.calls.vjp import VjpCall
from service.executions.computing import CallArguments, Computing


class VjpExecution(Computing):
    """Cotangents times the Jacobian."""

    description = VjpCall

    def call(self, arguments: CallArguments) -> Call:
        """The products of `cotangents`."""
        wrt, outputs, batched = arguments.get("wrt", "outputs", "batched")
        return VJP.of_program(arguments.program, arguments.beside["cotangents"], wrt, outputs, bool(batched))
