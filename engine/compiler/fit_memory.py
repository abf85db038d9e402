"""Fitting plans to memory: fused or not, with recomputed values, and with as many kernels as there is memory for.

Rematerialization trades recomputation for memory. A backward pass reads values of the forward pass in reverse order, so
that all of them are live when it begins. Instead, the forward pass is cut into segments. Values that cross a boundary
are saved. The other values of a segment are dropped, and recomputed together when the backward pass reads the first of
them (T. Chen et al., "Training deep nets with sublinear memory cost"):

    forward     a → b → | c → d → | e → f → loss      save b and d, drop a and c; the last segment stays
    backward    f and e, as they are
                c' from b, then the gradients of d and c
                a' from the input, then the gradients of b and a

With n values in √n segments, about 2√n of them are live at a time, for at most one more forward pass.

Values differ in cost: recomputing a product takes far more FLOPs per byte than recomputing a sine. So there are two
levels of segments. Coarse segments hold the expensive values, and each of them is divided into fine segments for the
cheap ones. `rematerialize` tries one coarse segment with finer and finer ones in it, which keeps all products, then two
coarse segments, and so on, until a plan fits.

`compiled_within` solves the opposite problem: given the memory of a plan that runs node by node, it finds the kernels
that can replace its nodes without exceeding that memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Final, NamedTuple

from engine.compiler.fused_kernel import Fused, select_alike, select_microkernels
from engine.compiler.fusion import WrittenKernel, find_kernels, fuse, with_kernels
from engine.compiler.output_layout import has_products, output_layout
from engine.compiler.plan import MemoryBlocks, Plan, live_bytes, make_plan, peak_memory_node
from engine.compiler.sums import split_sums
from engine.ir.errors import OverBudget, OverMemory
from engine.ir.graph import Builder, Graph, Node, Value, ancestors, locate_error
from engine.ir.op import Kernel, ResultTypes
from engine.ir.run_context import NO_DEADLINE, NO_END, NO_LIMITS, Deadline, Limits

#: numbers of coarse segments to try, in this order
_SEGMENTS: Final = (1, 2, 4, 8, 12, 16, 24, 32)
#: numbers of fine segments per coarse segment to try
_FINE: Final = (1, 4, 8)
#: maximum FLOPs per byte of the result for a value to be cheap
_CHEAP: Final = 16
#: maximum kernels to exclude, one after the other, before fusion is given up
MOST_APART: Final = 8


def with_elementwise_forms(graph: Graph) -> Graph:
    """Replace ops by elementwise nodes that compute the same bits, so that they fuse.

    Draws of random numbers thus join the kernels that read them. Return `graph` itself if there is nothing to replace.
    """
    replaceable = {op for op in {node.op for node in graph.nodes} if isinstance(op, Kernel) and op.has_elementwise_form}
    if not replaceable:
        return graph

    def write_node(node: Node, operands: Sequence[Value]) -> Value | None:
        return node.kernel.as_elementwise(*operands, **node.attrs) if node.op in replaceable else None

    return Builder(graph.registry, NO_LIMITS).rewrite(graph, write_node)


def choose_plan(
    graph: Graph,
    limits: Limits,
    deadline: Deadline = NO_DEADLINE,
    kernel_threads: int = 1,
    *,
    splits_sums: bool = False,
) -> Plan:
    """Plan an optimised graph, fused for `kernel_threads` threads if any, or unfused if that needs less memory.

    Rewrites that let kernels take in more nodes are tried first, and used if they fit. Sums over several axes are split
    only with `splits_sums`. Raises the errors of `make_plan`.
    """
    if kernel_threads:
        elements = with_elementwise_forms(graph)
        split = split_sums(elements) if splits_sums else elements
        for rewritten, original in ((split, elements), (elements, graph)):
            if rewritten is not original:
                with suppress(OverBudget):
                    return _smallest_plan(rewritten, limits, deadline, kernel_threads)
    return _smallest_plan(graph, limits, deadline, kernel_threads)


def _smallest_plan(graph: Graph, limits: Limits, deadline: Deadline, kernel_threads: int) -> Plan:
    """Plan the graph fused and unfused, and choose the plan with the lower peak."""
    fused = fuse(graph, threads=kernel_threads) if kernel_threads else graph
    if fused is graph:
        return make_plan(graph, limits, deadline)
    # Compare peaks before the limit applies, since either plan may be the smaller one.
    no_byte_limit = replace(limits, bytes=NO_END)
    plan = min(
        (make_plan(candidate, no_byte_limit, deadline) for candidate in (fused, graph)),
        key=lambda plan: plan.peak_bytes,
    )
    limits.admit_peak(plan.peak_bytes)
    return plan


class RematerializedPlan(NamedTuple):
    """A graph that computes some of its values twice, and its plan."""

    graph: Graph
    plan: Plan


def rematerialize(
    graph: Graph, limits: Limits, deadline: Deadline, kernel_threads: int, *, splits_sums: bool = False
) -> RematerializedPlan:
    """Return the first plan that fits, among plans that recompute more and more.

    If the graph has no backward pass, or its feeds and results alone exceed the limit, only the graph itself is tried.
    Raises OverBudget with the smallest peak that was found, at the node that most of it belongs to.
    """
    smallest_error: OverMemory | None = None
    smallest_graph = graph
    for variant in _variants(graph, limits.bytes):
        try:
            return RematerializedPlan(
                variant, choose_plan(variant, limits, deadline, kernel_threads, splits_sums=splits_sums)
            )
        except OverMemory as error:
            if smallest_error is None or has_lower_peak(error, smallest_error):
                smallest_error, smallest_graph = error, variant
        except OverBudget:
            if smallest_error is None:
                raise
    assert smallest_error is not None
    raise locate_error(smallest_error, peak_memory_node(smallest_graph))


def has_lower_peak(error: OverMemory, best: OverMemory) -> bool:
    """Whether `error` reports a lower peak than `best`, as far as peaks are known."""
    return error.peak is not None and (best.peak is None or error.peak < best.peak)


def _variants(graph: Graph, most_bytes: int) -> Iterator[Graph]:
    yield graph
    interface = {*graph.outputs, *graph.feeds.values()}
    if any(map(_is_backward, graph.nodes)) and sum(graph.nodes[i].type.nbytes for i in interface) <= most_bytes:
        for coarse in _SEGMENTS:
            for fine in _FINE:
                yield with_segments(graph, coarse, coarse * fine)


def with_segments(graph: Graph, coarse: int, fine: int) -> Graph:
    """Recompute by segments: cut the forward pass into `coarse` segments, and these into `fine` in total.

    Expensive values, and values that cross fine segments, are recomputed per coarse segment; the others per fine
    segment.
    """
    # Constants of the backward pass may be anywhere in the graph, so only nodes with operands mark its start.
    turn = next((i for i, node in enumerate(graph.nodes) if node.operands and _is_backward(node)), len(graph.nodes))
    if turn == len(graph.nodes):
        return graph
    return _Rewriting(graph, turn, _segments(graph, turn, coarse), _segments(graph, turn, fine)).graph()


def _is_backward(node: Node) -> bool:
    return node.origin is not None and node.origin.backward


def _segments(graph: Graph, turn: int, count: int) -> list[int]:
    """Assign a segment to each forward node. Segments have similar sizes in bytes, and are cut where least is live."""
    sizes = [0 if node.is_leaf or node.op.is_view else node.type.nbytes for node in graph.nodes[:turn]]
    live, total = _live_before(graph, sizes), sum(sizes)
    cumulative = [*accumulate(sizes, initial=0)]
    cuts = set[int]()
    # Each cut lies within half a segment of its even position: values live there are those that must be saved.
    for k in range(1, count):
        first, end = (bisect_left(cumulative, total * (2 * k + side) // (2 * count)) for side in (-1, 1))
        cuts.add(min(range(first, max(end, first + 1)), key=lambda i: live[min(i, turn - 1)]))
    return [*accumulate(i in cuts for i in range(turn))]


def _live_before(graph: Graph, sizes: Sequence[int]) -> list[int]:
    """For each forward node, count the bytes of earlier values that it or a later forward node reads."""
    base, last = [*range(len(sizes))], [*range(len(sizes))]
    for i, node in enumerate(graph.nodes[: len(sizes)]):
        # A view keeps its operand alive, and has no bytes of its own.
        if node.op.is_view:
            base[i] = base[node.operands[0]]
        for o in node.operands:
            last[base[o]] = i
    changes = [0] * (len(sizes) + 1)
    for i, size in enumerate(sizes):
        changes[i + 1] += size if last[i] > i else 0
        if last[i] > i:
            changes[last[i] + 1] -= size if last[i] + 1 < len(changes) else 0
    return [*accumulate(changes)][: len(sizes)]


class _Rewriting:
    """Writer of a graph in which nodes of the backward pass read copies of the values that were dropped."""

    def __init__(self, graph: Graph, turn: int, coarse: Sequence[int], fine: Sequence[int]) -> None:
        self._graph, self._turn = graph, turn
        self._segments = {"expensive": coarse, "cheap": fine}
        self._nodes = list(graph.nodes[:turn])
        types: list[ResultTypes] = [node.types if node.op.several else node.types[0] for node in graph.nodes]
        crossing = self._crossing(fine)
        expensive = {i for i in range(turn) if i in crossing or _is_expensive(graph.nodes[i], types)}
        # The backward pass begins in the last segment, so dropping its values would not lower the peak.
        last_segment = {i for i in expensive if coarse[i] == coarse[-1]}
        self._dropped = self._droppable(fine, last_segment.union(graph.outputs, self._crossing(coarse)))
        self._expensive = expensive & self._dropped
        self._copies: dict[int, int] = {}
        self._read_backward = {o for node in graph.nodes[turn:] for o in node.operands if o in self._dropped}
        self._copied_segments: set[tuple[str, int]] = set()

    def graph(self) -> Graph:
        """Write all nodes: the forward pass, then the backward pass with copies where they are first read."""
        renumbered: dict[int, int] = {}
        for i, node in enumerate(self._graph.nodes[self._turn :], self._turn):
            for o in node.operands:
                if o in self._dropped:
                    self._prepare(o)
            operands = tuple([self._copies.get(o, o) if o < self._turn else renumbered[o] for o in node.operands])
            renumbered[i] = len(self._nodes)
            self._nodes.append(node.with_operands(operands))
        return self._graph.with_nodes(self._nodes, [renumbered.get(i, i) for i in self._graph.outputs])

    def _crossing(self, segments: Sequence[int]) -> set[int]:
        """Find the nodes that a later segment reads."""
        nodes = self._graph.nodes[: self._turn]
        return {o for i, node in enumerate(nodes) for o in node.operands if segments[o] < segments[i]}

    def _droppable(self, fine: Sequence[int], saved: set[int]) -> set[int]:
        """Find the nodes that are neither saved nor in the last fine segment. A node's results are dropped together."""
        nodes = self._graph.nodes[: self._turn]
        # The last fine segment stays, because the backward pass reads it first.
        droppable = {i for i, node in enumerate(nodes) if node.operands and i not in saved and fine[i] < fine[-1]}
        return droppable - {
            i for i in droppable if nodes[i].op.name == "get_output" and nodes[i].operands[0] not in droppable
        }

    def _prepare(self, i: int) -> None:
        """Recompute a value, together with the other values of its coarse or fine segment that are read."""
        if i in self._copies:
            return
        kind = "expensive" if i in self._expensive else "cheap"
        segment = self._segments[kind][i]
        if (kind, segment) in self._copied_segments:
            # The segment's copies are the values that the backward pass reads. This one is needed for another copy.
            self._copy([i], kind)
            return
        self._copied_segments.add((kind, segment))
        of_kind = self._expensive if kind == "expensive" else self._dropped - self._expensive
        values = {o for o in of_kind if self._segments[kind][o] == segment and (o in self._read_backward or o == i)}
        self._copy(values, kind)

    def _copy(self, values: Iterable[int], kind: str) -> None:
        """Append copies of these nodes and of the dropped nodes that they need.

        When expensive values are recomputed, copies of cheap nodes in between are not shared, since they would live too
        long.
        """
        nodes, dropped = self._graph.nodes, self._dropped
        local_copies: dict[int, int] = {}
        for i in ancestors(values, lambda i: [o for o in nodes[i].operands if o in dropped and o not in self._copies]):
            if kind == "cheap" and i in self._expensive:
                self._prepare(i)
                continue
            origin = nodes[i].origin
            # The copy runs in the backward pass, and has to count as a part of it.
            operands = tuple([self._copies.get(o, local_copies.get(o, o)) for o in nodes[i].operands])
            local_copies[i] = len(self._nodes)
            self._nodes.append(
                nodes[i].with_operands(operands)._replace(origin=origin and origin._replace(backward=True))
            )
            if kind == "cheap" or i in self._expensive:
                self._copies[i] = local_copies[i]


