"""Estimates of time, rough ones: enough to tell a call of microseconds from one of seconds before it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import numpy as np

from engine.graph.dtypes import real_dtype
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
#: the side of the matrices whose product is measured, how often, and by what factor the outcome may differ
_SIDE, _TIMES, _MOST = 384, 24, 4.0
#: seconds after which what was measured is enough: on a busy machine 24 products took half a second
_ENOUGH = 0.03
#: seconds that planning takes for each node that a client wrote, with those that differentiation adds
NODE: Final = 1e-4


def measured_dense_flop() -> float:
    """`DENSE_FLOP` of NumPy's BLAS in this process: the best of some products of matrices.

    Each is so short that most are not interrupted, where other processes run, too; all together take some 30 ms, and
    none begins later than that.
    It is what differs most between machines, and what jobs consist of that take seconds and cannot be interrupted.
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
    """Seconds that a run of the plan takes: for each step what a call costs, its arithmetic, and what it moves."""
    return RUN + sum(step_seconds(plan, dense_flop))


def step_seconds(plan: Plan, dense_flop: float = DENSE_FLOP) -> Iterator[float]:
    """Seconds that each step takes."""
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
    """Seconds until there is a plan for a graph of so many nodes, at most."""
    return NODE * nodes
