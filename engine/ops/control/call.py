"""Calls, conditionals and gradients as nodes of a graph.

A `call` runs a function; without `derivative` and `recompute` its nodes are inlined. A `cond` runs one of two
functions. Both differentiate by building a new function, the backward pass of their body, and calling it in turn. With
the result y and its cotangent g:

    call(a, b; body)               →  call(a, b, g; backward body): the cotangents of a and b
    call(a, b; body, derivative)   →  call(a, b, y, g; derivative)
    cond(p, a, b; then, otherwise) →  cond(p, a, b, g; backward then, backward otherwise)

A backward body computes what it needs of the forward pass itself. In a plain call this costs nothing, since inlining
makes the second computation a duplicate that is removed; with `recompute`, the body is not inlined, and no intermediate
value has to stay in memory until the backward pass. The two functions of a `cond` may depend on different operands: the
function without a path to an operand returns zeros for it, so that both have the same results.

`grad` is a node that stands for a gradient. It is expanded by `engine.autodiff.vjp` before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

from engine.autodiff.bodies import batched, derive_body, differentiate_body, narrow, required_inputs, tidy
from engine.autodiff.control_flow import RunsFunctions, require_count, require_results, require_same, zeros
from engine.ir.attributes import Attr
from engine.ir.errors import DtypeMismatch, NotDifferentiable, ShapeMismatch
from engine.ir.graph import Builder, Value
from engine.ir.op import Definition, Narrowed, ResultTypes
from engine.ir.program import Body
from engine.ir.sample import Real, Sample
from engine.ir.tensor_type import BOOL, DTYPES, FLOAT64, TensorType, require_type, show_shape
from engine.ops.common.batching import batch_size, pack
from engine.ops.control.scan import select_by_example


class FunctionCall(RunsFunctions):
    """The results of body(operands).

    `derivative` defines a custom gradient: a function of the operands, the results and the cotangents of the results
    that returns one cotangent for each float operand. It replaces the derivative of the body. With `recompute`, no
    values inside the body are stored for the backward pass, which runs the body again.

    For `derivative`, JAX has `custom_vjp` and PyTorch has `autograd.Function`; their rules receive the values that the
    forward pass saved. For `recompute`, both have `checkpoint`.
    """

    name = "call"
    section = "call"
    inlines = True
    attrs: ClassVar[Mapping[str, Attr]] = {
        "body": Attr("function", doc="function of the operands"),
        "derivative": Attr(
            "function",
            None,
            "function of operands, results and cotangents; returns a cotangent for each float operand; "
            "default: the body's derivative",
        ),
        "recompute": Attr("bool", False, "whether the backward pass recomputes the body instead of storing its values"),
    }
    gradient = "that of the body, or `derivative`"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Type the functions for these operands. Raises EngineError for a function that does not fit."""
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
        """Return the result types of the body."""
        return body.outputs

    def compose(self, *operands: Any, body: Body, derivative: Body | None, recompute: bool) -> Value | None:
        """Inline the body, unless the call has a derivative or recomputes."""
        if derivative is not None or recompute or not operands:
            return None
        return pack(operands[0].builder, tidy(body).inline_into(operands[0].builder, operands))

    def lowered(self, *operands: Any, body: Body, derivative: Body | None, recompute: bool) -> Value | None:
        """Inline the body, unless the call recomputes."""
        if recompute or not operands:
            return None
        return pack(operands[0].builder, tidy(body).inline_into(operands[0].builder, operands))

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Drop unread results of the body; keep all if a derivative may need them."""
        body: Body = attrs["body"]
        if attrs["derivative"] is not None:
            return Narrowed(attrs, range(operands), range(len(body.outputs)))
        results, inputs = sorted(read), sorted(required_inputs(body, read))
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
        """Append a call of the derivative, or of the body's backward pass."""
        gradients: list[Value | None] = [None] * len(operands)
        if derivative is not None:
            floats = [i for i, x in enumerate(operands) if x.type.is_differentiable]
            results = [y.output(k) for k in range(len(body.outputs))]
            cotangents = zip(g, map(_cotangent, body.outputs), strict=True)
            seeds = [zeros(y.builder, type) if cotangent is None else cotangent for cotangent, type in cotangents]
            backward_body, backward_operands = derivative, [*operands, *results, *seeds]
        else:
            backward = differentiate_body(body, tuple(k for k, cotangent in enumerate(g) if cotangent is not None))
            floats = list(backward.reached)
            backward_body, backward_operands = (
                backward.body,
                [*operands, *[cotangent for cotangent in g if cotangent is not None]],
            )
        if floats:
            # `recompute` stays set: if the backward body were inlined, its recomputation would merge with the forward
            # pass, whose values would then be kept
            attrs = {"body": backward_body, "derivative": None, "recompute": recompute}
            call = y.builder.emit(self, backward_operands, attrs)
            for position, i in enumerate(floats):
                gradients[i] = call.output(position)
        return gradients

    def batch(
        self, mapped: Sequence[bool], *operands: Value, body: Body, derivative: Body | None, recompute: bool
    ) -> Value:
        """Append a call of the batched body. It needs no derivative: batching comes after differentiation."""
        batched_body = batched(body, mapped, batch_size(mapped, operands)).body
        attrs = {"body": batched_body, "derivative": None, "recompute": recompute}
        return operands[0].builder.emit(self, operands, attrs)