def _is_expensive(node: Node, types: Sequence[ResultTypes]) -> bool:
    if node.is_leaf or node.op.is_view:
        return False
    return node.work(types).flops > _CHEAP * max(1, sum(type.nbytes for type in node.types))


# Compilation within the memory of the plan that is replaced: kernels that would need more are excluded from fusion.


class Compilable(NamedTuple):
    """A graph, its kernels, the graph with these and all microkernels `selected`, and the `plan` of that.

    The plan, or a part of it, replaces a plan of `most_bytes`.
    """

    graph: Graph
    kernels: Sequence[WrittenKernel]
    selected: Graph
    plan: Plan
    most_bytes: int

    def plan_part(self, chosen: Container[Kernel]) -> Plan | None:
        """Plan with only the kernels of these ops of `plan`; return None if that takes more than `most_bytes`.

        Other nodes run one by one, as before.
        """
        kernels = [kernel for kernel in self.kernels if kernel.node is None or kernel.node.op in chosen]
        plan = make_plan(select_alike(with_kernels(self.graph, kernels), self.selected, chosen), NO_LIMITS, tight=True)
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
    """Find kernels of `graph` that keep the peak within `most_bytes`; return None if there are none.

    At most `threads` threads run a kernel. `all_pay` is passed to `find_kernels`. Operands of a kernel live longer than
    those of single nodes. If a kernel causes the peak to exceed the limit, it is excluded, and the rest is tried again.
    `microkernels` are selected if there is memory for their workspace. With `few_launches`, products write where their
    result is read, and kernels are delayed until they can join others, if there is memory for it.
    """
    options = _CompileOptions(most_bytes, threads, microkernels, all_pay, few_launches)
    if few_launches and has_products(graph):
        kernels = find_kernels(graph, 0, compiled=True, threads=threads, all_pay=all_pay, late=True)
        layout = output_layout(graph, {i for kernel in kernels for i in kernel.group})
        compilable = None if layout.graph is graph else _within(layout.graph, options, layout.numbers)
        if compilable:
            return compilable
    # Delayed kernels prolong the lives of their operands. Without memory for that, compile without delays.
    return _within(graph, options) or (_within(graph, options._replace(late=False)) if few_launches else None)


