"""Plans that fit memory: fused or not, with values recomputed, and with as many kernels as there is memory for.

Rematerialization trades recomputation for memory. The forward pass is cut into segments. What crosses a boundary is
kept; what only the backward pass reads of a segment is recomputed, all of it when the first of that is read (T. Chen
et al., "Training deep nets with sublinear memory cost"). First cheap values go, and products are kept; then these, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Final, NamedTuple

from engine.compiler.fused_kernel import Fused, select_alike, select_microkernels
from engine.compiler.fusion import WrittenKernel, fuse, kernels_in, with_kernels
from engine.compiler.output_layout import has_products, output_layout
from engine.compiler.plan import Plan, Storage, live_bytes, make_plan, peak_memory_node
from engine.compiler.sums import split_sums
from engine.ir.errors import OverBudget, OverMemory
from engine.ir.graph import Builder, Graph, Node, Value, ancestors, at_origin
from engine.ir.op import Kernel, ResultTypes
from engine.ir.run_context import NO_DEADLINE, NO_END, NO_LIMITS, Deadline, Limits

#: segments that are tried, one after the other
_SEGMENTS: Final = (1, 2, 4, 8, 12, 16, 24, 32)
#: fine segments of a coarse one
_FINE: Final = (1, 4, 8)
#: FLOPs for a byte of the result, up to which a value is cheap
_CHEAP: Final = 16
#: kernels that are taken apart, one after the other, before fusing is given up
MOST_APART: Final = 8


def in_elements(graph: Graph) -> Graph:
    """Write ops in elementwise nodes so that they fuse, with the same bits; return `graph` itself if there are none.

    So draws of random numbers join what computes with them.
    """
    joining = {op for op in {node.op for node in graph.nodes} if isinstance(op, Kernel) and op.joins_loops_in_elements}
    if not joining:
        return graph

    def written(node: Node, operands: Sequence[Value]) -> Value | None:
        return node.kernel.in_elements(*operands, **node.attrs) if node.op in joining else None

    return Builder(graph.registry, NO_LIMITS).rewrite(graph, written)


def choose_plan(
    graph: Graph, limits: Limits, deadline: Deadline = NO_DEADLINE, loop_threads: int = 1, *, splits_sums: bool = False
) -> Plan:
    """Plan an optimised graph, fused for so many threads, if any; or as it is, if that needs less memory.

    Rewrites that let kernels take in more nodes are tried first, and kept if there is memory for them; sums over
    several axes are split only with `splits_sums`. Raises as `make_plan`.
    """
    if loop_threads:
        elements = in_elements(graph)
        split = split_sums(elements) if splits_sums else elements
        for written, original in ((split, elements), (elements, graph)):
            if written is not original:
                with suppress(OverBudget):
                    return _smallest_plan(written, limits, deadline, loop_threads)
    return _smallest_plan(graph, limits, deadline, loop_threads)


def _smallest_plan(graph: Graph, limits: Limits, deadline: Deadline, loop_threads: int) -> Plan:
    """Plan the graph fused and as it is, and choose the plan of least memory."""
    fused = fuse(graph, threads=loop_threads) if loop_threads else graph
    if fused is graph:
        return make_plan(graph, limits, deadline)
    endless = replace(limits, bytes=NO_END)
    plan = min((make_plan(each, endless, deadline) for each in (fused, graph)), key=lambda plan: plan.peak_bytes)
    limits.admit_peak(plan.peak_bytes)
    return plan


class RematerializedPlan(NamedTuple):
    """A graph that computes some of its values twice, and its plan."""

    graph: Graph
    plan: Plan


def rematerialize(
    graph: Graph, limits: Limits, deadline: Deadline, loop_threads: int, *, splits_sums: bool = False
) -> RematerializedPlan:
    """Find the first plan that there is memory for, among plans that recompute more and more.

    Raises OverBudget: of the nearest plan, at the node that most of its memory is for. Nothing is tried if feeds and
    results alone need more memory than there is, or the graph has no backward pass.
    """
    nearest: OverMemory | None = None
    least = graph
    for each in _variants(graph, limits.bytes):
        try:
            return RematerializedPlan(each, choose_plan(each, limits, deadline, loop_threads, splits_sums=splits_sums))
        except OverMemory as error:
            if nearest is None or is_nearer(error, nearest):
                nearest, least = error, each
        except OverBudget:
            if nearest is None:
                raise
    assert nearest is not None
    raise at_origin(nearest, peak_memory_node(least))


def is_nearer(one: OverMemory, other: OverMemory) -> bool:
    """Whether the first error is of a plan with less memory, as far as is known."""
    return one.peak is not None and (other.peak is None or one.peak < other.peak)


def _variants(graph: Graph, most_bytes: int) -> Iterator[Graph]:
    yield graph
    lasting = {*graph.outputs, *graph.feeds.values()}
    if any(map(_is_backward, graph.nodes)) and sum(graph.nodes[i].type.nbytes for i in lasting) <= most_bytes:
        for coarse in _SEGMENTS:
            for fine in _FINE:
                yield with_segments(graph, coarse, coarse * fine)


def with_segments(graph: Graph, coarse: int, fine: int) -> Graph:
    """Recompute by segments: the forward pass is cut into `coarse` ones, and these into `fine` ones in all.

    Values that take many FLOPs, or cross fine segments, are recomputed for a whole coarse segment, the rest for a fine
    one.
    """
    # Numbers that the backward pass begins with may stand anywhere.
    turn = next((i for i, node in enumerate(graph.nodes) if node.operands and _is_backward(node)), len(graph.nodes))
    if turn == len(graph.nodes):
        return graph
    return _Rewriting(graph, turn, _segments(graph, turn, coarse), _segments(graph, turn, fine)).graph()


def _is_backward(node: Node) -> bool:
    return node.origin is not None and node.origin.backward


def _segments(graph: Graph, turn: int, count: int) -> list[int]:
    """Assign a segment to each node before the turn: of about as many bytes each, cut where the least is alive."""
    sizes = [0 if node.is_leaf or node.op.is_view else node.type.nbytes for node in graph.nodes[:turn]]
    alive, total = _alive(graph, sizes), sum(sizes)
    passed = [*accumulate(sizes, initial=0)]
    cuts = set[int]()
    for k in range(1, count):
        first, past = (bisect_left(passed, total * (2 * k + side) // (2 * count)) for side in (-1, 1))
        cuts.add(min(range(first, max(past, first + 1)), key=lambda i: alive[min(i, turn - 1)]))
    return [*accumulate(i in cuts for i in range(turn))]


def _alive(graph: Graph, sizes: Sequence[int]) -> list[int]:
    """For each node, count the bytes of those before it that it, or a later node of the forward pass, reads."""
    base, last = [*range(len(sizes))], [*range(len(sizes))]
    for i, node in enumerate(graph.nodes[: len(sizes)]):
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
    """Writer of the nodes up to the turn, then those behind it, each behind copies of the values that were not kept."""

    def __init__(self, graph: Graph, turn: int, coarse: Sequence[int], fine: Sequence[int]) -> None:
        self._graph, self._turn = graph, turn
        self._segments = {"dear": coarse, "cheap": fine}
        self._nodes = list(graph.nodes[:turn])
        types: list[ResultTypes] = [node.types if node.op.several else node.types[0] for node in graph.nodes]
        crossing = self._crossing(fine)
        dear = {i for i in range(turn) if i in crossing or _is_dear(graph.nodes[i], types)}
        last = {i for i in dear if coarse[i] == coarse[-1]}
        self._again = self._lost(fine, last.union(graph.outputs, self._crossing(coarse)))
        self._dear = dear & self._again
        self._renamed: dict[int, int] = {}
        self._wanted = {o for node in graph.nodes[turn:] for o in node.operands if o in self._again}
        self._done: set[tuple[str, int]] = set()

    def graph(self) -> Graph:
        """Write all nodes."""
        moved: dict[int, int] = {}
        for i, node in enumerate(self._graph.nodes[self._turn :], self._turn):
            for o in node.operands:
                if o in self._again:
                    self._prepare(o)
            operands = tuple([self._renamed.get(o, o) if o < self._turn else moved[o] for o in node.operands])
            moved[i] = len(self._nodes)
            self._nodes.append(node.on(operands))
        return self._graph.rewritten(self._nodes, [moved.get(i, i) for i in self._graph.outputs])

    def _crossing(self, segments: Sequence[int]) -> set[int]:
        """Nodes that a later segment reads."""
        nodes = self._graph.nodes[: self._turn]
        return {o for i, node in enumerate(nodes) for o in node.operands if segments[o] < segments[i]}

    def _lost(self, fine: Sequence[int], kept: set[int]) -> set[int]:
        """Nodes that are neither kept nor of the last fine segment. Several results go as one."""
        nodes = self._graph.nodes[: self._turn]
        lost = {i for i, node in enumerate(nodes) if node.operands and i not in kept and fine[i] < fine[-1]}
        return lost - {i for i in lost if nodes[i].op.name == "get_output" and nodes[i].operands[0] not in lost}

    def _prepare(self, i: int) -> None:
        """Recompute a value, with the other values that are wanted of its segment, coarse or fine."""
        if i in self._renamed:
            return
        kind = "dear" if i in self._dear else "cheap"
        segment = self._segments[kind][i]
        if (kind, segment) in self._done:
            self._copy([i], kind)
            return
        self._done.add((kind, segment))
        of_kind = self._dear if kind == "dear" else self._again - self._dear
        wanted = {o for o in of_kind if self._segments[kind][o] == segment and (o in self._wanted or o == i)}
        self._copy(wanted, kind)

    def _copy(self, wanted: Iterable[int], kind: str) -> None:
        """Append copies of nodes, and of the lost nodes that they need; cheap ones of these are not kept for others."""
        nodes, again = self._graph.nodes, self._again
        own: dict[int, int] = {}
        for i in ancestors(wanted, lambda i: [o for o in nodes[i].operands if o in again and o not in self._renamed]):
            if kind == "cheap" and i in self._dear:
                self._prepare(i)
                continue
            origin = nodes[i].origin
            operands = tuple([self._renamed.get(o, own.get(o, o)) for o in nodes[i].operands])
            own[i] = len(self._nodes)
            self._nodes.append(nodes[i].on(operands)._replace(origin=origin and origin._replace(backward=True)))
            if kind == "cheap" or i in self._dear:
                self._renamed[i] = own[i]


def _is_dear(node: Node, types: Sequence[ResultTypes]) -> bool:
    if node.is_leaf or node.op.is_view:
        return False
    return node.work(types).flops > _CHEAP * max(1, sum(type.nbytes for type in node.types))


# Compiled plans of no more memory than the plan whose place they take: kernels that need more are taken apart.


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
        """Plan with the kernels of these ops of `plan` alone; return None if that takes more memory than it may.

        Other nodes run one by one, as they did before.
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
    """Find the kernels of `graph` that fit in a peak of at most `most_bytes`; return None if there are none.

    At most `threads` take part in a kernel; `all_pay` is that of `kernels_in`. Values that a kernel reads live longer:
    if that makes the peak, the kernel is left out, and the next one is tried. `microkernels` are selected where there
    is memory for their workspace. With `few_launches`, products write where they are read, and kernels are delayed to
    where they join others, if there is memory for it.
    """
    ways = _Ways(most_bytes, threads, microkernels, all_pay, few_launches)
    if few_launches and has_products(graph):
        kernels = kernels_in(graph, 0, compiled=True, threads=threads, all_pay=all_pay, late=True)
        laid = output_layout(graph, {i for kernel in kernels for i in kernel.group})
        compilable = None if laid.graph is graph else _within(laid.graph, ways, laid.numbers)
        if compilable:
            return compilable
    return _within(graph, ways) or (_within(graph, ways._replace(late=False)) if few_launches else None)


