"""Gradients of loops, step by step from the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.bodies.keep import CheckpointedBack, checkpointed
from engine.bodies.runs_functions import Parts
from engine.bodies.tidy import derived, tidy
from engine.bodies.way_back import BodyBack, paths, way_back
from engine.graph.body import Body
from engine.graph.ir import Builder, Value
from engine.graph.tensor_type import TensorType

#: appends a loop of a body the other way round
EmitLoop = Callable[[Body, Parts], Value]
#: appends the loop once more, and gives these carries as they came to each step, and what a body makes of it, stacked
StackCarries = Callable[[Sequence[int], Body | None], Sequence[Value]]


def loop_gradients(
    body: Body, operands: Parts, arrived: Parts, stack: StackCarries, emit: EmitLoop, *, may_be_empty: bool, keeps: bool
) -> list[Value | None]:
    """Cotangents of the operands, from those that have `arrived` at carries and stacks (under `sequences`).

    `may_be_empty`: where there may be no step, what arrives at a carry may arrive at its initial value, whatever the
    body does with it. `keeps`: what is dear to compute again is stacked beside the carries.
    """
    moving = _moving(body, operands, arrived)
    stacks = [k for k, g in enumerate(arrived.sequences) if g is not None]
    carries = len(operands.carries)
    back = way_back(body, (*moving, *[carries + k for k in stacks]))
    if not moving and not back.reached:
        return [None] * sum(map(len, operands))
    kept = checkpointed(body, back, len(operands.consts)) if keeps else CheckpointedBack(back, None)
    plan = _Layout.of(body, operands, moving, stacks, kept)
    loop = emit(plan.body, plan.operands(arrived, stack))
    return plan.gradients(loop, may_be_empty=may_be_empty)


def _moving(body: Body, operands: Parts, arrived: Parts) -> list[int]:
    """The carries whose cotangents may be other than zero at some step."""
    consts, carries = len(operands.consts), len(operands.carries)
    reach = paths(body)
    moving = {k for k, g in enumerate(arrived.carries) if g is not None}
    todo = [*moving, *[carries + k for k, g in enumerate(arrived.sequences) if g is not None]]
    # A cotangent that a step hands to a carry arrives at the step before, as a cotangent of the result of that number:
    # carries join until none is new.
    while todo:
        for i in reach[todo.pop()]:
            k = i - consts
            if 0 <= k < carries and k not in moving:
                moving.add(k)
                todo.append(k)
    return sorted(moving)


@dataclass(frozen=True)
class _Layout:
    """Layout of the loop back: its body, and what stands where.

    `read` are the inputs of the step's way back that it needs, by which part they belong to.
    """

    given: Parts
    moving: Sequence[int]
    stacks: Sequence[int]
    back: BodyBack
    front: Body | None
    read: Parts
    summed: Sequence[int]
    body: Body

    @classmethod
    def of(
        cls, body: Body, operands: Parts, moving: Sequence[int], stacks: Sequence[int], kept: CheckpointedBack
    ) -> _Layout:
        back = kept.back
        read = _by_part(operands, sorted(back.used_inputs))
        summed = _by_part(operands, back.reached).consts
        step = _step_back(body, operands, moving, kept, read, summed)
        return cls(operands, moving, stacks, back, kept.front, read, summed, step)

    def operands(self, arrived: Parts, stack: StackCarries) -> Parts:
        """Return the operands of the loop back."""
        given = self.given
        came_last = enumerate(zip(given.carries, arrived.carries, strict=True))
        seeds = [x.full_like(0.0) if g is None else g for k, (x, g) in came_last if k in self.moving]
        sums = [given.consts[i].full_like(0.0) for i in self.summed]
        came = stack(self.read.carries, self.front) if self.read.carries or self.front else ()
        stacks = [arrived.sequences[k] for k in self.stacks]
        sequences = [given.sequences[i] for i in self.read.sequences]
        count = len(self.read.carries)
        through = [*came[:count], *sequences, *stacks, *came[count:]]
        return Parts([given.consts[i] for i in self.read.consts], [*seeds, *sums], through)

    def gradients(self, loop: Value, *, may_be_empty: bool) -> list[Value | None]:
        """Return the gradients with respect to the operands of the loop."""
        reached = _by_part(self.given, self.back.reached)
        consts: list[Value | None] = [None] * len(self.given.consts)
        carries: list[Value | None] = [None] * len(self.given.carries)
        sequences: list[Value | None] = [None] * len(self.given.sequences)
        for place, k in enumerate(self.moving):
            if may_be_empty or k in reached.carries:
                carries[k] = loop.output(place)
        for place, i in enumerate(self.summed):
            consts[i] = loop.output(len(self.moving) + place)
        for place, i in enumerate(reached.sequences):
            sequences[i] = loop.output(len(self.moving) + len(self.summed) + place)
        return [*consts, *carries, *sequences]


def _by_part(operands: Parts, inputs: Sequence[int]) -> Parts:
    """Inputs of a body, numbered within the part that they belong to; what comes behind all parts is left out."""
    consts, carries, sequences = map(len, operands)
    return Parts(
        [i for i in inputs if i < consts],
        [i - consts for i in inputs if consts <= i < consts + carries],
        [i - consts - carries for i in inputs if consts + carries <= i < consts + carries + sequences],
    )


def _step_back(
    body: Body, operands: Parts, moving: Sequence[int], kept: CheckpointedBack, read: Parts, summed: Sequence[int]
) -> Body:
    """Complete a step's way back: sums go on, cotangents without a path are zeros."""
    (consts, carries, _), back = map(len, operands), kept.back
    builder = body.budget.builder(body.graph.registry)
    types: list[TensorType] = []

    def leaf(type: TensorType) -> Value:
        types.append(type)
        return builder.leaf(type, len(types) - 1)

    inputs, first = back.body.inputs, len(body.inputs)
    fed: dict[int, Value] = {i: leaf(inputs[i]) for i in read.consts}
    fed |= {first + place: leaf(inputs[first + place]) for place in range(len(moving))}
    sums = [leaf(inputs[i]) for i in summed]
    fed |= {consts + k: leaf(inputs[consts + k]) for k in read.carries}
    fed |= {consts + carries + i: leaf(inputs[consts + carries + i]) for i in read.sequences}
    fed |= {i: leaf(inputs[i]) for i in range(first + len(moving), len(inputs))}
    gradients = dict(zip(back.reached, back.body.inline_into(builder, fed), strict=True))
    onward = [gradients.get(consts + k) or zeros(builder, body.outputs[k]) for k in moving]
    added = [total + gradients[i] for total, i in zip(sums, summed, strict=True)]
    stacked = [g for i, g in gradients.items() if i >= consts + carries]
    return derived(body, builder.graph([*onward, *added, *stacked]), types)


def zeros(builder: Builder, type: TensorType) -> Value:
    """Append a tensor of zeros."""
    return builder.full(type.shape, 0.0, type.dtype)


def stacking(body: Body, consts: int, carries: Sequence[int], front: Body | None = None) -> Body:
    """The body with these carries, as they come to a step, behind its results; then what `front` makes of a step."""
    name = "stacking", consts, tuple(carries), front and front.digest
    return body.made(name, lambda: _stacking(body, consts, carries, front))


def _stacking(body: Body, consts: int, carries: Sequence[int], front: Body | None) -> Body:
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
    results = tidy(body).inline_into(builder, leaves)
    came = [leaves[consts + k] for k in carries]
    made = front.inline_into(builder, leaves) if front else []
    return derived(body, builder.graph([*results, *came, *made]), body.inputs)
