"""The order in which kernels are compiled: first those that save a run most time, which are used before the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from engine.graph.tensor_type import TensorType
from engine.loops.schedule import lanes_of
from engine.planning.estimate import step_seconds
from engine.planning.fused import Fused
from engine.planning.microkernel_op import MicrokernelOp
from engine.planning.plan import Plan

#: kernels up to which all are waited for: they are there within a tenth of a second or so
FEW: Final = 8
#: of the time that a run spends without kernels, what those that come first are for: it takes half as long then, or so;
#: and the same where the first is not to be had
FIRST_SHARES: Final = (0.6, 0.8)
#: how many times its estimate a step may take, at most: what calls NumPy often, for few numbers, takes thirty times it
MOST_WRONG: Final = 100


class SharedKernels(NamedTuple):
    """Ops of a plan that have their kernels in common, and the seconds that a run spends in them without."""

    ops: Sequence[Fused | MicrokernelOp]
    seconds: float


def heaviest_first(compiled: Plan, plan: Plan, seconds: Sequence[float] = ()) -> list[SharedKernels]:
    """Order the kernels of `compiled`, which takes the place of `plan`, whose steps took so many seconds.

    Without measured seconds, they are estimated. Of equal ones, first comes what is run first.
    """
    ops: dict[Hashable, dict[Fused | MicrokernelOp, None]] = {}
    taken: dict[Hashable, float] = {}
    for op, without in _seconds_without(compiled, plan, _believed(plan, seconds)):
        key = _kernels_of(op)
        ops.setdefault(key, {})[op] = None
        taken[key] = taken.get(key, 0.0) + without
    found = [SharedKernels([*ops[key]], taken[key]) for key in ops]
    return sorted(found, key=lambda each: -each.seconds)


def first_parts(found: Sequence[SharedKernels]) -> list[list[Fused | MicrokernelOp]]:
    """The ops whose kernels may be used before the others are there, for each of FIRST_SHARES; none of a few in all."""
    return [_first_part(found, share) for share in FIRST_SHARES] if len(found) > FEW else []


def _first_part(found: Sequence[SharedKernels], share: float) -> list[Fused | MicrokernelOp]:
    left = share * sum(each.seconds for each in found)
    ops: list[Fused | MicrokernelOp] = []
    for each in found:
        if left <= 0:
            break
        left -= each.seconds
        ops += each.ops
    return ops


def _believed(plan: Plan, seconds: Sequence[float]) -> Sequence[float]:
    """Seconds of its steps, bounded: the first of a process may have waited for a library to be loaded."""
    estimated = [*step_seconds(plan)]
    return (
        [min(took, MOST_WRONG * rough) for took, rough in zip(seconds, estimated, strict=True)]
        if seconds
        else estimated
    )


def _kernels_of(op: Fused | MicrokernelOp) -> Hashable:
    """Equal for ops that share their kernels."""
    if isinstance(op, Fused):
        return op.loop, lanes_of(op.loop, op.space.columns)
    return tuple(phase.text for phase in op.made_by.phases)


def _seconds_without(
    compiled: Plan, plan: Plan, seconds: Sequence[float]
) -> Iterator[tuple[Fused | MicrokernelOp, float]]:
    """The ops of `compiled` that have kernels, step by step, each with what it takes without.

    Steps that are alike take as long as the quickest of them: what else one was seen to take was something else's.
    """
    likenesses, quickest = [*_likenesses(plan)], dict[Hashable, float]()
    for likeness, took in zip(likenesses, seconds, strict=True):
        quickest[likeness] = min(took, quickest.get(likeness, took))
    of_node = {step.result: quickest[each] for step, each in zip(plan.steps, likenesses, strict=True)}
    for step, likeness in zip(compiled.steps, _likenesses(compiled), strict=True):
        if isinstance(step.op, Fused) and likeness not in quickest:
            yield step.op, sum(of_node.get(node, 0.0) for node in step.op.nodes)
        elif isinstance(step.op, Fused | MicrokernelOp):
            yield step.op, quickest.get(likeness, 0.0)


def _likenesses(plan: Plan) -> Iterator[Hashable]:
    """For each step, its op and the types of what it reads and writes."""
    types: dict[int, tuple[TensorType, ...]] = {slot: (plan.feed_types[feed],) for feed, slot in plan.feeds.items()}
    for step in plan.steps:
        types[step.result] = step.types
        op = step.op.op if isinstance(step.op, MicrokernelOp) else step.op
        yield op, step.types, *[types[operand] for operand in step.operands]