def emit_call(builder: Builder, body: Body, operands: Sequence[Value]) -> Value:
    """Append a plain call of a body, without derivative or recomputation."""
    attrs = {"body": body, "derivative": None, "recompute": False}
    return builder.emit(builder.registry.ops["call"], operands, attrs)


def _cotangent(result: TensorType) -> TensorType:
    """Return the type of a result's cotangent: float64 (always zeros) if the result is not differentiable."""
    return result if result.is_differentiable else result.with_dtype(FLOAT64)


class Cond(RunsFunctions):
    """then(operands) if the predicate, a bool [], is true, else otherwise(operands). Only one of them runs.

    Both functions must return results of the same types. JAX: `lax.cond`. PyTorch: `cond`.
    """

    name = "cond"
    section = "cond"
    operands = ("predicate", "operands...?")
    attrs: ClassVar[Mapping[str, Attr]] = {
        "then": Attr("function", doc="function of the operands after the predicate; runs if the predicate is true"),
        "otherwise": Attr("function", doc="function of the same operands; runs if the predicate is false"),
    }
    gradient = "that of the function that ran; the other one contributes exact zeros"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Type both functions for these operands. Raises EngineError for a function that does not fit."""
        predicate, *operands = types
        _require_truth(predicate)
        then, otherwise = attrs["then"].typed(operands), attrs["otherwise"].typed(operands)
        require_results("then", then)
        require_count("otherwise", otherwise, len(then.outputs))
        require_same("result", otherwise, then.outputs, otherwise.outputs)
        return {"then": then, "otherwise": otherwise}

    def infer(self, *types: TensorType, then: Body, otherwise: Body) -> ResultTypes:
        """Return the result types of either function."""
        return then.outputs

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Drop unread results, and the operands that neither function then needs."""
        bodies, results = {name: attrs[name] for name in self.functions}, sorted(read)
        inputs = sorted(frozenset().union(*[required_inputs(body, results) for body in bodies.values()]))
        narrowed_bodies = {name: narrow(body, results, inputs) for name, body in bodies.items()}
        return Narrowed({**attrs, **narrowed_bodies}, [0, *[1 + i for i in inputs]], results)

    def vjp(
        self, g: Sequence[Value | None], y: Value, predicate: Value, *operands: Value, then: Body, otherwise: Body
    ) -> Sequence[Value | None]:
        """Append a cond of the two backward passes. Each computes its function again."""
        with_cotangent = tuple(k for k, cotangent in enumerate(g) if cotangent is not None)
        backward_bodies = [differentiate_body(body, with_cotangent) for body in (then, otherwise)]
        reached = sorted({i for backward_body in backward_bodies for i in backward_body.reached})
        gradients: list[Value | None] = [None] * len(operands)
        if reached:
            then_back, other_back = (
                _fill_gradients(backward_body.body, backward_body.reached, reached) for backward_body in backward_bodies
            )
            backward_operands = [predicate, *operands, *[cotangent for cotangent in g if cotangent is not None]]
            backward = y.builder.emit(self, backward_operands, {"then": then_back, "otherwise": other_back})
            for position, i in enumerate(reached):
                gradients[i] = backward.output(position)
        return [None, *gradients]

    def batch(self, mapped: Sequence[bool], predicate: Value, *operands: Value, then: Body, otherwise: Body) -> Value:
        """Run one function on all examples; if each example has its own predicate, run both and select."""
        n = batch_size(mapped, [predicate, *operands])
        batched_then, batched_otherwise = (batched(body, mapped[1:], n).body for body in (then, otherwise))
        if not mapped[0]:
            return predicate.builder.emit(
                self, [predicate, *operands], {"then": batched_then, "otherwise": batched_otherwise}
            )
        yes, no = (emit_call(predicate.builder, body, operands) for body in (batched_then, batched_otherwise))
        results = range(len(then.outputs))
        return pack(predicate.builder, [select_by_example(predicate, yes.output(k), no.output(k)) for k in results])


