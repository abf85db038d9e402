"""How long things will take, roughly: enough to tell a call of microseconds from one of seconds before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.planning.plan import Plan

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
#: seconds that planning takes for each node that a client wrote, with those that differentiation adds
NODE: Final = 1e-4


def run_seconds(plan: Plan) -> float:
    """Seconds that a run of the plan takes: for each step what a call costs, its arithmetic, and what it moves."""
    return RUN + sum(step_seconds(plan))


def step_seconds(plan: Plan) -> Iterator[float]:
    """Seconds that each step takes."""
    sizes = {slot: plan.feed_types[feed].nbytes for feed, slot in plan.feeds.items()}
    for step in plan.steps:
        seconds = STEP
        moved = sizes[step.result] = sum([type.nbytes for type in step.types])
        if step.places:  # a view moves nothing
            moved += sum([sizes[operand] for operand in step.operands])
            dense = step.flops > DENSE * moved
            seconds += BYTE * moved + step.flops * (DENSE_FLOP * step.types[0].dtype.itemsize if dense else FLOP)
        yield seconds


def planning_seconds(nodes: int) -> float:
    """Seconds until there is a plan for a graph of so many nodes, at most."""
    return NODE * nodes