class _CompileOptions(NamedTuple):
    """Options of `compiled_within`; `late` is passed to `find_kernels`."""

    most_bytes: int
    threads: int
    microkernels: bool
    all_pay: bool
    late: bool


def _within(graph: Graph, options: _CompileOptions, numbers: Sequence[int] | None = None) -> Compilable | None:
    """Compile as much of `graph` as memory allows; return None if nothing can be compiled.

    If `numbers` is given, node i of `graph` stands for node `numbers[i]` of the original graph. The kernels then list
    the original nodes, and the graph is worth running even without kernels.
    """
    most_bytes, threads, microkernels, all_pay, late = options
    excluded: set[int] = set()
    for _ in range(1 + MOST_APART):
        kernels = find_kernels(graph, 0, compiled=True, threads=threads, excluded=excluded, all_pay=all_pay, late=late)
        fused = with_kernels(graph, kernels)
        plan = make_plan(fused, NO_LIMITS, tight=True)
        if plan.peak_bytes <= most_bytes:
            if numbers is not None:
                kernels = [kernel.with_node_numbers(numbers) for kernel in kernels]
                fused = with_kernels(graph, kernels)
                plan = make_plan(fused, NO_LIMITS, tight=True)
            # memory left beside buffers and feeds
            workspace = most_bytes - sum(plan.buffers) - sum(type.nbytes for type in plan.feed_types.values())
            selected = select_microkernels(fused, workspace, threads, in_body=all_pay) if microkernels else fused
            if selected is graph and numbers is None:
                return None
            if selected is not fused:
                plan = make_plan(selected, NO_LIMITS, tight=True)
            return Compilable(graph, kernels, selected, plan, most_bytes)
        # Exclude the nodes of one kernel, then group again: the nodes around it may form other kernels.
        kernel = _kernel_at_peak(fused)
        if kernel is None:
            return None
        excluded.update(kernel.nodes)
    return None


def _kernel_at_peak(graph: Graph) -> Fused | None:
    """Return the kernel at the step with most live bytes, or else the last kernel before it."""
    storage = MemoryBlocks(graph)
    live = live_bytes(storage.blocks(), storage.output_blocks())
    peak = max(range(len(live)), key=live.__getitem__, default=0)
    ops = [node.op for node in graph.nodes[: peak + 1]]
    return next((op for op in reversed(ops) if isinstance(op, Fused)), None)
