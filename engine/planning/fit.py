"""A compiled plan of no more memory than the plan whose place it takes: loops that need more are taken apart."""

from __future__ import annotations

from typing import Final

from engine.graph.ir import Graph
from engine.graph.limits import NO_END, Limits
from engine.planning.arena import live_bytes
from engine.planning.fuse import fuse
from engine.planning.fused import Fused
from engine.planning.plan import Plan, make_plan
from engine.planning.storage import Storage
from engine.planning.tile import tile

#: loops that are taken apart, one after the other, before fusing is given up
MOST_APART: Final = 8

_UNBOUNDED: Final = Limits(nodes=NO_END, rank=NO_END, bytes=NO_END, flops=NO_END)


def compiled_within(graph: Graph, most_bytes: int, threads: int, *, tiles: bool = True) -> Plan | None:
    """The plan of `graph` with all that can be compiled, of a peak of at most `most_bytes`; None where that is nothing.

    At most `threads` take part in a kernel. A loop lets live longer what it reads: where that makes the peak, it is
    left out, and the next one is looked at. What is tiled needs no more than it did, but for a workspace;
    without `tiles` nothing is.
    """
    apart: set[int] = set()
    for _ in range(1 + MOST_APART):
        fused = fuse(graph, 0, compiled=True, threads=threads, apart=apart)
        plan = make_plan(fused, _UNBOUNDED, tight=True)
        if plan.peak_bytes <= most_bytes:
            tiled = tile(fused, most_bytes - _without_workspace(plan), threads) if tiles else fused
            if tiled is fused:
                return plan if fused is not graph else None
            return make_plan(tiled, _UNBOUNDED, tight=True)
        loop = _at_the_peak(fused)
        if loop is None:
            return None
        apart.update(loop.nodes)
    return None


def _without_workspace(plan: Plan) -> int:
    """The bytes of the peak that no step only works in."""
    return sum(plan.buffers) + sum(type.nbytes for type in plan.feed_types.values())


def _at_the_peak(graph: Graph) -> Fused | None:
    """The loop where most is alive, or the last one before."""
    storage = Storage(graph)
    live = live_bytes(storage.blocks(), storage.kept())
    peak = max(range(len(live)), key=live.__getitem__, default=0)
    ops = [node.op for node in graph.nodes[: peak + 1]]
    return next((op for op in reversed(ops) if isinstance(op, Fused)), None)
