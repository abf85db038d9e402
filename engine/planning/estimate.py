"""How long things will take, roughly: enough to tell a call of microseconds from one of seconds before it runs."""

from __future__ import annotations

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
    sizes = {slot: plan.feed_types[feed].nbytes for feed, slot in plan.feeds.items()}
    seconds = RUN + STEP * len(plan.steps)
    for _, operands, _, result, types, places, _, _, flops in plan.steps:
        moved = types[0].nbytes if len(types) == 1 else sum([type.nbytes for type in types])
        sizes[result] = moved
        if places:  # a view moves nothing
            for operand in operands:
                moved += sizes[operand]
            dense = flops > DENSE * moved
            seconds += BYTE * moved + flops * (DENSE_FLOP * types[0].dtype.itemsize if dense else FLOP)
    return seconds


def planning_seconds(nodes: int) -> float:
    """Seconds until there is a plan for a graph of so many nodes, at most."""
    return NODE * nodes
