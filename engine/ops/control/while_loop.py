"""While loops with a bound, and their gradients.

A `while` runs its body until the condition is false, at most `max_steps` times. The bound is what makes it
differentiable in reverse mode: the carries that each step received go to stacks [max_steps, …] of a fixed shape, whose
entries beyond the steps taken are zeros. The gradient is a `CountedScan` over these stacks, from the last step taken to
the first. With the const a, the carry x, the body x' = x · a and n steps taken:

    forward    while condition(x):   xs[n] = x;  x = x · a;  n = n + 1
    backward   t = n − 1 … 0:         ga = ga + gx · xs[t];  gx = gx · a

n is a result of the forward loop (`steps`), and data, not a shape: a plan is valid for any number of steps. The
condition gives a bool and adds nothing to the gradient. A `StackingWhile` is the forward loop with stacks; the planner
merges it with the first, which has the same condition and carries.

In a batch, examples end at different steps. If the condition depends on the example, one loop runs until all have
ended: each example's condition and step count become carries, and the carries of an example that has ended no longer
change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Final

from engine.autodiff.bodies import batched, derive_body, narrow, required_by_step, required_inputs, tidy
from engine.autodiff.control_flow import (
    Parts,
    RunsFunctions,
    loop_gradients,
    make_stacking_body,
    require_count,
    require_predicate,
    require_same,
    split_operands,
)
from engine.ir.attributes import Attr
from engine.ir.graph import Builder, Value
from engine.ir.op import Narrowed, ResultTypes
from engine.ir.program import Body
from engine.ir.tensor_type import BOOL, FLOAT64, INT64, TensorType
from engine.ops.common.batching import batch_size, pack
from engine.ops.control.call import emit_call
from engine.ops.control.scan import (
    add_batch_axis,
    batch_carries,
    emit_bounded_scan,
    emit_counted,
    select_by_example,
    swap_leading_axes,
)


class While(RunsFunctions):
    """Repeats carries = body(consts, carries) while condition(consts, carries) is true, at most `max_steps` times.

    The condition returns a bool []. It is evaluated before each step, and after the last step that is allowed. Results:
    the carries; `steps`, int64 [], the number of steps that ran; `finished`, bool [], false if the loop stopped at the
    bound. JAX: `lax.while_loop`, which has no bound and supports forward-mode derivatives only. PyTorch: a Python loop.
    """

    name = "while"
    section = "while_loop"
    steps_body = True
    extra_results = 2

    @property
    def family(self) -> str:
        """Name shared by the loops with and without stacks."""
        return "while"

    def emit_loop(self, builder: Builder, operands: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
        """Append the loop, as a `StackingWhile` if the body has stacked results."""
        parts = split_operands(operands, attrs["carries"])
        return _emit(builder, attrs["condition"], attrs["body"], parts, attrs["max_steps"])

    attrs: ClassVar[Mapping[str, Attr]] = {
        "condition": Attr("function", doc="function of consts and carries; returns whether to continue, a bool []"),
        "body": Attr("function", doc="function of consts and carries; returns the next carries"),
        "carries": Attr("int", 0, "number of operands, the last ones, that are initial values of carries", minimum=0),
        "max_steps": Attr("int", doc="maximum number of steps", minimum=0),
    }
    gradient = "backward over the steps that ran, recomputing each; the condition and `steps` have none"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Type both functions for these operands. Raises EngineError for a function that does not fit."""
        parts = split_operands(types, attrs["carries"])
        condition: Body = attrs["condition"].typed(types)
        require_predicate("condition", condition)
        body: Body = attrs["body"].typed(types)
        self.check_results(body, len(parts.carries))
        require_same("carry", body, parts.carries, body.outputs[: len(parts.carries)])
        return {**attrs, "condition": condition, "body": body}

    def check_results(self, body: Body, carries: int) -> None:
        """Raise BadAttribute unless the body returns exactly the carries."""
        require_count("body", body, carries)

    def infer(self, *types: TensorType, body: Body, carries: int, max_steps: int, **attrs: Any) -> ResultTypes:
        """Return the types of the carries, of steps and finished, and of the stacks if the engine asks for any."""
        stacks = [type.with_shape((max_steps, *type.shape)) for type in body.outputs[carries:]]
        return (*body.outputs[:carries], TensorType((), INT64), TensorType((), BOOL), *stacks)

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Drop carries and stacks that are not read: after the loop, at a later step, or in the condition."""
        body, condition, carries = attrs["body"], attrs["condition"], attrs["carries"]
        consts = operands - carries
        # results of the loop are the carries, `steps`, `finished` and the stacks; the body returns carries and stacks
        body_results = {k if k < carries else k - 2 for k in read if not 0 <= k - carries < 2}
        results, inputs = required_by_step(body, consts, carries, body_results, required_inputs(condition, [0]))
        carries_left = sum(i >= consts for i in inputs)
        narrowed_attrs = {
            "condition": narrow(condition, [0], inputs),
            "body": narrow(body, results, inputs),
            "carries": carries_left,
        }
        return Narrowed(
            {**attrs, **narrowed_attrs},
            inputs,
            [*results[:carries_left], carries, carries + 1, *[k + 2 for k in results[carries_left:]]],
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
        """Append a scan in the opposite direction, over the steps that were taken."""
        parts = split_operands(operands, carries)

        def stack(carry_indices: Sequence[int], front: Body | None) -> Sequence[Value]:
            stacking_body = make_stacking_body(body, len(parts.consts), carry_indices, front)
            loop = _emit(y.builder, condition, stacking_body, parts, max_steps)
            return [loop.output(2 + k) for k in range(len(body.outputs), len(stacking_body.outputs))]

        return loop_gradients(
            body,
            parts,
            Parts((), g[:carries], g[carries + 2 :]),
            stack,
            lambda backward_body, backward_parts: emit_counted(
                backward_body, backward_parts, max_steps, y.output(carries), reverse=True
            ),
            may_be_empty=True,
            checkpointing=y.builder.limits.checkpointing,
        )

    def batch(
        self, mapped: Sequence[bool], *operands: Value, condition: Body, body: Body, carries: int, max_steps: int
    ) -> Value:
        """Run all examples together as long as any continues; freeze each one that has ended."""
        n, parts = batch_size(mapped, operands), split_operands(operands, carries)
        flags, stacks = split_operands(mapped, carries), len(body.outputs) - carries
        batched_body, mapped_carries = batch_carries(body, flags, n, stacks)
        batched_condition = batched(condition, (*flags.consts, *mapped_carries), n, (False,))
        initial = [
            add_batch_axis(x, m, w, n) for x, m, w in zip(parts.carries, flags.carries, mapped_carries, strict=True)
        ]
        # otherwise the condition is one bool for all examples, and they end together
        if batched_condition.mapped[0]:
            return self._batch_separate_ends(
                n, Parts(parts.consts, parts.carries, ()), flags, condition, body, max_steps
            )
        loop = _emit(
            operands[0].builder, batched_condition.body, batched_body, Parts(parts.consts, initial, ()), max_steps
        )
        result_flags = [*mapped_carries, False, False]
        results = [add_batch_axis(loop.output(k), m, True, n) for k, m in enumerate(result_flags)]
        return pack(loop.builder, [*results, *[swap_leading_axes(loop.output(carries + 2 + k)) for k in range(stacks)]])

    def _batch_separate_ends(
        self, n: int, parts: Parts, flags: Parts, condition: Body, body: Body, max_steps: int
    ) -> Value:
        """Batch a loop whose examples end separately: each one's condition and step count become carries."""
        carries = len(parts.carries)
        stacks = len(body.outputs) - carries
        mapped = (*flags.consts, *[True] * carries)
        batched_body = batched(body, mapped, n).body
        batched_condition = batched(condition, mapped, n).body
        initial = [add_batch_axis(x, m, True, n) for x, m in zip(parts.carries, flags.carries, strict=True)]
        builder = [*parts.consts, *parts.carries][0].builder
        # an example may take no step at all, so the condition is evaluated once before the loop
        is_active = emit_call(builder, batched_condition, [*parts.consts, *initial]).output(0)
        steps = builder.full((n,), 0.0, FLOAT64)  # as floats: compiled kernels read no integers
        loop_parts = Parts(parts.consts, [*initial, is_active, steps], ())
        loop = _emit(
            builder,
            _any_active(batched_condition, carries),
            _masked_step(batched_body, batched_condition, len(parts.consts), carries),
            loop_parts,
            max_steps,
        )
        finished = loop.output(carries).logical_not()
        steps_taken = loop.output(carries + 1).cast(dtype=INT64)
        results = [*[loop.output(k) for k in range(carries)], steps_taken, finished]
        return pack(builder, [*results, *[swap_leading_axes(loop.output(carries + 4 + k)) for k in range(stacks)]])


