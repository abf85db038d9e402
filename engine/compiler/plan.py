"""Plans: a linear list of steps, and a place in memory for every result, assigned before anything runs.

A step names its op, the slots that it reads and the slot that it writes. The planner computes FLOPs and the peak of
memory from shapes alone, so that a request over its limits is refused before any work is done.

`MemoryBlocks` finds the blocks of memory. A view, such as a transpose, shares the block of its operand and prolongs its
life. Blocks of inputs and constants have no bytes, because that memory belongs to somebody else.

`pack` then assigns places. Results that are only needed during the run share one arena, where two blocks may overlap in
space if they do not overlap in time. Each output gets a buffer of its own, so that a caller who keeps it does not keep
the arena alive. Until the output is written, its buffer can hold other results. For a tensor x of 8 MB:

    step                 result   live in steps   place
    1    a = sin(x)      8 MB     1 and 2         buffer 1, offset 0
    2    b = cumsum(a)   8 MB     2 and 3         arena, offset 0
    3    y = cumsum(b)   8 MB     3 and later     buffer 1, the output's own

Optimal packing is NP-hard. Best fit in the order of steps comes first, since it is nearly linear. Here, it places a and
b in the arena and needs 24 MB. As 16 MB are live at most, that wastes memory, and greedy packing by size finds the plan
above.

The peak of a plan is the sum of its feeds, its buffers and the largest workspace of a step.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine.ir.graph import Graph, Node, Origin, RuleCache, is_small, work_by_node
from engine.ir.op import Definition, Kernel, Registry, ResultTypes, View
from engine.ir.passes import UNBOUNDED, Allowance
from engine.ir.program import Body
from engine.ir.run_context import ALIGNMENT, NO_DEADLINE, Deadline, Limits, aligned
from engine.ir.run_report import IEEE, Precision
from engine.ir.tensor_type import HostArray, Strided, TensorType, read_only_copy, real_dtype

# Memory packing.

#: maximum blocks for packing by size, which is quadratic
MOST_PACKED = 2048
#: least saving for which packing by size is tried: bytes, and fraction of the total
WORTH_SAVING = 1 << 20, 0.02
#: a step that never comes; and maximum bytes for packing by size, so that addresses do not overflow int64
_FOREVER = 1 << 62
_MOST_ADDRESSED = 1 << 60
#: maximum bytes of an array in NumPy
_LARGEST = 1 << 62

_Ints = np.ndarray[Any, np.dtype[np.int64]]


class Block(NamedTuple):
    """Memory of a result: its size, the step that writes it, and the last step that reads it."""

    nbytes: int
    first: int
    last: int


class Place(NamedTuple):
    """Place of a result. Buffer 0 is the arena; the others are those of outputs."""

    buffer: int
    offset: int


class Packing(NamedTuple):
    """A place for each block, and the size of each buffer in bytes."""

    places: Sequence[Place]
    buffers: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Total bytes of all buffers."""
        return sum(self.buffers)


def pack(
    blocks: Sequence[Block], outputs: Sequence[int], allowance: Allowance = UNBOUNDED, *, tight: bool = False
) -> Packing:
    """Place blocks, listed in the order in which they are written. Blocks in `outputs` outlive the run.

    Use best fit. If that wastes memory (with `tight`: any), try packing by size for up to MOST_PACKED blocks, with ties
    broken forwards and then backwards in time. Raises DeadlineExceeded.
    """
    packing = _pack_in_time_order(blocks, outputs, allowance)
    if len(blocks) > MOST_PACKED or packing.nbytes > _MOST_ADDRESSED:
        return packing
    live, (min_saving, min_fraction) = max(live_bytes(blocks, outputs)), WORTH_SAVING
    enough = live if tight else max(live + min_saving, live * (1 + min_fraction))
    # Nothing takes less than what is live at a time, so stop as soon as a packing is close to that.
    for direction in (1, -1):
        if packing.nbytes > enough:
            packing = min(packing, _pack_by_size(blocks, outputs, direction, allowance), key=lambda p: p.nbytes)
    return packing


