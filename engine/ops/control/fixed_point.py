"""Fixed points x = f(c, x), and their implicit gradient.

The iteration itself is a `while` whose carries are x and two flags: converged, or no longer finite. It is never
differentiated. At the fixed point the implicit function theorem gives the gradient, whatever path led there and however
long it was. Differentiating x = f(c, x) gives dx = (∂f/∂c) dc + (∂f/∂x) dx, so that for the cotangent g of x:

    u = (I − (∂f/∂x)ᵀ)⁻¹ g     the solution of u = g + (∂f/∂x)ᵀ u: again a fixed point, started at g
    gradient of c = (∂f/∂c)ᵀ u

For x = cos(c · x), with s = sin(c · x): u = g − c · s · u, and the gradient of c is −x · s · u. Both products come from
one backward body of f, evaluated at the fixed point. Memory does not grow with the number of steps. The adjoint
iteration converges if the forward one does, since ∂f/∂x and its transpose have the same eigenvalues. It is a node
`fixed_point` itself, so that higher derivatives follow. The initial x has no influence on the fixed point and gets no
gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

from engine.autodiff.bodies import BackwardBody, batched, derive_body, differentiate_body, narrow, required_inputs, tidy
from engine.autodiff.control_flow import RunsFunctions, require_count, require_same, split_operands
from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, DtypeMismatch
from engine.ir.graph import Value
from engine.ir.op import Narrowed, ResultTypes
from engine.ir.program import Body
from engine.ir.tensor_type import BOOL, FLOAT64, INT64, DType, TensorType, real_dtype
from engine.ops.common.batching import batch_size, pack
from engine.ops.control.call import emit_call


class FixedPoint(RunsFunctions):
    """Repeats x = body(consts, x) until max |Δx| ≤ tolerance · (1 + max |x|), at most `max_steps` times.

    x stands for the `carries`, which must be floats; each maximum is over all of them, and max |x| is that of the new
    x. An infinity or NaN in x ends the iteration, unfinished. Results: x; `steps`, int64 [], the number of steps that
    ran; `finished`, bool []. The gradient is implicit, as in JAX's `lax.custom_root`, which takes a solver. In PyTorch,
    write a Python loop and a custom rule.
    """

    name = "fixed_point"
    section = "fixed_point"
    operands = ("operands...",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "body": Attr("function", doc="function of consts and x; returns the next x"),
        "carries": Attr("int", 0, "number of operands, the last ones, that are the initial x; at least one", minimum=0),
        "tolerance": Attr("float", doc="largest change at which to stop, relative to 1 + max |x|; 0: no change"),
        "max_steps": Attr("int", doc="maximum number of steps", minimum=0),
    }
    gradient = "implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none for the initial x"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Type the body for these operands. Raises EngineError for operands or a body that do not fit."""
        parts = split_operands(types, attrs["carries"])
        if not parts.carries:
            raise BadAttribute(
                "attribute carries must count at least one operand", attribute="carries", expected="at least 1", got="0"
            )
        if attrs["tolerance"] < 0:
            received = f"{attrs['tolerance']:g}"
            raise BadAttribute(
                f"attribute tolerance must not be negative, but is {received}",
                attribute="tolerance",
                expected="at least 0",
                got=received,
            )
        for position, type in enumerate(parts.carries, len(parts.consts)):
            if not type.is_differentiable:
                raise DtypeMismatch(
                    f"operand {position}, a carry, must be of a float dtype, but is {type.dtype.name}",
                    operand=position,
                    expected="a float dtype",
                    got=type.dtype.name,
                )
        body: Body = attrs["body"].typed(types)
        require_count("body", body, len(parts.carries))
        require_same("carry", body, parts.carries, body.outputs)
        return {**attrs, "body": body}

    def infer(self, *types: TensorType, body: Body, **attrs: Any) -> ResultTypes:
        """Return the types of x, steps and finished."""
        return (*body.outputs, TensorType((), INT64), TensorType((), BOOL))

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Drop consts that the body does not need. All of x stays: convergence depends on it."""
        body, consts = attrs["body"], operands - attrs["carries"]
        results = range(attrs["carries"])
        inputs = sorted(required_inputs(body, results) | {*range(consts, operands)})
        narrowed_attrs = {**attrs, "body": narrow(body, results, inputs)}
        return Narrowed(narrowed_attrs, inputs, range(attrs["carries"] + 2))

    def vjp(
        self, g: Sequence[Value | None], y: Value, *operands: Value, body: Body, carries: int, **attrs: Any
    ) -> Sequence[Value | None]:
        """Apply the implicit function theorem at the last x."""
        consts = split_operands(operands, carries).consts
        x = [y.output(k) for k in range(carries)]
        cotangents = [
            value.full_like(0.0) if cotangent is None else cotangent for value, cotangent in zip(x, g, strict=False)
        ]
        # for the cotangents of all carries: the adjoint iteration mixes them, so that none stays 0
        backward = differentiate_body(body, tuple(range(carries)))
        gradients: list[Value | None] = [None] * len(operands)
        reached = [i for i in backward.reached if i < len(consts)]
        if not reached or all(cotangent is None for cotangent in g[:carries]):
            return gradients
        u = emit_adjoint(backward, consts, x, cotangents, **attrs)
        backward_operands = [*consts, *x, *[u.output(k) for k in range(carries)]]
        const_gradients = emit_call(y.builder, _const_gradients(backward, len(reached)), backward_operands)
        for position, i in enumerate(reached):
            gradients[i] = const_gradients.output(position)
        return gradients

    def batch(self, mapped: Sequence[bool], *operands: Value, body: Body, **attrs: Any) -> Value:
        """Run all examples together; freeze each one that has ended."""

        def make() -> Body:
            builder = body.budget.builder(body.graph.registry)
            leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
            return derive_body(body, builder.graph(self._emit_while(leaves, body=body, **attrs)), body.inputs)

        loop = body.cached(("as a loop", *attrs.values()), make)
        batched_loop = batched(loop, mapped, batch_size(mapped, operands)).body
        return emit_call(operands[0].builder, batched_loop, operands)

    def lowered(self, *operands: Value, **attrs: Any) -> Value | None:
        """Write the iteration as a `while` that also carries whether it has ended."""
        return pack(operands[0].builder, self._emit_while(operands, **attrs))

    def _emit_while(
        self, operands: Sequence[Value], *, body: Body, carries: int, tolerance: float, max_steps: int
    ) -> list[Value]:
        builder = operands[0].builder
        false = builder.full((), 0, BOOL)
        consts = len(operands) - carries
        attrs = {
            "condition": body.cached(("goes on", consts), lambda: _unfinished(body)),
            "body": body.cached(("step", consts, tolerance), lambda: _step(body, consts, tolerance)),
            "carries": carries + 2,
            "max_steps": max_steps,
        }
        loop = builder.emit(builder.registry.ops["while"], [*operands, false, false], attrs)
        return [*[loop.output(k) for k in range(carries)], loop.output(carries + 2), loop.output(carries)]


def emit_adjoint(
    backward: BackwardBody, consts: Sequence[Value], x: Sequence[Value], cotangents: Sequence[Value], **attrs: Any
) -> Value:
    """Append the fixed point u = g + (∂body/∂x)ᵀu, from the body's backward pass and the cotangents g of x."""
    adjoint_attrs = {"body": _adjoint(backward, len(consts)), "carries": len(x), **attrs}
    builder = x[0].builder
    return builder.emit(builder.registry.ops["fixed_point"], [*consts, *x, *cotangents, *cotangents], adjoint_attrs)