class StackingWhile(While):
    """`while` whose body also returns values to stack, [max_steps, …]; zeros for steps not taken."""

    name = "stacking_while"
    internal = True

    def check_results(self, body: Body, carries: int) -> None:
        """Raise BadAttribute unless the body returns at least the carries."""
        require_count("body", body, carries, or_more=True)

    def written_out(
        self, *operands: Value, condition: Body, body: Body, carries: int, max_steps: int
    ) -> Sequence[Value]:
        """Return the results of a `while` without stacks, and of a scan that repeats its steps and stacks."""
        parts = split_operands(operands, carries)
        # ops of the registry cannot stack in a `while`, so its steps are repeated in a scan, which can
        unstacked = narrow(body, range(carries), range(len(body.inputs)))
        loop = _emit(operands[0].builder, condition, unstacked, parts, max_steps)
        results = [loop.output(k) for k in range(carries + 2)]
        return [*results, *emit_bounded_scan(body, parts, max_steps, results[carries])[carries:]]


_STACKING: Final = StackingWhile()


def step_with_condition(body: Body, condition: Body, carries: int) -> Body:
    """Build a step that also evaluates the condition: the new carries, their condition, then the stacked values."""

    def make() -> Body:
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
        results = tidy(body).inline_into(builder, leaves)
        consts = leaves[: len(leaves) - carries]
        (goes_on,) = tidy(condition).inline_into(builder, [*consts, *results[:carries]])
        graph = builder.graph([*results[:carries], goes_on, *results[carries:]])
        return derive_body(body, graph, body.inputs)

    return body.cached(("step_with_condition", condition.digest), make)