def live_bytes(blocks: Sequence[Block], outputs: Sequence[int]) -> list[int]:
    """Count the live bytes at each step. Their maximum is a lower bound for any packing."""
    never_freed = set(outputs)
    change = [0] * (2 + max((b.last for b in blocks), default=0))
    for i, block in enumerate(blocks):
        change[block.first] += aligned(block.nbytes)
        change[block.last + 1] -= 0 if i in never_freed else aligned(block.nbytes)
    return list(accumulate(change))


def _output_places(outputs: Sequence[int]) -> dict[int, Place]:
    return {block: Place(1 + k, 0) for k, block in enumerate(outputs)}


def _pack_in_time_order(blocks: Sequence[Block], outputs: Sequence[int], allowance: Allowance) -> Packing:
    """Place blocks by best fit in the order of steps: each in the shortest gap that holds it. Nearly linear."""
    arena, places = Arena(), list[Place]()
    # Equal places are one object, since a plan keeps a place for every result.
    output_places, by_offset = _output_places(outputs), {0: Place(0, 0)}
    expiring: dict[int, list[tuple[int, int]]] = {}
    now = 0
    for i, (size, first, last) in enumerate(allowance.over(blocks)):
        while now < first:
            for start, nbytes in expiring.pop(now, ()):
                arena.release(start, nbytes)
            now += 1
        if i in output_places:
            places.append(output_places[i])
        elif not size:
            places.append(by_offset[0])
        else:
            nbytes = aligned(size)
            start = arena.allocate(nbytes)
            if last in expiring:
                expiring[last].append((start, nbytes))
            else:
                expiring[last] = [(start, nbytes)]
            if start not in by_offset:
                by_offset[start] = Place(0, start)
            places.append(by_offset[start])
    return Packing(places, (arena.size, *(aligned(blocks[i].nbytes) for i in outputs)))


class Arena:
    """An allocator with a list of gaps. `size` is the high-water mark in bytes."""

    def __init__(self) -> None:
        self.size = 0
        # The same gaps, sorted by length to find the best fit, and by start and end to find neighbours to merge.
        self._gaps: list[tuple[int, int]] = []  # length and start, shortest first
        self._ends: dict[int, int] = {}  # start → end, of each gap
        self._starts: dict[int, int] = {}  # end → start

    def allocate(self, nbytes: int) -> int:
        """Allocate `nbytes` > 0 in the shortest gap that holds them; return their offset."""
        gaps = self._gaps
        i = bisect_left(gaps, (nbytes, 0))
        if i == len(gaps):
            return self._grow(nbytes)
        length, start = gaps.pop(i)
        end = start + length
        del self._ends[start], self._starts[end]
        if length > nbytes:
            self._add(start + nbytes, end)
        return start

    def release(self, start: int, nbytes: int) -> None:
        """Free the `nbytes` at `start`, and merge the gap with its neighbours."""
        end = start + nbytes
        gap_start, gap_end = self._starts.get(start, start), self._ends.get(end, end)
        if gap_start < start:
            self._remove(gap_start, start)
        if gap_end > end:
            self._remove(end, gap_end)
        self._add(gap_start, gap_end)

    def _grow(self, nbytes: int) -> int:
        """Extend the arena at its end, starting in the gap there if there is one."""
        start = self._starts.get(self.size, self.size)
        if start < self.size:
            self._remove(start, self.size)
        self.size = start + nbytes
        return start

    def _add(self, start: int, end: int) -> None:
        insort(self._gaps, (end - start, start))
        self._ends[start] = end
        self._starts[end] = start

    def _remove(self, start: int, end: int) -> None:
        del self._gaps[bisect_left(self._gaps, (end - start, start))]
        del self._ends[start], self._starts[end]


def _pack_by_size(blocks: Sequence[Block], outputs: Sequence[int], direction: int, allowance: Allowance) -> Packing:
    """Place the largest block first, equal ones in the `direction` of time, each in the shortest gap while it lives.

    Y. Pisarchyk, J. Lee, "Efficient memory management for deep neural net inference" (2020), greedy by size. All
    buffers share one address space, with the arena last, since only it can grow.
    """
    output_places = _output_places(outputs)
    addresses = AddressSpace([blocks[i] for i in outputs], len(blocks) + 2 * len(outputs))
    places = [output_places.get(i, Place(0, 0)) for i in range(len(blocks))]
    inner = (i for i, block in enumerate(blocks) if i not in output_places and block.nbytes)
    for i in allowance.over(sorted(inner, key=lambda i: (-blocks[i].nbytes, direction * i))):
        places[i] = addresses.place_block(blocks[i])
    return Packing(places, (addresses.arena, *(aligned(blocks[i].nbytes) for i in outputs)))


