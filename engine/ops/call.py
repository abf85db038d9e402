"""Functions in the place of a node: called, chosen by a condition, and differentiated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

from engine.bodies.batched import batched
from engine.bodies.narrow import inputs_of, narrow
from engine.bodies.runs_functions import RunsFunctions, require_count, require_results, require_same
from engine.bodies.tidy import tidy
from engine.bodies.way_back import way_back
from engine.graph.attributes import Attr
from engine.graph.body import Body
from engine.graph.ir import Builder, Value
from engine.graph.op import Narrowed, ResultTypes
from engine.graph.tensor_type import FLOAT64, TensorType
from engine.oplib.batching import size
from engine.oplib.pack import bundled


class FunctionCall(RunsFunctions):
    """body(operands).

    With `derivative`, a function of the operands, the results and the cotangents of the results, which gives one
    cotangent for each float operand: that is differentiated by, and nothing else. With `recompute`, nothing inside is
    kept for the way back, which computes the body once more. With `derivative`, JAX's `custom_vjp` and PyTorch's
    `autograd.Function`, whose rules are given what they have kept; with `recompute`, JAX's and PyTorch's `checkpoint`.
    """

    name = "call"
    section = "call"
    inlines = True
    attrs: ClassVar[Mapping[str, Attr]] = {
        "body": Attr("function", doc="of the operands"),
        "derivative": Attr(
            "function",
            None,
            "of operands, results and cotangents: a cotangent for each float operand; absent: the body's",
        ),
        "recompute": Attr("bool", False, "keep nothing inside for the way back, but compute it again"),
    }
    gradient = "that of the body, or its own `derivative`"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The functions for these types. Raises what does not fit."""
        body: Body = attrs["body"].typed(types)
        require_results("body", body)
        derivative = attrs["derivative"]
        if derivative is not None:
            derivative = derivative.typed((*types, *body.outputs, *map(_cotangent, body.outputs)))
            floats = [type for type in types if type.is_differentiable]
            require_count("derivative", derivative, len(floats))
            require_same("cotangent", derivative, floats, derivative.outputs)
        return {**attrs, "body": body, "derivative": derivative}

    def infer(self, *types: TensorType, body: Body, **attrs: Any) -> ResultTypes:
        """Those of the body."""
        return body.outputs

    def compose(self, *operands: Any, body: Body, derivative: Body | None, recompute: bool) -> Value | None:
        """The body's own nodes, where nothing else is asked of it."""
        if derivative is not None or recompute or not operands:
            return None
        return bundled(operands[0].builder, tidy(body).inline_into(operands[0].builder, operands))

    def lowered(self, *operands: Any, body: Body, derivative: Body | None, recompute: bool) -> Value | None:
        """The body's own nodes, but where it is to be computed twice."""
        if recompute or not operands:
            return None
        return bundled(operands[0].builder, tidy(body).inline_into(operands[0].builder, operands))

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """The body without results that nobody reads; all, as long as its own derivative may ask for them."""
        body: Body = attrs["body"]
        if attrs["derivative"] is not None:
            return Narrowed(attrs, range(operands), range(len(body.outputs)))
        results, inputs = sorted(read), sorted(inputs_of(body, read))
        return Narrowed({**attrs, "body": narrow(body, results, inputs)}, inputs, results)

    def vjp(
        self,
        g: Sequence[Value | None],
        y: Value,
        *operands: Value,
        body: Body,
        derivative: Body | None,
        recompute: bool,
    ) -> Sequence[Value | None]:
        """The body's way back, or the derivative."""
        found: list[Value | None] = [None] * len(operands)
        if derivative is not None:
            floats = [i for i, x in enumerate(operands) if x.type.is_differentiable]
            results = [y.output(k) for k in range(len(body.outputs))]
            given = [_or_zeros(y, part, type) for part, type in zip(g, body.outputs, strict=True)]
            back, passed = derivative, [*operands, *results, *given]
        else:
            way = way_back(body, tuple(k for k, part in enumerate(g) if part is not None))
            floats = list(way.reached)
            back, passed = way.body, [*operands, *[part for part in g if part is not None]]
        if floats:
            attrs = {"body": back, "derivative": None, "recompute": recompute}
            loop = y.builder.emit(self, passed, attrs)
            for place, i in enumerate(floats):
                found[i] = loop.output(place)
        return found

    def batch(
        self,
        mapped: Sequence[bool],
        *operands: Value,
        body: Body,
        derivative: Body | None,
        recompute: bool,
    ) -> Value:
        """The body on all examples. It is not differentiated any more."""
        many = batched(body, mapped, size(mapped, operands)).body
        attrs = {"body": many, "derivative": None, "recompute": recompute}
        return operands[0].builder.emit(self, operands, attrs)


def emit_call(builder: Builder, body: Body, operands: Sequence[Value]) -> Value:
    """Append a body as a call of which nothing else is asked."""
    attrs = {"body": body, "derivative": None, "recompute": False}
    return builder.emit(builder.registry.ops["call"], operands, attrs)


def _cotangent(result: TensorType) -> TensorType:
    """The type of what arrives at a result: of one that has no derivatives, zeros in float64."""
    return result if result.is_differentiable else result.with_dtype(FLOAT64)


def _or_zeros(y: Value, arrived: Value | None, result: TensorType) -> Value:
    type = _cotangent(result)
    return y.builder.full(type.shape, 0.0, type.dtype) if arrived is None else arrived
