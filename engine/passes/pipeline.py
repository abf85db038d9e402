"""Passes: from a graph to one with the same results and fewer nodes.

Passes run after differentiation, when no node is referred to by the client's name for it any more. `PASSES` has their
order; each has a name, a switch and a timing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.graph.ir import Graph
from engine.passes.allowance import UNBOUNDED, Allowance
from engine.passes.cse import cse
from engine.passes.dce import dce
from engine.passes.fold import fold
from engine.passes.simplify import simplify


class Pass(Protocol):
    """A function from a graph to one with the same results, within what it is allowed. Raises DeadlineExceeded."""

    __name__: str

    def __call__(self, graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
        """The other graph."""


# Dead code goes first: gradient rules emit for every operand, and what nobody asked for need not be looked at. It
# goes again at the end, since what has been shortened leaves its operands behind. Folding comes before simplifying:
# what turns out to be one number everywhere can then be a neutral element.
PASSES: tuple[Pass, ...] = (dce, fold, simplify, cse, dce)


@dataclass(frozen=True, slots=True)
class Timing:
    """Time that one pass took, in seconds, and the nodes it left."""

    name: str
    seconds: float
    nodes: int


def optimise(graph: Graph, allowance: Allowance = UNBOUNDED, off: Iterable[str] = ()) -> Graph:
    """`graph` after all passes but those named in `off`: the same results from fewer nodes. Raises DeadlineExceeded."""
    return run_passes(graph, switched(off), allowance)[0]


def switched(off: Iterable[str]) -> tuple[Pass, ...]:
    """The passes without those named in `off`. Raises ValueError for a name that no pass has."""
    unknown = set(off).difference(apply.__name__ for apply in PASSES)
    if unknown:
        raise ValueError(f"there is no pass called {', '.join(sorted(unknown))}")
    return tuple(apply for apply in PASSES if apply.__name__ not in set(off))


def run_passes(
    graph: Graph, passes: Sequence[Pass] = PASSES, allowance: Allowance = UNBOUNDED
) -> tuple[Graph, list[Timing]]:
    """`graph` after `passes`, and what each of them took. Raises DeadlineExceeded."""
    timings = []
    for apply in passes:
        start = time.perf_counter()
        graph = apply(graph, allowance)
        timings.append(Timing(apply.__name__, time.perf_counter() - start, len(graph.nodes)))
    return graph, timings
