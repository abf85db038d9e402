"""Functions in the place of a node: called, chosen by a condition, and differentiated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

from engine.autodiff.bodies import batched, derived, inputs_of, narrow, tidy, way_back
from engine.autodiff.control_flow import RunsFunctions, require_count, require_results, require_same, zeros
from engine.ir.attributes import Attr
from engine.ir.errors import DtypeMismatch, NotDifferentiable, ShapeMismatch
from engine.ir.graph import Builder, Value
from engine.ir.op import Definition, Narrowed, ResultTypes
from engine.ir.program import Body
from engine.ir.sample import Real, Sample
from engine.ir.tensor_type import BOOL, DTYPES, FLOAT64, TensorType, require_type, show_shape
from engine.ops.common.batching import bundled, size
from engine.ops.control.scan import picked


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
        """Return the result types of the body."""
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
            arrived = zip(g, map(_cotangent, body.outputs), strict=True)
            given = [zeros(y.builder, type) if part is None else part for part, type in arrived]
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
        self, mapped: Sequence[bool], *operands: Value, body: Body, derivative: Body | None, recompute: bool
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


class Cond(RunsFunctions):
    """then(operands), where the predicate, a bool [], holds; else otherwise(operands). Only one of them runs.

    Both give results of the same types. JAX's `lax.cond`, PyTorch's `cond`.
    """

    name = "cond"
    section = "cond"
    operands = ("predicate", "operands...?")
    attrs: ClassVar[Mapping[str, Attr]] = {
        "then": Attr("function", doc="of the operands behind the predicate, where that holds"),
        "otherwise": Attr("function", doc="of the same, where it does not"),
    }
    gradient = "that of the function that ran; the other adds exact zeros"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Both functions for these types. Raises what does not fit."""
        predicate, *given = types
        _require_truth(predicate)
        then, otherwise = attrs["then"].typed(given), attrs["otherwise"].typed(given)
        require_results("then", then)
        require_count("otherwise", otherwise, len(then.outputs))
        require_same("result", otherwise, then.outputs, otherwise.outputs)
        return {"then": then, "otherwise": otherwise}

    def infer(self, *types: TensorType, then: Body, otherwise: Body) -> ResultTypes:
        """Return the result types of either function."""
        return then.outputs

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Both functions without results that nobody reads."""
        bodies, results = {name: attrs[name] for name in self.functions}, sorted(read)
        inputs = sorted(frozenset().union(*[inputs_of(body, results) for body in bodies.values()]))
        fewer = {name: narrow(body, results, inputs) for name, body in bodies.items()}
        return Narrowed({**attrs, **fewer}, [0, *[1 + i for i in inputs]], results)

    def vjp(
        self, g: Sequence[Value | None], y: Value, predicate: Value, *operands: Value, then: Body, otherwise: Body
    ) -> Sequence[Value | None]:
        """A choice between the ways back, each of which computes its function once more."""
        given = tuple(k for k, part in enumerate(g) if part is not None)
        ways = [way_back(body, given) for body in (then, otherwise)]
        reached = sorted({i for way in ways for i in way.reached})
        found: list[Value | None] = [None] * len(operands)
        if reached:
            then_back, other_back = (_giving(way.body, way.reached, reached) for way in ways)
            passed = [predicate, *operands, *[part for part in g if part is not None]]
            back = y.builder.emit(self, passed, {"then": then_back, "otherwise": other_back})
            for place, i in enumerate(reached):
                found[i] = back.output(place)
        return [None, *found]

    def batch(self, mapped: Sequence[bool], predicate: Value, *operands: Value, then: Body, otherwise: Body) -> Value:
        """The one of both on all examples; where these choose for themselves, both, and of each what it chose."""
        n = size(mapped, [predicate, *operands])
        many, other = (batched(body, mapped[1:], n).body for body in (then, otherwise))
        if not mapped[0]:
            return predicate.builder.emit(self, [predicate, *operands], {"then": many, "otherwise": other})
        yes, no = (emit_call(predicate.builder, body, operands) for body in (many, other))
        results = range(len(then.outputs))
        return bundled(predicate.builder, [picked(predicate, yes.output(k), no.output(k)) for k in results])


def _giving(body: Body, reached: Sequence[int], wanted: Sequence[int]) -> Body:
    """A way back that gives cotangents of all the operands that are wanted: zeros, where it has none."""

    def make() -> Body:
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
        found = dict(zip(reached, body.inline_into(builder, leaves), strict=True))
        return derived(
            body, builder.graph([found.get(i) or zeros(builder, body.inputs[i]) for i in wanted]), body.inputs
        )

    return body.made(("giving", tuple(wanted)), make)


def _require_truth(predicate: TensorType) -> None:
    if predicate.dtype != BOOL:
        got = predicate.dtype.name
        raise DtypeMismatch(f"operand 0 (predicate) must be a bool, but is {got}", operand=0, expected="bool", got=got)
    if predicate.shape:
        got = show_shape(predicate.shape)
        raise ShapeMismatch(
            f"operand 0 (predicate) must be one bool, of shape [], but has shape {got}",
            operand=0,
            expected="[]",
            got=got,
        )


class Grad(Definition):
    """The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).

    A node like any other: usable downstream, and differentiable again, to any order. x may be any float node; zeros
    where y does not depend on it. A complex y needs a cotangent; by a complex x, the gradient is ∂/∂Re x + i ∂/∂Im x.
    """

    name = "grad"
    section = "grad"
    operands = ("y", "x", "cotangent?")
    dtypes = DTYPES
    gradient = "the gradient is written out as nodes first, and those are differentiated"
    samples = (Sample(Real(2), Real(2)), Sample(Real(2, 3), Real(2), Real(2, 3)))

    def infer(self, y: TensorType, x: TensorType, cotangent: TensorType | None = None) -> ResultTypes:
        """x's type. Raises NotDifferentiable unless y and x have derivatives, DtypeMismatch for a complex y alone."""
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