class AddressSpace:
    """Addresses of the output blocks, one after the other, followed by those of the arena.

    A fence separates two buffers. It is a block that lives forever, so that no gap extends across it. `arena` is the
    number of bytes of the arena that are used.
    """

    def __init__(self, outputs: Sequence[Block], capacity: int) -> None:
        self.arena = 0
        self._bounds: list[int] = []
        self._count = 0
        #: one column per block, with rows for start, end, first and last step
        self._table: _Ints = np.empty((4, capacity), np.int64)
        top = 0
        for block in outputs:
            self._bounds.append(top)
            top = self._put(top, aligned(block.nbytes), block.first, _FOREVER)
            top = self._put(top, ALIGNMENT, 0, _FOREVER)
        self._bounds.append(top)

    def place_block(self, block: Block) -> Place:
        """Find a place for a block, and mark it as used."""
        start = self._gap(aligned(block.nbytes), block)
        end = self._put(start, aligned(block.nbytes), block.first, block.last)
        self.arena = max(self.arena, end - self._bounds[-1])
        # Buffers of outputs come first in the address space, with the numbers 1, 2, …. The arena comes last, with 0.
        k = bisect_left(self._bounds, start + 1) - 1
        return Place((k + 1) % len(self._bounds), start - self._bounds[k])

    def _put(self, start: int, nbytes: int, first: int, last: int) -> int:
        self._table[:, self._count] = start, start + nbytes, first, last
        self._count += 1
        return start + nbytes

    def _gap(self, nbytes: int, block: Block) -> int:
        """Return the start of the shortest gap of `nbytes` while the block lives, or the end if there is none."""
        start, end, first, last = self._table[:, : self._count]
        concurrent = np.flatnonzero((first <= block.last) & (last >= block.first))
        concurrent = concurrent[np.argsort(start[concurrent])]
        # Concurrent blocks overlap one another if their lives do not, so a gap begins behind the furthest end so far.
        free_from = np.concatenate(([0], np.maximum.accumulate(end[concurrent])))
        gaps = np.concatenate((start[concurrent], [_FOREVER])) - free_from
        fits = np.flatnonzero(gaps >= nbytes)
        return int(free_from[fits[np.argmin(gaps[fits])]])


class MemoryBlocks:
    """The blocks of memory behind the nodes of a graph, one for each result that is not a view.

    A view shares its operand's block, which lives until the last node that reads the operand or a view of it. For each
    node, `is_view` tells whether it is a view, `contiguous` whether it is dense in its block, `block` is the number of
    the block of its (first) result, and `types` is its type as rules of readers receive it, with strides.
    """

    def __init__(self, graph: Graph, allowance: Allowance = UNBOUNDED) -> None:
        self.graph = graph
        self.is_view: list[bool] = []
        self.contiguous: list[bool] = []
        self.block: list[int] = []
        self.types: list[ResultTypes] = []
        self._count = 0
        for node in allowance.over(graph.nodes):
            view = node.view
            # A reshape of a strided operand has to copy, so it is no view.
            if view is not None and (not view.reshapes or self.contiguous[node.operands[0]]):
                self._share(node, view)
            else:
                self._allocate(node)

    def _allocate(self, node: Node) -> None:
        """Give the results of a node blocks of their own."""
        self.is_view.append(False)
        self.contiguous.append(True)
        self.block.append(self._count)
        self._count += len(node.types)
        self.types.append(node.types if node.op.several else node.types[0])

    def _share(self, node: Node, view: View) -> None:
        """Let a view share the block of its operand."""
        (operand,) = node.operands
        operand_type = self.types[operand]
        self.is_view.append(True)
        self.contiguous.append(view.reshapes)
        # The results of a node with several ones have consecutive blocks, from which `get_output` selects one.
        self.block.append(self.block[operand] + (node.attrs["index"] if self.graph.nodes[operand].op.several else 0))
        is_dense = view.reshapes or isinstance(operand_type, tuple)
        self.types.append(node.type if is_dense else _cached_view_type(view, (node.type, operand_type), node.attrs))

    def blocks(self) -> list[Block]:
        """List all blocks by number, with the steps between which they are needed. Blocks of leaves have size 0.

        A block is needed from the step that writes it to the last step that reads it or a view of it.
        """
        sizes, first, last = list[int](), list[int](), list[int]()
        block, is_view = self.block, self.is_view
        for i, (op, operands, _, types, _) in enumerate(self.graph.nodes):
            if not is_view[i]:
                for type in types:
                    sizes.append(0 if op.is_leaf else type.nbytes)
                    first.append(i)
                    last.append(i)
                for operand in operands:
                    last[block[operand]] = i
        return list(map(Block, sizes, first, last))

    def output_blocks(self) -> list[int]:
        """List the blocks of outputs in order, each once, except those of leaves, which the plan does not own."""
        return [b for b in dict.fromkeys(self.block[i] for i in self.graph.outputs) if b not in self.leaf_blocks]

    @cached_property
    def leaf_blocks(self) -> frozenset[int]:
        """Numbers of the blocks of leaves."""
        return frozenset([self.block[i] for i, node in enumerate(self.graph.nodes) if node.op.is_leaf])


