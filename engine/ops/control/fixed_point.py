"""Fixed points: a function applied until nothing changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

from engine.autodiff.bodies import BodyBack, batched, derived, inputs_of, narrow, tidy, way_back
from engine.autodiff.control_flow import RunsFunctions, in_parts, require_count, require_same
from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, DtypeMismatch
from engine.ir.graph import Value
from engine.ir.op import Narrowed, ResultTypes
from engine.ir.program import Body
from engine.ir.tensor_type import BOOL, FLOAT64, INT64, DType, TensorType, real_dtype
from engine.ops.common.batching import bundled, size
from engine.ops.control.call import emit_call


class FixedPoint(RunsFunctions):
    """x = body(consts, x), again and again until max |Δx| ≤ tolerance · (1 + max |x|), at most `max_steps` times.

    x are the `carries`, floats, all of them together; max |x| is that of the new x. What is not finite ends the
    iteration, unfinished. Results: x; `steps`, int64 [], those that ran; `finished`, bool []. The gradient is implicit,
    as that of JAX's `lax.custom_root`, which is given a solver; of PyTorch, a loop of Python and a rule.
    """

    name = "fixed_point"
    section = "fixed_point"
    operands = ("operands...",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "body": Attr("function", doc="of consts and x: the next x"),
        "carries": Attr("int", 0, "how many operands, the last ones, are x at first; at least one", minimum=0),
        "tolerance": Attr("float", doc="how much may change, relative to 1 + max |x|; 0: nothing"),
        "max_steps": Attr("int", doc="how many steps there may be at most", minimum=0),
    }
    gradient = "implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none by the first x"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The body for these types. Raises what does not fit."""
        parts = in_parts(types, attrs["carries"])
        if not parts.carries:
            raise BadAttribute("attribute carries must count at least one operand", expected="at least 1", got="0")
        if attrs["tolerance"] < 0:
            got = f"{attrs['tolerance']:g}"
            raise BadAttribute(
                f"attribute tolerance must not be negative, but is {got}", expected="at least 0", got=got
            )
        for place, type in enumerate(parts.carries, len(parts.consts)):
            if not type.is_differentiable:
                raise DtypeMismatch(
                    f"operand {place}, a carry, must be of a float dtype, but is {type.dtype.name}",
                    operand=place,
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
        """Without consts that the body does not need: all of x says when it has come to an end."""
        body, consts = attrs["body"], operands - attrs["carries"]
        results = range(attrs["carries"])
        inputs = sorted(inputs_of(body, results) | {*range(consts, operands)})
        less = {**attrs, "body": narrow(body, results, inputs)}
        return Narrowed(less, inputs, range(attrs["carries"] + 2))

    def vjp(
        self, g: Sequence[Value | None], y: Value, *operands: Value, body: Body, carries: int, **attrs: Any
    ) -> Sequence[Value | None]:
        """Apply the implicit function theorem at the point that was reached."""
        consts = in_parts(operands, carries).consts
        x = [y.output(k) for k in range(carries)]
        arrived = [value.full_like(0.0) if part is None else part for value, part in zip(x, g, strict=False)]
        way = way_back(body, tuple(range(carries)))
        found: list[Value | None] = [None] * len(operands)
        reached = [i for i in way.reached if i < len(consts)]
        if not reached or all(part is None for part in g[:carries]):
            return found
        u = emit_adjoint(way, consts, x, arrived, **attrs)
        passed = [*consts, *x, *[u.output(k) for k in range(carries)]]
        back = emit_call(y.builder, _by_consts(way, len(reached)), passed)
        for place, i in enumerate(reached):
            found[i] = back.output(place)
        return found

    def batch(self, mapped: Sequence[bool], *operands: Value, body: Body, **attrs: Any) -> Value:
        """All examples together; one that has ended stays as it is."""

        def make() -> Body:
            builder = body.budget.builder(body.graph.registry)
            leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
            return derived(body, builder.graph(self._looped(leaves, body=body, **attrs)), body.inputs)

        loop = body.made(("as a loop", *attrs.values()), make)
        many = batched(loop, mapped, size(mapped, operands)).body
        return emit_call(operands[0].builder, many, operands)

    def lowered(self, *operands: Value, **attrs: Any) -> Value | None:
        """A `while` that also carries whether it has come to an end."""
        return bundled(operands[0].builder, self._looped(operands, **attrs))

    def _looped(
        self, operands: Sequence[Value], *, body: Body, carries: int, tolerance: float, max_steps: int
    ) -> list[Value]:
        builder = operands[0].builder
        no = builder.full((), 0, BOOL)
        consts = len(operands) - carries
        attrs = {
            "condition": body.made(("goes on", consts), lambda: _goes_on(body)),
            "body": body.made(("step", consts, tolerance), lambda: _step(body, consts, tolerance)),
            "carries": carries + 2,
            "max_steps": max_steps,
        }
        loop = builder.emit(builder.registry.ops["while"], [*operands, no, no], attrs)
        return [*[loop.output(k) for k in range(carries)], loop.output(carries + 2), loop.output(carries)]


def emit_adjoint(
    way: BodyBack, consts: Sequence[Value], x: Sequence[Value], arrived: Sequence[Value], **attrs: Any
) -> Value:
    """Append u = g + (∂body/∂x)ᵀu, from the way back through the body, and the g that have arrived at x."""
    stated = {"body": _adjoint(way, len(consts)), "carries": len(x), **attrs}
    builder = x[0].builder
    return builder.emit(builder.registry.ops["fixed_point"], [*consts, *x, *arrived, *arrived], stated)


def _adjoint(way: BodyBack, consts: int) -> Body:
    """Build the body g + (∂body/∂x)ᵀu of consts, x, g, and u."""

    def make() -> Body:
        back = way.body
        given = len(back.inputs) - (len(back.inputs) - consts) // 2
        types = [*back.inputs, *back.inputs[given:]]
        builder = back.budget.builder(back.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
        g, u = leaves[given : len(back.inputs)], leaves[len(back.inputs) :]
        found = dict(zip(way.reached, back.inline_into(builder, [*leaves[:given], *u]), strict=True))
        new = [part if (by := found.get(consts + k)) is None else part + by for k, part in enumerate(g)]
        return derived(back, builder.graph(new), types)

    return way.body.made(("adjoint", consts), make)


def _by_consts(way: BodyBack, count: int) -> Body:
    """The first so many results of a way back."""

    def make() -> Body:
        graph = way.body.graph
        return derived(way.body, graph.rewritten(graph.nodes, graph.outputs[:count]), way.body.inputs)

    return way.body.made(("by consts", count), make)


def _goes_on(body: Body) -> Body:
    """Build the condition, of consts, x, and whether it is done, or lost: neither."""
    types = [*body.inputs, TensorType((), BOOL), TensorType((), BOOL)]
    builder = body.budget.builder(body.graph.registry)
    *_, done, lost = [builder.leaf(type, i) for i, type in enumerate(types)]
    return derived(body, builder.graph([done.logical_or(lost).logical_not()]), types)


def _step(body: Body, consts: int, tolerance: float) -> Body:
    """Build the step, of the same operands: the next x, and whether it is done, or lost."""
    types = [*body.inputs, TensorType((), BOOL), TensorType((), BOOL)]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    old = leaves[consts : len(body.inputs)]
    new = tidy(body).inline_into(builder, leaves)
    dtypes = {real_dtype(type.dtype) for type in body.outputs}
    dtype = dtypes.pop() if len(dtypes) == 1 else FLOAT64
    moved = _largest([after - before for after, before in zip(new, old, strict=True)], dtype)
    allowed = (_largest(new, dtype) + 1.0) * tolerance
    lost = moved.is_finite().logical_not()
    done = moved.less_equal(allowed).logical_and(lost.logical_not())
    return derived(body, builder.graph([*new, done, lost]), types)


def _largest(values: Sequence[Value], dtype: DType) -> Value:
    """The largest magnitude of any element; 0 where there is none."""
    found = values[0].builder.full((), 0.0, dtype)
    for x in values:
        if x.type.size:
            found = found.maximum(x.abs().max().cast(dtype=dtype))
    return found
