"""Estimates of time, rough ones: enough to tell a call of microseconds from one of seconds before it runs."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine.codegen.kernels.schedule import lanes_of
from engine.compiler.fused_kernel import Fused
from engine.compiler.kernel_selection import MicrokernelOp
from engine.compiler.plan import Plan
from engine.ir.dtypes import real_dtype
from engine.ir.tensor_type import TensorType

#: seconds of a run, a step, a FLOP and a byte that is read or written, on one processor of today: within a factor of
#: four or so, of many kinds of steps. What is known better is measured.
RUN: Final = 5e-6
STEP: Final = 1e-6
FLOP: Final = 1e-10
BYTE: Final = 1e-10
#: of a FLOP, for each byte of an element, where there are many FLOPs for each byte that is moved: products of matrices,
#: which BLAS keeps in registers and caches, and does twice as fast on elements of half the size
DENSE_FLOP: Final = 2e-12
DENSE: Final = 8
#: the side of the matrices whose product is measured, how often, and by what factor the outcome may differ
_SIDE, _TIMES, _MOST = 384, 24, 4.0
#: seconds after which what was measured is enough: on a busy machine 24 products took half a second
_ENOUGH = 0.03
#: seconds that planning takes for each node that a client wrote, with those that differentiation adds
NODE: Final = 1e-4


def measured_dense_flop() -> float:
    """Measure `DENSE_FLOP` of NumPy's BLAS in this process: the best of some products of matrices.

    Each is so short that most are not interrupted by other processes; all together take some 30 ms. Of all estimates,
    this one differs most between machines, and jobs that take seconds and cannot be interrupted consist of products.
    """
    a, seconds = np.ones((_SIDE, _SIDE), np.float32), []
    for _ in range(_TIMES):
        started = time.perf_counter()
        a @ a
        seconds.append(time.perf_counter() - started)
        if sum(seconds) > _ENOUGH:
            break
    measured = min(seconds) / (2 * _SIDE**3 * a.itemsize)
    return min(DENSE_FLOP * _MOST, max(DENSE_FLOP / _MOST, measured))


def run_seconds(plan: Plan, dense_flop: float = DENSE_FLOP) -> float:
    """Estimate the seconds of a run: for each step its call, its arithmetic, and the bytes that it moves."""
    return RUN + sum(step_seconds(plan, dense_flop))


def step_seconds(plan: Plan, dense_flop: float = DENSE_FLOP) -> Iterator[float]:
    """Estimate the seconds of each step."""
    sizes = {slot: plan.feed_types[feed].nbytes for feed, slot in plan.feeds.items()}
    for _, operands, _, result, types, places, _, _, flops in plan.steps:
        seconds = STEP
        moved = types[0].nbytes if len(types) == 1 else sum([type.nbytes for type in types])
        sizes[result] = moved
        if places:  # a view moves nothing
            for operand in operands:
                moved += sizes[operand]
            dense = flops > DENSE * moved
            seconds += BYTE * moved + flops * (dense_flop * real_dtype(types[0].dtype).itemsize if dense else FLOP)
        yield seconds


def planning_seconds(nodes: int) -> float:
    """Estimate the seconds until there is a plan for a graph of so many nodes, at most."""
    return NODE * nodes


# The order in which kernels are compiled: first those that save a run most time. They are used before the rest.

#: kernels up to which all are waited for: they are there within a tenth of a second or so
FEW: Final = 8
#: of the time that a run spends without kernels, what those that come first are for: it takes half as long then, or so;
#: and the same where the first is not to be had
FIRST_SHARES: Final = (0.6, 0.8)
#: how many times its estimate a step may take, at most: what calls NumPy often, for few numbers, takes thirty times it
MOST_WRONG: Final = 100


class SharedKernels(NamedTuple):
    """Ops of a plan that share their kernels, and the seconds that a run spends in them without kernels."""

    ops: Sequence[Fused | MicrokernelOp]
    seconds: float


def compile_order(compiled: Plan, plan: Plan, seconds: Sequence[float] = ()) -> list[SharedKernels]:
    """Order the kernels of `compiled`, which takes the place of `plan`, whose steps took so many seconds.

    Without measured seconds, they are estimated. Of equal ones, the one that runs first comes first.
    """
    ops: dict[Hashable, dict[Fused | MicrokernelOp, None]] = {}
    taken: dict[Hashable, float] = {}
    for op, without in _seconds_without(compiled, plan, _believed(plan, seconds)):
        key = _kernels_of(op)
        ops.setdefault(key, {})[op] = None
        taken[key] = taken.get(key, 0.0) + without
    return sorted((SharedKernels([*ops[key]], taken[key]) for key in ops), key=lambda each: -each.seconds)


def first_parts(kernels: Sequence[SharedKernels]) -> list[list[Fused | MicrokernelOp]]:
    """Select the ops whose kernels may be used before the others, for each of FIRST_SHARES; none of a few in all."""
    return [_first_part(kernels, share) for share in FIRST_SHARES] if len(kernels) > FEW else []


def _first_part(kernels: Sequence[SharedKernels], share: float) -> list[Fused | MicrokernelOp]:
    left = share * sum(each.seconds for each in kernels)
    ops: list[Fused | MicrokernelOp] = []
    for each in kernels:
        if left <= 0:
            break
        left -= each.seconds
        ops += each.ops
    return ops


def _believed(plan: Plan, seconds: Sequence[float]) -> Sequence[float]:
    """Bound the seconds of its steps: the first of a process may have waited for a library to be loaded."""
    estimated = [*step_seconds(plan)]
    if not seconds:
        return estimated
    return [min(took, MOST_WRONG * rough) for took, rough in zip(seconds, estimated, strict=True)]


def _kernels_of(op: Fused | MicrokernelOp) -> Hashable:
    """Key that is equal for ops that share their kernels."""
    if isinstance(op, Fused):
        return op.loop, lanes_of(op.loop, op.space.columns)
    return tuple(phase.text for phase in op.made_by.phases)


def _seconds_without(
    compiled: Plan, plan: Plan, seconds: Sequence[float]
) -> Iterator[tuple[Fused | MicrokernelOp, float]]:
    """Yield the ops of `compiled` that have kernels, step by step, each with its seconds without them.

    Steps that are alike take as long as the quickest of them: a slower one was held up by something else.
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
    """Yield for each step its op and the types of what it reads and writes."""
    types: dict[int, tuple[TensorType, ...]] = {slot: (plan.feed_types[feed],) for feed, slot in plan.feeds.items()}
    for step in plan.steps:
        types[step.result] = step.types
        op = step.op.op if isinstance(step.op, MicrokernelOp) else step.op
        yield op, step.types, *[types[operand] for operand in step.operands]