def _adjoint(backward: BackwardBody, consts: int) -> Body:
    """Build the body g + (∂body/∂x)ᵀu of consts, x, g and u."""

    def make() -> Body:
        # The backward body's inputs are consts, x and the cotangents u, with as many u as x. Here the same number of g
        # comes before u, of the same types.
        backward_body = backward.body
        first_cotangent = len(backward_body.inputs) - (len(backward_body.inputs) - consts) // 2
        types = [*backward_body.inputs, *backward_body.inputs[first_cotangent:]]
        builder = backward_body.budget.builder(backward_body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
        g, u = leaves[first_cotangent : len(backward_body.inputs)], leaves[len(backward_body.inputs) :]
        products = dict(
            zip(backward.reached, backward_body.inline_into(builder, [*leaves[:first_cotangent], *u]), strict=True)
        )
        new = [
            cotangent if (product := products.get(consts + k)) is None else cotangent + product
            for k, cotangent in enumerate(g)
        ]
        return derive_body(backward_body, builder.graph(new), types)

    return backward.body.cached(("adjoint", consts), make)


def _const_gradients(backward: BackwardBody, count: int) -> Body:
    """Build a backward body with only its first `count` results, the cotangents of the consts."""

    def make() -> Body:
        graph = backward.body.graph
        return derive_body(backward.body, graph.with_nodes(graph.nodes, graph.outputs[:count]), backward.body.inputs)

    return backward.body.cached(("by consts", count), make)


def _unfinished(body: Body) -> Body:
    """Build the condition on consts, x and the flags `done` and `diverged`: neither is set."""
    types = [*body.inputs, TensorType((), BOOL), TensorType((), BOOL)]
    builder = body.budget.builder(body.graph.registry)
    *_, done, diverged = [builder.leaf(type, i) for i, type in enumerate(types)]
    return derive_body(body, builder.graph([done.logical_or(diverged).logical_not()]), types)


def _step(body: Body, consts: int, tolerance: float) -> Body:
    """Build the step on the same inputs: the next x, whether it converged (`done`) or is not finite (`diverged`)."""
    types = [*body.inputs, TensorType((), BOOL), TensorType((), BOOL)]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    old = leaves[consts : len(body.inputs)]
    new = tidy(body).inline_into(builder, leaves)
    # one tolerance holds for all carries: if their dtypes differ, magnitudes are compared in float64
    dtypes = {real_dtype(type.dtype) for type in body.outputs}
    dtype = dtypes.pop() if len(dtypes) == 1 else FLOAT64
    change = _max_magnitude([after - before for after, before in zip(new, old, strict=True)], dtype)
    tolerated = (_max_magnitude(new, dtype) + 1.0) * tolerance
    diverged = change.is_finite().logical_not()
    done = change.less_equal(tolerated).logical_and(diverged.logical_not())
    return derive_body(body, builder.graph([*new, done, diverged]), types)


def _max_magnitude(values: Sequence[Value], dtype: DType) -> Value:
    """Return the largest magnitude of any element; 0 if there are no elements."""
    largest = values[0].builder.full((), 0.0, dtype)
    for x in values:
        if x.type.size:
            largest = largest.maximum(x.abs().max().cast(dtype=dtype))
    return largest
