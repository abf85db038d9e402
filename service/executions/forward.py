"""Executions of the calls that evaluate or differentiate a graph: one call of the engine each."""

from __future__ import annotations

from engine import Call, Values
from service.calls.forward import ForwardCall
from service.executions.computing import CallArguments, Computing


class ForwardExecution(Computing):
    """Values of nodes."""

    description = ForwardCall

    def call(self, arguments: CallArguments) -> Call:
        """The values of `outputs`."""
        return Values.of_program(arguments.program, *arguments.get("outputs"))