def _view_type(op: Definition, types: tuple[TensorType, TensorType], attrs: Mapping[str, Any]) -> TensorType:
    """Return the type of a view with NumPy's strides, or the dense type if it is too large for NumPy."""
    result, operand = types
    if max(operand.span, result.span) >= _LARGEST:
        return result
    # NumPy computes the strides of a view from those of an array over one element, without its memory.
    placeholder = as_strided(np.empty(1, operand.dtype), operand.shape, operand.strides)
    return Strided(result, cast("View", op).view(np, placeholder, **attrs).strides)


_cached_view_type = RuleCache(_view_type)


def peak_memory_node(graph: Graph) -> Origin | None:
    """Return the client's node that most of the peak belongs to, which errors name, or None if there is none."""
    weights: dict[Origin, int] = {}
    for origin, nbytes in _bytes_at_peak(MemoryBlocks(graph)):
        if origin is not None:
            # Values of the backward pass count for the node whose derivative they are.
            node = origin._replace(backward=False)
            weights[node] = weights.get(node, 0) + nbytes
    return max(weights, key=weights.__getitem__, default=None)


def _bytes_at_peak(storage: MemoryBlocks) -> Iterator[tuple[Origin | None, int]]:
    """Yield origins and bytes of feeds, of results that are live at the peak, and of the workspace there."""
    nodes, blocks, output_blocks = storage.graph.nodes, storage.blocks(), set(storage.output_blocks())
    spaces = [space for _, space in work_by_node(nodes, storage.types)]
    bytes_of_step = [
        live + space for live, space in zip(live_bytes(blocks, storage.output_blocks()), spaces, strict=False)
    ]
    peak = max(range(len(bytes_of_step)), key=bytes_of_step.__getitem__)
    yield nodes[peak].origin, spaces[peak]
    for i, node in enumerate(nodes):
        if node.is_leaf:
            yield node.origin, node.type.nbytes
        elif not storage.is_view[i]:
            first = storage.block[i]
            for k, block in enumerate(blocks[first : first + len(node.types)], first):
                if block.first <= peak and (peak <= block.last or k in output_blocks):
                    yield node.origin, block.nbytes


#: bytes in CPython of a step, its attributes, the type of a result, an entry of a list, and a feed
STEP_BYTES, ATTRIBUTES_BYTES, TYPE_BYTES, ENTRY_BYTES, FEED_BYTES = 330, 250, 300, 36, 500
#: bytes of a body's node, including its derivatives and the steps of their plans
BODY_NODE_BYTES: Final = 250
#: digest of a plan without a digest
NO_DIGEST: Final = bytes(32)


