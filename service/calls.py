"""The computing calls: the request that each takes, and the engine's call that it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine import HVP, JVP, VJP, Batch, Call, Gradients, Hessian, Jacobian, Program, TensorType, Values
from schemas import (
    BatchRequest,
    ForwardRequest,
    GradientsRequest,
    HessianRequest,
    HvpRequest,
    JacobianRequest,
    JvpRequest,
    PlanRequest,
    VjpRequest,
)
from service.errors import Refusal

Given = tuple[tuple[int, TensorType], ...]
_ANY: Final = TensorType((), np.dtype(np.float64))


@dataclass(frozen=True)
class Asked:
    """A request that has been read: a program, the types of its feeds and, by role, of the tensors beside them."""

    program: Program
    types: Mapping[int, TensorType]
    fields: Mapping[str, Any]
    beside: Mapping[str, Given]

    def get(self, *names: str) -> list[Any]:
        """Fields of the request, None where they are absent."""
        return [self.fields.get(name) for name in names]


@dataclass(frozen=True)
class Computing:
    """A call: its request, how it is made, and the roles of the tensors that it takes beside the feeds."""

    request: type
    make: Callable[[Asked], Call]
    roles: tuple[str, ...] = ()


def _gradients(asked: Asked) -> Call:
    call = Gradients.of_program(asked.program, *asked.get("of", "wrt", "outputs"))
    cotangents = dict(asked.beside["cotangents"])
    for node in cotangents:
        if node != call.of:
            raise Refusal(
                "bad_reference",
                f"a cotangent is given for node {node}, but the node to differentiate is {call.of}",
                expected=f"a cotangent of node {call.of}",
                got=f"one of node {node}",
            )
    return Gradients(call.outputs, call.of, call.wrt, cotangents.get(call.of))


def _vjp(asked: Asked) -> Call:
    wrt, outputs, batched = asked.get("wrt", "outputs", "batched")
    return VJP.of_program(asked.program, asked.beside["cotangents"], wrt, outputs, bool(batched))


def _batch(asked: Asked) -> Call:
    (mapped,) = asked.get("mapped")
    return Batch.of_program(asked.program, asked.types, mapped or (), *asked.get("of", "wrt", "outputs"))


COMPUTING: Final[Mapping[str, Computing]] = {
    "forward": Computing(ForwardRequest, lambda asked: Values.of_program(asked.program, *asked.get("outputs"))),
    "gradients": Computing(GradientsRequest, _gradients, ("cotangents",)),
    "vjp": Computing(VjpRequest, _vjp, ("cotangents",)),
    "jvp": Computing(
        JvpRequest,
        lambda asked: JVP.of_program(asked.program, asked.beside["tangents"], *asked.get("outputs")),
        ("tangents",),
    ),
    "jacobian": Computing(
        JacobianRequest, lambda asked: Jacobian.of_program(asked.program, *asked.get("wrt", "outputs"))
    ),
    "hvp": Computing(
        HvpRequest,
        lambda asked: HVP.along(asked.program, asked.beside["vectors"], *asked.get("of", "wrt", "outputs")),
        ("vectors",),
    ),
    "hessian": Computing(
        HessianRequest, lambda asked: Hessian.of_program(asked.program, *asked.get("of", "wrt", "outputs"))
    ),
    "batch": Computing(BatchRequest, _batch),
}


def planned(program: Program, types: Mapping[int, TensorType], request: PlanRequest) -> Call:
    """The call that a request to plan is about; the tensors that it takes beside feeds are given no types yet.

    Raises EngineError.
    """
    outputs, wrt = request.get("outputs"), request.get("wrt") or program.parameters
    default = "gradients" if wrt or "of" in request else "forward"
    nodes = {"cotangents": outputs or [len(program.statements) - 1], "tangents": wrt, "vectors": wrt}
    known = COMPUTING[name := request.get("call", default)]
    roles = () if name == "gradients" else known.roles
    beside = {role: tuple((node, _ANY) for node in nodes[role] if role in roles) for role in known.roles}
    return known.make(Asked(program, types, dict(request), beside))
