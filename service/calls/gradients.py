"""Values, and the gradients of one node."""

from __future__ import annotations

from engine import Call, Gradients, HostArray
from schemas.calls.gradients import GradientsAnswer, GradientsRequest
from service.calls.computing import CallArguments, Computing
from service.calls.definition import Guide
from service.calls.sample import MEAN
from service.errors import Refusal
from service.wire.request import ParsedRequest
from service.wire.translate import read_array, unexpected_tensor


class GradientsCall(Computing):
    """Values and gradients.

    Runs the graph forward, and backward from `of` to every node in `wrt`. The answer has the values of `outputs`
    and the gradients, by node id, in the order of the request.
    """

    name = "gradients"
    position = 1
    request = GradientsRequest
    answer = GradientsAnswer
    beside = ("cotangents",)
    single = ("cotangent",)
    scalar = True
    guide = Guide("∇f, where m = 1", "2 to 3", "training, maximum likelihood, controls")
    examples = {
        "the gradient of a mean of squares": MEAN,
        "an inner node, with a cotangent": MEAN
        | {
            "of": 1,
            "wrt": [0],
            "outputs": [1, 2],
            "cotangent": {"dtype": "float64", "shape": [2], "data": [1.0, 0.5]},
            "encoding": "base64",
        },
    }

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