class Step(NamedTuple):
    """One instruction: run `op` on the slots `operands`, store the result in the slot `result`, free the slots `dead`.

    Results have these `types` and are written at `places`; a view has no places. `flops` is the cost of the step.
    """

    op: Kernel
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    result: int
    types: tuple[TensorType, ...]
    places: Sequence[Place]
    dead: tuple[int, ...]
    origin: Origin | None
    flops: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Plan:
    """Steps in order, and what they need. Slots are node numbers of the planned graph. Plans compare by identity.

    `buffers` are the sizes in bytes of the arena and of one buffer per output. `peak_bytes` is the sum of these, the
    feeds that are read, and the largest workspace of a step. `results_in_feeds` are the positions of results that lie
    in the memory of a feed. Tensors among the attributes belong to the plan and are read-only. `digest`, 32 bytes, is
    the same in every process for the same request. `recomputed_flops`, part of `flops`, are spent to save memory.
    `precision` tells how products and convolutions may read float32 operands, if the device has a choice;
    `reads_float32`, whether any of them does.
    """

    steps: tuple[Step, ...]
    feeds: Mapping[Hashable, int]
    results: tuple[int, ...]
    result_types: tuple[TensorType, ...]
    slots: int
    flops: int
    peak_bytes: int
    buffers: tuple[int, ...]
    feed_types: Mapping[Hashable, TensorType]
    results_in_feeds: tuple[int, ...]
    digest: bytes = NO_DIGEST
    recomputed_flops: int = 0
    precision: Precision = IEEE
    reads_float32: bool = False

    @property
    def working_bytes(self) -> int:
        """The peak without the feeds."""
        return self.peak_bytes - sum(type.nbytes for type in self.feed_types.values())

    @property
    def nbytes(self) -> int:
        """Bytes that the plan object takes, within a factor of two: constants, steps and feeds.

        Plans share equal types and attributes; shared ones count for each plan.
        """
        # Equal attributes and types of a plan are shared objects, so count them by identity.
        attrs = {id(step.attrs): step.attrs for step in self.steps if step.attrs}
        types = {id(step.types): len(step.types) for step in self.steps}
        entries = sum([len(step.operands) + len(step.places) for step in self.steps])
        values = [value for attributes in attrs.values() for value in attributes.values()]
        shared = ATTRIBUTES_BYTES * len(attrs) + sum(map(_attribute_bytes, values)) + TYPE_BYTES * sum(types.values())
        # Bodies of one request refer to one another, so each keeps alive all nodes that were written for the request.
        shared += BODY_NODE_BYTES * sum(budget.spent for budget in {x.budget for x in values if isinstance(x, Body)})
        return STEP_BYTES * len(self.steps) + ENTRY_BYTES * entries + shared + FEED_BYTES * len(self.feeds)


def make_plan(graph: Graph, limits: Limits, deadline: Deadline = NO_DEADLINE, *, tight: bool = False) -> Plan:
    """Plan an optimised graph; with `tight`, in as little memory as possible. Raises OverBudget, DeadlineExceeded."""
    allowance = Allowance(deadline=deadline)
    storage = _materialised(MemoryBlocks(graph, allowance), allowance)
    graph, feeds = storage.graph, storage.graph.feeds
    flops, workspace = _costs(storage, allowance)
    limits.admit_flops(sum(flops))
    packing = pack(storage.blocks(), storage.output_blocks(), allowance, tight=tight)
    peak = sum(graph.nodes[i].type.nbytes for i in feeds.values()) + packing.nbytes + workspace
    limits.admit_peak(peak)
    return Plan(
        steps=_steps(storage, packing, flops, allowance),
        feeds=feeds,
        results=graph.outputs,
        result_types=tuple(graph.nodes[i].type for i in graph.outputs),
        slots=len(graph.nodes),
        flops=sum(flops),
        peak_bytes=peak,
        buffers=packing.buffers,
        feed_types={feed: graph.nodes[i].type for feed, i in feeds.items()},
        results_in_feeds=tuple(k for k, i in enumerate(graph.outputs) if storage.block[i] in storage.leaf_blocks),
        reads_float32=any(map(partial(_reads_float32, graph.nodes), graph.nodes)),
    )


def with_identity_of(substitute: Plan, plan: Plan) -> Plan:
    """Return a plan that replaces another one, with the digest and the precision of that one."""
    return replace(substitute, digest=plan.digest, precision=plan.precision, reads_float32=plan.reads_float32)


def _reads_float32(nodes: Sequence[Node], node: Node) -> bool:
    """Return whether a node, or a body that it runs, is a product or convolution of float32 or complex64 operands."""
    if node.op.is_product and real_dtype(nodes[node.operands[0]].type.dtype) == np.float32:
        return True
    return any(plan.reads_float32 for plan in node.op.runs)


