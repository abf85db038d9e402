"""Compiled plans of no more memory than the plan whose place they take: kernels that need more are taken apart."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final, NamedTuple

from engine.graph.ir import Graph
from engine.graph.limits import NO_LIMITS
from engine.graph.op import Kernel
from engine.planning.arena import live_bytes
from engine.planning.fuse import WrittenKernel, kernels_in, with_kernels
from engine.planning.fused import Fused
from engine.planning.kernel_selection import select_alike, select_microkernels
from engine.planning.laid_out import has_products, laid_where_read
from engine.planning.plan import Plan, make_plan
from engine.planning.storage import Storage

#: kernels that are taken apart, one after the other, before fusing is given up
MOST_APART: Final = 8


class Compilable(NamedTuple):
    """A graph, the kernels of it that can be compiled, and the `plan` of it with these and all of its microkernels.

    It is to run within `most_bytes`.
    """

    graph: Graph
    kernels: Sequence[WrittenKernel]
    selected: Graph
    plan: Plan
    most_bytes: int

    def partly(self, kept: Container[Kernel]) -> Plan | None:
        """The plan with the kernels of these ops of `plan` alone; None where that takes more memory than it may.

        What else would be compiled runs node by node, as it did before.
        """
        kernels = [kernel for kernel in self.kernels if kernel.node is None or kernel.node.op in kept]
        plan = make_plan(select_alike(with_kernels(self.graph, kernels), self.selected, kept), NO_LIMITS, tight=True)
        return plan if plan.peak_bytes <= self.most_bytes else None


def compiled_within(
    graph: Graph,
    most_bytes: int,
    threads: int,
    *,
    microkernels: bool = True,
    all_pay: bool = False,
    few_launches: bool = False,
) -> Compilable | None:
    """`graph` with all that can be compiled, of a peak of at most `most_bytes`; None where that is nothing.

    At most `threads` take part in a kernel; with `all_pay`, as in `kernels_in`, all that may be is one. What a kernel
    reads lives longer: where that makes the peak, the kernel is left out, and the next one is looked at. What is
    selected needs no more than it did, but for a workspace; without `microkernels` nothing is. With `few_launches`,
    products write where they are read, and kernels are delayed to where they join others, if there is memory for it.
    """
    ways = _Ways(most_bytes, threads, microkernels, all_pay, few_launches)
    if not few_launches:
        return _within(graph, ways)
    found = _laid_within(graph, ways) if has_products(graph) else None
    return found or _within(graph, ways) or _within(graph, ways._replace(late=False))


def _laid_within(graph: Graph, ways: _Ways) -> Compilable | None:
    """Compile with results written where they are read; None where there are none, or no memory for it."""
    kernels = kernels_in(graph, 0, compiled=True, threads=ways.threads, all_pay=ways.all_pay, late=ways.late)
    laid = laid_where_read(graph, {i for kernel in kernels for i in kernel.group})
    return None if laid.graph is graph else _within(laid.graph, ways, laid.numbers)


class _Ways(NamedTuple):
    """Ways in which `compiled_within` compiles, as its arguments say; `late` is of `kernels_in`."""

    most_bytes: int
    threads: int
    microkernels: bool
    all_pay: bool
    late: bool


def _within(graph: Graph, ways: _Ways, numbers: Sequence[int] | None = None) -> Compilable | None:
    """`graph`, as far as it can be compiled; None where nothing of it can.

    With `numbers`, its nodes stand for others, which its kernels are told of, and it is worth it without any kernel.
    """
    most_bytes, threads, microkernels, all_pay, late = ways
    apart: set[int] = set()
    for _ in range(1 + MOST_APART):
        kernels = kernels_in(graph, 0, compiled=True, threads=threads, apart=apart, all_pay=all_pay, late=late)
        fused = with_kernels(graph, kernels)
        plan = make_plan(fused, NO_LIMITS, tight=True)
        if plan.peak_bytes <= most_bytes:
            if numbers is not None:
                kernels = [kernel.of_nodes(numbers) for kernel in kernels]
                fused = with_kernels(graph, kernels)
                plan = make_plan(fused, NO_LIMITS, tight=True)
            # What is left of the memory beside all that a step does not only work in.
            workspace = most_bytes - sum(plan.buffers) - sum(type.nbytes for type in plan.feed_types.values())
            selected = select_microkernels(fused, workspace, threads, in_body=all_pay) if microkernels else fused
            if selected is graph and numbers is None:
                return None
            if selected is not fused:
                plan = make_plan(selected, NO_LIMITS, tight=True)
            return Compilable(graph, kernels, selected, plan, most_bytes)
        kernel = _at_the_peak(fused)
        if kernel is None:
            return None
        apart.update(kernel.nodes)
    return None


def _at_the_peak(graph: Graph) -> Fused | None:
    """The kernel where most is alive, or the last one before."""
    storage = Storage(graph)
    live = live_bytes(storage.blocks(), storage.kept())
    peak = max(range(len(live)), key=live.__getitem__, default=0)
    ops = [node.op for node in graph.nodes[: peak + 1]]
    return next((op for op in reversed(ops) if isinstance(op, Fused)), None)