def _fill_gradients(body: Body, reached: Sequence[int], operands: Sequence[int]) -> Body:
    """Build a backward body that returns a cotangent for each of `operands`: zeros if it has no path to one."""

    def make() -> Body:
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
        gradients = dict(zip(reached, body.inline_into(builder, leaves), strict=True))
        return derive_body(
            body, builder.graph([gradients.get(i) or zeros(builder, body.inputs[i]) for i in operands]), body.inputs
        )

    return body.cached(("giving", tuple(operands)), make)


def _require_truth(predicate: TensorType) -> None:
    if predicate.dtype != BOOL:
        received = predicate.dtype.name
        raise DtypeMismatch(
            f"operand 0 (predicate) must be a bool, but is {received}", operand=0, expected="bool", got=received
        )
    if predicate.shape:
        received = show_shape(predicate.shape)
        raise ShapeMismatch(
            f"operand 0 (predicate) must be a single bool, of shape [], but has shape {received}",
            operand=0,
            expected="[]",
            got=received,
        )


class Grad(Definition):
    """The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).

    Other nodes can use the result, and you can differentiate it again, to any order. x may be any float node. If y does
    not depend on x, the result is zeros. A complex y needs a cotangent. With respect to a complex x, the gradient is
    ∂/∂Re x + i ∂/∂Im x.
    """

    name = "grad"
    section = "grad"
    operands = ("y", "x", "cotangent?")
    dtypes = DTYPES
    gradient = "that of the nodes that compute the gradient"
    samples = (Sample(Real(2), Real(2)), Sample(Real(2, 3), Real(2), Real(2, 3)))

    def infer(self, y: TensorType, x: TensorType, cotangent: TensorType | None = None) -> ResultTypes:
        """Return x's type.

        Raises NotDifferentiable unless y and x have derivatives, DtypeMismatch for a complex y without a cotangent.
        """
        for i, (name, type) in enumerate((("y", y), ("x", x))):
            if not type.is_differentiable:
                raise NotDifferentiable(
                    f"operand {i} ({name}) must be float to be differentiated, but is {type.dtype.name}",
                    operand=i,
                    expected="a float dtype",
                    got=type.dtype.name,
                )
        if cotangent is not None:
            require_type(cotangent, y, "operand 2 (cotangent)", operand=2)
        elif y.is_complex:
            raise DtypeMismatch(
                f"operand 0 (y) is {y.dtype.name}: give a cotangent of that dtype, or make it real (real, imag, abs)",
                operand=0,
                expected="a real dtype, or a cotangent",
                got=y.dtype.name,
            )
        return x
