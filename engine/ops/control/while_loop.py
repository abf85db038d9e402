"""Loops that end when a condition says so, within a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Final

from engine.autodiff.bodies import batched, derived, inputs_of, narrow, step_needs, tidy
from engine.autodiff.control_flow import (
    Parts,
    RunsFunctions,
    in_parts,
    loop_gradients,
    require_count,
    require_same,
    require_truth,
    stacking,
)
from engine.ir.attributes import Attr
from engine.ir.graph import Value
from engine.ir.op import Narrowed, ResultTypes
from engine.ir.program import Body
from engine.ir.tensor_type import BOOL, FLOAT64, INT64, TensorType
from engine.ops.common.batching import bundled, size
from engine.ops.control.call import emit_call
from engine.ops.control.scan import batched_carries, behind_steps, bounded_scan, emit_counted, picked, with_axis


class While(RunsFunctions):
    """carries = body(consts, carries), again and again while condition(consts, carries) holds.

    At most `max_steps` times. The condition gives a bool []; it is looked at before each step, and once more after the
    last one that is allowed. Results: the carries; `steps`, int64 [], those that ran; `finished`, bool [], false where
    the bound ended it. JAX's `lax.while_loop`, which has no bound, and is differentiated forwards alone; of PyTorch, a
    loop of Python.
    """

    name = "while"
    section = "while_loop"
    steps_body = True
    beside = 2

    @property
    def family(self) -> str:
        """With stacks or without."""
        return "while"

    def emit_loop(self, operands: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
        """With stacks, where there are any."""
        parts = in_parts(operands, attrs["carries"])
        return _emit(operands[0], attrs["condition"], attrs["body"], parts, attrs["max_steps"])

    attrs: ClassVar[Mapping[str, Attr]] = {
        "condition": Attr("function", doc="of consts and carries: whether to go on, a bool []"),
        "body": Attr("function", doc="of consts and carries: the carries after a step"),
        "carries": Attr("int", 0, "how many operands, the last ones, are initial values of carries", minimum=0),
        "max_steps": Attr("int", doc="how many steps there may be at most", minimum=0),
    }
    gradient = "back over the steps that ran, each computed again; none by the condition, and none of `steps`"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Both functions for these types. Raises what does not fit."""
        parts = in_parts(types, attrs["carries"])
        condition: Body = attrs["condition"].typed(types)
        require_truth("condition", condition)
        body: Body = attrs["body"].typed(types)
        self.check_results(body, len(parts.carries))
        require_same("carry", body, parts.carries, body.outputs[: len(parts.carries)])
        return {**attrs, "condition": condition, "body": body}

    def check_results(self, body: Body, carries: int) -> None:
        """Raise BadAttribute unless the body gives the carries, and nothing else."""
        require_count("body", body, carries)

    def infer(self, *types: TensorType, body: Body, carries: int, max_steps: int, **attrs: Any) -> ResultTypes:
        """Return the types of the carries, steps and finished; and of stacks, if the engine asks for some."""
        stacks = [type.with_shape((max_steps, *type.shape)) for type in body.outputs[carries:]]
        return (*body.outputs[:carries], TensorType((), INT64), TensorType((), BOOL), *stacks)

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Without carries and stacks that nobody reads, at the end, at any step or to go on."""
        body, condition, carries = attrs["body"], attrs["condition"], attrs["carries"]
        consts = operands - carries
        wanted = {k if k < carries else k - 2 for k in read if not 0 <= k - carries < 2}
        results, inputs = step_needs(body, consts, carries, wanted, inputs_of(condition, [0]))
        kept = sum(i >= consts for i in inputs)
        fewer = {"condition": narrow(condition, [0], inputs), "body": narrow(body, results, inputs), "carries": kept}
        return Narrowed(
            {**attrs, **fewer}, inputs, [*results[:kept], carries, carries + 1, *[k + 2 for k in results[kept:]]]
        )

    def vjp(
        self,
        g: Sequence[Value | None],
        y: Value,
        *operands: Value,
        condition: Body,
        body: Body,
        carries: int,
        max_steps: int,
    ) -> Sequence[Value | None]:
        """A scan the other way round, over as many steps as ran."""
        parts = in_parts(operands, carries)

        def stack(which: Sequence[int], front: Body | None) -> Sequence[Value]:
            wide = stacking(body, len(parts.consts), which, front)
            loop = _emit(y, condition, wide, parts, max_steps)
            return [loop.output(2 + k) for k in range(len(body.outputs), len(wide.outputs))]

        return loop_gradients(
            body,
            parts,
            Parts((), g[:carries], g[carries + 2 :]),
            stack,
            lambda back, given: emit_counted(back, given, max_steps, y.output(carries), reverse=True),
            may_be_empty=True,
            keeps=y.builder.limits.keeps,
        )

    def batch(
        self, mapped: Sequence[bool], *operands: Value, condition: Body, body: Body, carries: int, max_steps: int
    ) -> Value:
        """All examples together while any goes on; one that is done stays as it is."""
        n, parts = size(mapped, operands), in_parts(operands, carries)
        flags, stacks = in_parts(mapped, carries), len(body.outputs) - carries
        many, moving = batched_carries(body, flags, n, stacks)
        asks = batched(condition, (*flags.consts, *moving), n, (False,))
        initial = [with_axis(x, m, w, n) for x, m, w in zip(parts.carries, flags.carries, moving, strict=True)]
        if asks.mapped[0]:
            return self._batch_ends(n, Parts(parts.consts, parts.carries, ()), flags, condition, body, max_steps)
        loop = _emit(operands[0], asks.body, many, Parts(parts.consts, initial, ()), max_steps)
        flagged = [*moving, False, False]
        found = [with_axis(loop.output(k), m, True, n) for k, m in enumerate(flagged)]
        return bundled(loop.builder, [*found, *[behind_steps(loop.output(carries + 2 + k)) for k in range(stacks)]])

    def _batch_ends(self, n: int, parts: Parts, flags: Parts, condition: Body, body: Body, max_steps: int) -> Value:
        """Batch a loop whose examples end one by one: whether each goes on, and its step, are carries, too."""
        carries = len(parts.carries)
        stacks = len(body.outputs) - carries
        moving = (*flags.consts, *[True] * carries)
        many = batched(body, moving, n).body
        asks = batched(condition, moving, n).body
        initial = [with_axis(x, m, True, n) for x, m in zip(parts.carries, flags.carries, strict=True)]
        builder = [*parts.consts, *parts.carries][0].builder
        on = emit_call(builder, asks, [*parts.consts, *initial]).output(0)
        steps = builder.full((n,), 0.0, FLOAT64)  # as floats, which all loops can be made of
        given = Parts(parts.consts, [*initial, on, steps], ())
        loop = _emit(on, _any_on(asks, carries), _held(many, asks, len(parts.consts), carries), given, max_steps)
        finished = loop.output(carries).logical_not()
        ran = loop.output(carries + 1).cast(dtype=INT64)
        found = [*[loop.output(k) for k in range(carries)], ran, finished]
        return bundled(builder, [*found, *[behind_steps(loop.output(carries + 4 + k)) for k in range(stacks)]])


class StackingWhile(While):
    """A `while` whose body also gives values that are stacked, [max_steps, …]; zeros where no step came to."""

    name = "stacking_while"
    internal = True

    def check_results(self, body: Body, carries: int) -> None:
        """Raise BadAttribute unless there are the carries at least."""
        require_count("body", body, carries, or_more=True)

    def written_out(
        self, *operands: Value, condition: Body, body: Body, carries: int, max_steps: int
    ) -> Sequence[Value]:
        """A `while` without stacks, and a scan that takes as many steps and stacks."""
        parts = in_parts(operands, carries)
        alone = narrow(body, range(carries), range(len(body.inputs)))
        loop = _emit(operands[0], condition, alone, parts, max_steps)
        found = [loop.output(k) for k in range(carries + 2)]
        return [*found, *bounded_scan(body, parts, max_steps, found[carries])[carries:]]


_STACKING: Final = StackingWhile()


def asking(body: Body, condition: Body, carries: int) -> Body:
    """A step that also says whether to go on: the carries, the condition of these, then what is stacked."""

    def make() -> Body:
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
        results = tidy(body).inline_into(builder, leaves)
        consts = leaves[: len(leaves) - carries]
        (on,) = tidy(condition).inline_into(builder, [*consts, *results[:carries]])
        graph = builder.graph([*results[:carries], on, *results[carries:]])
        return derived(body, graph, body.inputs)

    return body.made(("asking", condition.digest), make)


def _emit(like: Value, condition: Body, body: Body, parts: Parts, max_steps: int) -> Value:
    builder, carries = like.builder, len(parts.carries)
    op = builder.registry.ops["while"] if len(body.outputs) == carries else _STACKING
    attrs = {"condition": condition, "body": body, "carries": carries, "max_steps": max_steps}
    return builder.emit(op, [*parts.consts, *parts.carries], attrs)


def _any_on(many: Body, carries: int) -> Body:
    """Build the condition, of the consts and carries, then `on`, then `steps`: whether any example goes on."""

    def make() -> Body:
        types = _types(many)
        builder = many.budget.builder(many.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
        on = leaves[-2].where(builder.full((), 1.0, FLOAT64), builder.full((), 0.0, FLOAT64))
        return derived(many, builder.graph([on.sum().greater(on.full_like(0.0, ()))]), types)

    return many.made(("any on", carries), make)


def _held(many: Body, asks: Body, consts: int, carries: int) -> Body:
    """A batched step, where examples that do not go on stay as they are."""

    def make() -> Body:
        types = _types(asks)
        builder = many.budget.builder(many.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
        before, on, steps = leaves[consts : consts + carries], leaves[-2], leaves[-1]
        results = many.inline_into(builder, leaves[:-2])
        went = [picked(on, new, old) for new, old in zip(results, before, strict=False)]
        (goes_on,) = asks.inline_into(builder, [*leaves[:consts], *went])
        stacked = [picked(on, new, builder.full((), 0.0, new.dtype)) for new in results[carries:]]
        further = [on.logical_and(goes_on), steps + on.cast(dtype=FLOAT64)]
        return derived(many, builder.graph([*went, *further, *stacked]), types)

    return many.made(("held", asks.digest, consts, carries), make)


def _types(asks: Body) -> list[TensorType]:
    n = asks.outputs[0].shape[0]
    return [*asks.inputs, TensorType((n,), BOOL), TensorType((n,), FLOAT64)]