def _emit(builder: Builder, condition: Body, body: Body, parts: Parts, max_steps: int) -> Value:
    carries = len(parts.carries)
    op = builder.registry.ops["while"] if len(body.outputs) == carries else _STACKING
    attrs = {"condition": condition, "body": body, "carries": carries, "max_steps": max_steps}
    return builder.emit(op, [*parts.consts, *parts.carries], attrs)


def _any_active(batched_condition: Body, carries: int) -> Body:
    """Build the condition of a batched loop: whether any example is active. Inputs: consts, carries, flags, steps."""

    def make() -> Body:
        types = _masked_inputs(batched_condition)
        builder = batched_condition.budget.builder(batched_condition.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
        active = leaves[-2].where(builder.full((), 1.0, FLOAT64), builder.full((), 0.0, FLOAT64))
        return derive_body(batched_condition, builder.graph([active.sum().greater(active.full_like(0.0, ()))]), types)

    return batched_condition.cached(("any on", carries), make)


def _masked_step(batched_body: Body, batched_condition: Body, consts: int, carries: int) -> Body:
    """Build a batched step in which examples that have ended keep their carries and stack zeros."""

    def make() -> Body:
        types = _masked_inputs(batched_condition)
        builder = batched_body.budget.builder(batched_body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
        old_carries, is_active, steps = leaves[consts : consts + carries], leaves[-2], leaves[-1]
        results = batched_body.inline_into(builder, leaves[:-2])
        new_carries = [select_by_example(is_active, new, old) for new, old in zip(results, old_carries, strict=False)]
        (goes_on,) = batched_condition.inline_into(builder, [*leaves[:consts], *new_carries])
        stacked = [select_by_example(is_active, new, builder.full((), 0.0, new.dtype)) for new in results[carries:]]
        new_state = [is_active.logical_and(goes_on), steps + is_active.cast(dtype=FLOAT64)]
        return derive_body(batched_body, builder.graph([*new_carries, *new_state, *stacked]), types)

    return batched_body.cached(("held", batched_condition.digest, consts, carries), make)


def _masked_inputs(batched_condition: Body) -> list[TensorType]:
    n = batched_condition.outputs[0].shape[0]
    return [*batched_condition.inputs, TensorType((n,), BOOL), TensorType((n,), FLOAT64)]
