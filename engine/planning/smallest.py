"""The plan of least memory: fused, or as the graph is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from engine.graph.errors import OverBudget
from engine.graph.ir import Graph
from engine.graph.limits import NO_DEADLINE, NO_END, Deadline, Limits
from engine.planning.elements import in_elements
from engine.planning.fuse import fuse
from engine.planning.plan import Plan, make_plan
from engine.planning.split_sums import split_sums


def smallest_plan(
    graph: Graph,
    limits: Limits,
    deadline: Deadline = NO_DEADLINE,
    loop_threads: int = 1,
    *,
    splits_sums: bool = False,
) -> Plan:
    """The plan of an optimised graph, fused for so many threads, if any; or as it is, where that needs less memory.

    What may be written so that loops take it in is, where there is memory for it; sums over several axes only where it
    `splits_sums`. Raises as `make_plan`.
    """
    for written in _written_for_loops(graph, splits_sums=splits_sums) if loop_threads else ():
        with suppress(OverBudget):
            return _smallest_plan(written, limits, deadline, loop_threads)
    return _smallest_plan(graph, limits, deadline, loop_threads)


def _written_for_loops(graph: Graph, *, splits_sums: bool) -> Iterator[Graph]:
    """The graph as loops would rather have it, then with less of that, as far as it is not the graph itself."""
    elements = in_elements(graph)
    split = split_sums(elements) if splits_sums else elements
    if split is not elements:
        yield split
    if elements is not graph:
        yield elements


def _smallest_plan(graph: Graph, limits: Limits, deadline: Deadline, loop_threads: int) -> Plan:
    fused = fuse(graph, threads=loop_threads) if loop_threads else graph
    if fused is graph:
        return make_plan(graph, limits, deadline)
    endless = replace(limits, bytes=NO_END)
    plan = min((make_plan(each, endless, deadline) for each in (fused, graph)), key=lambda plan: plan.peak_bytes)
    limits.admit_peak(plan.peak_bytes)
    return plan