def graph_of(plan: Plan, registry: Registry) -> Graph:
    """Restore the graph that a plan was made from."""
    # Slots are node numbers, so each node goes back to its place.
    nodes: list[Node | None] = [None] * plan.slots
    for feed, slot in plan.feeds.items():
        nodes[slot] = Node(registry.ops["input"], (), {"feed": feed}, (plan.feed_types[feed],))
    for step in plan.steps:
        nodes[step.result] = Node(step.op, step.operands, step.attrs, step.types, step.origin)
    return Graph(tuple(node for node in nodes if node is not None), plan.results, registry)


def _materialised(storage: MemoryBlocks, allowance: Allowance) -> MemoryBlocks:
    """Append an `identity`, which copies, to each output that is a strided view, since results must be dense."""
    graph = storage.graph
    nodes = list(graph.nodes)
    copies: dict[int, int] = {}
    for i in graph.outputs:
        if not storage.contiguous[i] and i not in copies:
            copies[i] = len(nodes)
            nodes.append(Node(graph.registry.ops["identity"], (i,), {}, nodes[i].types, nodes[i].origin))
    outputs = [copies.get(i, i) for i in graph.outputs]
    return MemoryBlocks(graph.with_nodes(nodes, outputs), allowance) if copies else storage


def _costs(storage: MemoryBlocks, allowance: Allowance) -> tuple[list[int], int]:
    """Count the FLOPs of each node, and the workspace: that of all bodies, plus the largest of the other workspaces."""
    nodes = storage.graph.nodes
    costs = work_by_node(allowance.over(nodes), storage.types)
    bodies = {plan for node in nodes for plan in node.op.runs}
    transient = [space - sum([x.working_bytes for x in n.op.runs]) for n, (_, space) in zip(nodes, costs, strict=True)]
    # Bodies keep their memory from one run to the next; the workspace of other steps is free after each step.
    return [flops for flops, _ in costs], sum([plan.working_bytes for plan in bodies]) + max(transient, default=0)


def _steps(storage: MemoryBlocks, packing: Packing, flops: Sequence[int], allowance: Allowance) -> tuple[Step, ...]:
    dead, steps = _last_uses(storage.graph), list[Step]()
    shared_places: dict[tuple[Place, ...], tuple[Place, ...]] = {}  # equal tuples of places are one object
    block, is_view, places = storage.block, storage.is_view, packing.places
    for i, (op, operands, attrs, types, origin) in enumerate(allowance.over(storage.graph.nodes)):
        if not op.is_leaf:
            first = block[i]
            step_places = () if is_view[i] else tuple(places[first : first + len(types)])
            step_places, step_dead = shared_places.setdefault(step_places, step_places), tuple(dead.get(i, ()))
            own_attrs = _own(attrs) if attrs else attrs
            steps.append(
                Step._make(
                    (cast("Kernel", op), operands, own_attrs, i, types, step_places, step_dead, origin, flops[i])
                )
            )
    return tuple(steps)


def _own(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy the tensors of `attrs` that others may write to, or that are views.

    A view would keep the whole array alive: for a constant of three numbers, the body of its HTTP request. A read-only
    tensor that owns its memory, such as a result of constant folding, is not copied.
    """
    if is_small(attrs) or not any(isinstance(value, np.ndarray) for value in attrs.values()):
        return attrs
    return {name: _owned(value) if isinstance(value, np.ndarray) else value for name, value in attrs.items()}


def _owned(array: HostArray) -> HostArray:
    return array if array.flags.owndata and not array.flags.writeable else read_only_copy(array)


def _attribute_bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return ENTRY_BYTES * len(value) if isinstance(value, tuple) else 0


def _last_uses(graph: Graph) -> dict[int, list[int]]:
    """List for each node the nodes whose last reader it is. Outputs are never dead."""
    last_reader = list(range(len(graph.nodes)))
    for i, (_, operands, *_) in enumerate(graph.nodes):
        for operand in operands:
            last_reader[operand] = i
    dead: dict[int, list[int]] = {}
    outputs = set(graph.outputs)
    for value, reader in enumerate(last_reader):
        if value not in outputs:
            if reader in dead:
                dead[reader].append(value)
            else:
                dead[reader] = [value]
    return dead
