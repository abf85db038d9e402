"""A choice between two functions, of which only one runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

from engine.bodies.batched import batched
from engine.bodies.narrow import inputs_of, narrow
from engine.bodies.runs_functions import RunsFunctions, require_count, require_results, require_same
from engine.bodies.stepwise import zeros
from engine.bodies.tidy import derived
from engine.bodies.way_back import way_back
from engine.graph.attributes import Attr
from engine.graph.body import Body
from engine.graph.errors import DtypeMismatch, ShapeMismatch
from engine.graph.ir import Value
from engine.graph.op import Narrowed, ResultTypes
from engine.graph.tensor_type import BOOL, TensorType, show_shape
from engine.oplib.batching import size
from engine.oplib.pack import bundled
from engine.ops.call import emit_call
from engine.ops.scan import picked


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
        """Those of either function."""
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
