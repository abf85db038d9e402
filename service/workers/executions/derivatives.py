"""Executions of the calls that evaluate or differentiate a graph: each makes one call of the engine."""

from __future__ import annotations

from dataclasses import replace

from engine import HVP, JVP, VJP, Call, Gradients, Hessian, HostArray, Jacobian, Values
from service.api.calls.forward import ForwardCall
from service.api.calls.gradients import GradientsCall
from service.api.calls.hessian import HessianCall
from service.api.calls.hvp import HvpCall
from service.api.calls.jacobian import JacobianCall
from service.api.calls.jvp import JvpCall
from service.api.calls.vjp import VjpCall
from service.api.graphs import read_array, unexpected_tensor
from service.api.request import ParsedRequest
from service.core.errors import Refusal
from service.workers.executions.computing import CallArguments, Computing


class ForwardExecution(Computing):
    """Values of nodes."""

    description = ForwardCall

    def call(self, arguments: CallArguments) -> Call:
        """Return the values of `outputs`."""
        return Values.of_program(arguments.program, *arguments.get("outputs"))


class GradientsExecution(Computing):
    """Values, and the gradients of one node."""

    description = GradientsCall

    def read_other_tensors(self, request: ParsedRequest) -> dict[str, dict[int, HostArray]]:
        """Read the cotangent from its own field, or beside the JSON under the node `of`."""
        cotangents = request.tensors("cotangents")
        if "cotangent" in request.fields:
            of = request.fields.get("of", len(request.program.statements) - 1)
            if of in cotangents:
                raise unexpected_tensor(f"cotangents.{of}", "its JSON request also has a cotangent")
            cotangents[of] = read_array(request.fields["cotangent"], request.reader.limits, ("cotangent",), None)
        return {"cotangents": cotangents}

    def call(self, arguments: CallArguments) -> Call:
        """Return the gradients of `of`."""
        call = Gradients.of_program(arguments.program, *arguments.get("of", "wrt", "outputs"))
        cotangents = dict(arguments.other_types["cotangents"])
        for node in cotangents:
            if node != call.of:
                detail = f"a cotangent is given for node {node}, but the node to differentiate is {call.of}"
                expected, received = f"a cotangent of node {call.of}", f"a cotangent of node {node}"
                raise Refusal("bad_reference", detail, expected=expected, got=received)
        return Gradients(call.outputs, call.of, call.wrt, cotangents.get(call.of), takes_cotangent=True)


class VjpExecution(Computing):
    """Products of cotangents and the Jacobian."""

    description = VjpCall

    def call(self, arguments: CallArguments) -> Call:
        """Return the products of `cotangents`."""
        wrt, outputs, batched = arguments.get("wrt", "outputs", "batched")
        return VJP.of_program(arguments.program, arguments.other_types["cotangents"], wrt, outputs, bool(batched))


class JvpExecution(Computing):
    """Products of the Jacobian and tangents."""

    description = JvpCall

    def call(self, arguments: CallArguments) -> Call:
        """Return the products with `tangents`."""
        return JVP.of_program(arguments.program, arguments.other_types["tangents"], *arguments.get("outputs"))


class HvpExecution(Computing):
    """Products of the Hessian and vectors."""

    description = HvpCall

    def call(self, arguments: CallArguments) -> Call:
        """Return the products with `vectors`."""
        return HVP.along(arguments.program, arguments.other_types["vectors"], *arguments.get("of", "wrt", "outputs"))


class JacobianExecution(Computing):
    """Full Jacobians."""

    description = JacobianCall

    def call(self, arguments: CallArguments) -> Call:
        """Return the Jacobian of `outputs`."""
        return Jacobian.of_program(arguments.program, *arguments.get("wrt", "outputs"))


class HessianExecution(Computing):
    """Full Hessians."""

    description = HessianCall

    def call(self, arguments: CallArguments) -> Call:
        """Return the Hessian of `of`."""
        call = Hessian.of_program(arguments.program, *arguments.get("of", "wrt", "outputs"))
        return replace(call, is_matrix=arguments.get("layout") == ["matrix"])