class _Ways(NamedTuple):
    """Ways in which `compiled_within` compiles, as its arguments say; `late` is of `kernels_in`."""

    most_bytes: int
    threads: int
    microkernels: bool
    all_pay: bool
    late: bool


def _within(graph: Graph, ways: _Ways, numbers: Sequence[int] | None = None) -> Compilable | None:
    """Compile `graph` as far as there is memory; return None if nothing of it can be compiled.

    `numbers` are the nodes of another graph that its nodes stand for: then its kernels name these, and it is worth
    running without any kernel.
    """
    most_bytes, threads, microkernels, all_pay, late = ways
    apart: set[int] = set()
    for _ in range(1 + MOST_APART):
        kernels = kernels_in(graph, 0, compiled=True, threads=threads, excluded=apart, all_pay=all_pay, late=late)
        fused = with_kernels(graph, kernels)
        plan = make_plan(fused, NO_LIMITS, tight=True)
        if plan.peak_bytes <= most_bytes:
            if numbers is not None:
                kernels = [kernel.of_nodes(numbers) for kernel in kernels]
                fused = with_kernels(graph, kernels)
                plan = make_plan(fused, NO_LIMITS, tight=True)
            # the memory beside buffers and feeds
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
    """Return the kernel at the step where most is alive, or the last one before."""
    storage = Storage(graph)
    live = live_bytes(storage.blocks(), storage.output_blocks())
    peak = max(range(len(live)), key=live.__getitem__, default=0)
    ops = [node.op for node in graph.nodes[: peak + 1]]
    return next((op for op in reversed(ops) if isinstance(op, Fused)), None)
