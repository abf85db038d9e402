from __future__ import annotations

from engine import Call, Gradients, HostArray
from service.calls.gradients import GradientsCall
from service.errors import Refusal
from service.executions.computing import CallArguments, Computing
from service.wire.request import ParsedRequest
from service.wire.translate import read_array, unexpected_tensor


class GradientsExecution(Computing):
    """Values, and the gradients of one node."""

    description = GradientsCall

    def tensors_beside(self, request: ParsedRequest) -> dict[str, dict[int, HostArray]]:
        """The cotangent: in a field of its own, or beside the JSON as that of `of`."""
        cotangents = request.tensors("cotangents")
        if "cotangent" in request.fields:
            of = request.fields.get("of", len(request.program.statements) - 1)
            if of in cotangents:
                raise unexpected_tensor(f"cotangents.{of}", "its request has a cotangent, too")
            cotangents[of] = read_array(request.fields["cotangent"], request.reader.limits, ("cotangent",), None)
        return {"cotangents": cotangents}

    def call(self, arguments: CallArguments) -> Call:
        """The gradients of `of`."""
        call = Gradients.of_program(arguments.program, *arguments.get("of", "wrt", "outputs"))
        cotangents = dict(arguments.beside["cotangents"])
        for node in cotangents:
            if node != call.of:
                raise Refusal(
                    "bad_reference",
                    f"a cotangent is given for node {node}, but the node to differentiate is {call.of}",
                    expected=f"a cotangent of node {call.of}",
                    got=f"one of node {node}",
                )
        return Gradients(call.outputs, call.of, call.wrt, cotangents.get(call.of))
