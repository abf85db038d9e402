"""Plans: linear steps, each of which knows where its results lie and which values are dead after it.

Peak bytes and FLOPs are known here, before anything runs; a request over its budget is refused here.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine.ir.graph import Graph, Node, Origin, RuleCache, is_small, works
from engine.ir.op import Definition, Kernel, Registry, ResultTypes, View
from engine.ir.passes import UNBOUNDED, Allowance
from engine.ir.program import Body
from engine.ir.run_context import ALIGNMENT, NO_DEADLINE, Deadline, Limits, aligned
from engine.ir.run_report import IEEE, Precision
from engine.ir.tensor_type import HostArray, Strided, TensorType, read_only_copy

# Memory of a plan, decided before it runs: which results are views, how long each block is needed, and where it lies.
#
# A result that does not outlive the run gets a place in the arena. One that does has memory of its own, so that keeping
# it keeps nothing else; until it is written, that memory serves like the arena.

#: offline packing looks at all pairs of blocks
MOST_PACKED = 2048
#: what packing must be able to save: bytes, and a part of all
WORTH_SAVING = 1 << 20, 0.02
#: a step that never comes; and bytes up to which offline packing can add addresses
_FOREVER = 1 << 62
_MOST_ADDRESSED = 1 << 60
#: bytes that NumPy can address
_LARGEST = 1 << 62

_Ints = np.ndarray[Any, np.dtype[np.int64]]


class Block(NamedTuple):
    """Memory of a result: its bytes, the step that writes it, and the last one that reads it."""

    nbytes: int
    born: int
    last: int


class Place(NamedTuple):
    """Place of a result: buffer 0 is the arena, the others are those of the kept results."""

    buffer: int
    offset: int


class Packing(NamedTuple):
    """A place for each block, and the bytes of each buffer."""

    places: Sequence[Place]
    buffers: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        return sum(self.buffers)


def pack(
    blocks: Sequence[Block], kept: Sequence[int], allowance: Allowance = UNBOUNDED, *, tight: bool = False
) -> Packing:
    """Place blocks, which are listed in the order in which they are born; the `kept` ones outlive the run.

    Best fit, and for up to MOST_PACKED blocks, while that wastes memory (`tight`: any), by size: of equal ones the
    first one first, then the last one. Raises DeadlineExceeded.
    """
    packing = _by_time(blocks, kept, allowance)
    if len(blocks) > MOST_PACKED or packing.nbytes > _MOST_ADDRESSED:
        return packing
    live, (least, part) = max(live_bytes(blocks, kept)), WORTH_SAVING
    enough = live if tight else max(live + least, live * (1 + part))
    for direction in (1, -1):
        if packing.nbytes > enough:
            packing = min(packing, _by_size(blocks, kept, direction, allowance), key=lambda p: p.nbytes)
    return packing


def live_bytes(blocks: Sequence[Block], kept: Sequence[int]) -> list[int]:
    """Count the bytes that are needed at each step: no packing takes less than the most of them."""
    forever = set(kept)
    change = [0] * (2 + max((b.last for b in blocks), default=0))
    for i, block in enumerate(blocks):
        change[block.born] += aligned(block.nbytes)
        change[block.last + 1] -= 0 if i in forever else aligned(block.nbytes)
    return list(accumulate(change))


def _own_places(kept: Sequence[int]) -> dict[int, Place]:
    return {block: Place(1 + k, 0) for k, block in enumerate(kept)}


def _by_time(blocks: Sequence[Block], kept: Sequence[int], allowance: Allowance) -> Packing:
    """Place blocks by best fit: step by step, each in the shortest gap of the arena that holds it. Near-linear."""
    arena, places = Arena(), list[Place]()
    own, at = _own_places(kept), {0: Place(0, 0)}  # equal places are one object: a plan keeps them all
    leaving: dict[int, list[tuple[int, int]]] = {}
    now = 0
    for i, (size, born, last) in enumerate(allowance.over(blocks)):
        while now < born:
            for start, nbytes in leaving.pop(now, ()):
                arena.give(start, nbytes)
            now += 1
        if i in own:
            places.append(own[i])
        elif not size:
            places.append(at[0])
        else:
            nbytes = aligned(size)
            start = arena.allocate(nbytes)
            if last in leaving:
                leaving[last].append((start, nbytes))
            else:
                leaving[last] = [(start, nbytes)]
            if start not in at:
                at[start] = Place(0, start)
            places.append(at[start])
    return Packing(places, (arena.size, *(aligned(blocks[i].nbytes) for i in kept)))


class Arena:
    """Memory that is handed out and taken back. `size` is how much of it has been needed so far."""

    def __init__(self) -> None:
        self.size = 0
        self._gaps: list[tuple[int, int]] = []  # length and start, the shortest first
        self._ends: dict[int, int] = {}  # start → end, of each gap
        self._starts: dict[int, int] = {}  # end → start

    def allocate(self, nbytes: int) -> int:
        """Allocate `nbytes`, more than none, and return their offset."""
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

    def give(self, start: int, nbytes: int) -> None:
        """Take back the `nbytes` that lie at `start`; gaps that touch become one."""
        end = start + nbytes
        before, after = self._starts.get(start, start), self._ends.get(end, end)
        if before < start:
            self._remove(before, start)
        if after > end:
            self._remove(end, after)
        self._add(before, after)

    def _grow(self, nbytes: int) -> int:
        """Extend the arena at its end, where there may be a gap."""
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


def _by_size(blocks: Sequence[Block], kept: Sequence[int], direction: int, allowance: Allowance) -> Packing:
    """Place the largest block first, equal ones in the `direction` of time: each in the shortest gap while it lives.

    Y. Pisarchyk, J. Lee, "Efficient memory management for deep neural net inference" (2020), greedy by size. All
    buffers share one space of addresses, the arena the last of them.
    """
    own = _own_places(kept)
    addresses = AddressSpace([blocks[i] for i in kept], len(blocks) + 2 * len(kept))
    places = [own.get(i, Place(0, 0)) for i in range(len(blocks))]
    waiting = (i for i, block in enumerate(blocks) if i not in own and block.nbytes)
    for i in allowance.over(sorted(waiting, key=lambda i: (-blocks[i].nbytes, direction * i))):
        places[i] = addresses.place_block(blocks[i])
    return Packing(places, (addresses.arena, *(aligned(blocks[i].nbytes) for i in kept)))


class AddressSpace:
    """Addresses of the kept blocks one after the other, and of the arena behind them.

    Between two buffers lies a fence, which is always there, so that no gap reaches across. `arena` is how much of the
    arena is used.
    """

    def __init__(self, kept: Sequence[Block], most: int) -> None:
        self.arena = 0
        self._bounds: list[int] = []
        self._count = 0
        #: rows: start, end, first and last step
        self._table: _Ints = np.empty((4, most), np.int64)
        top = 0
        for block in kept:
            self._bounds.append(top)
            top = self._put(top, aligned(block.nbytes), block.born, _FOREVER)
            top = self._put(top, ALIGNMENT, 0, _FOREVER)
        self._bounds.append(top)

    def place_block(self, block: Block) -> Place:
        """Find a place for a block, which is in use from now on."""
        start = self._gap(aligned(block.nbytes), block)
        end = self._put(start, aligned(block.nbytes), block.born, block.last)
        self.arena = max(self.arena, end - self._bounds[-1])
        k = bisect_left(self._bounds, start + 1) - 1
        return Place((k + 1) % len(self._bounds), start - self._bounds[k])

    def _put(self, start: int, nbytes: int, born: int, last: int) -> int:
        self._table[:, self._count] = start, start + nbytes, born, last
        self._count += 1
        return start + nbytes

    def _gap(self, nbytes: int, block: Block) -> int:
        """Find the start of the shortest gap that holds `nbytes` while the block lives; if there is none, the end."""
        start, end, born, last = self._table[:, : self._count]
        beside = np.flatnonzero((born <= block.last) & (last >= block.born))
        beside = beside[np.argsort(start[beside])]
        free_from = np.concatenate(([0], np.maximum.accumulate(end[beside])))
        gaps = np.concatenate((start[beside], [_FOREVER])) - free_from
        fits = np.flatnonzero(gaps >= nbytes)
        return int(free_from[fits[np.argmin(gaps[fits])]])


class Storage:
    """The blocks of memory behind the nodes of a graph: one for each result that is no view.

    A view shares its operand's block, which lives as long as anything that looks at it. `is_view` and `contiguous`
    say, for each node, whether it is one, and whether it fills its block densely; `block` is the number of the block
    behind its (first) result, and `types` what rules are told of it as an operand.
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
            if view is not None and (not view.reshapes or self.contiguous[node.operands[0]]):
                self._look(node, view)
            else:
                self._place(node)

    def _place(self, node: Node) -> None:
        """Allocate memory of its own."""
        self.is_view.append(False)
        self.contiguous.append(True)
        self.block.append(self._count)
        self._count += len(node.types)
        self.types.append(node.types if node.op.several else node.types[0])

    def _look(self, node: Node, view: View) -> None:
        """Share the operand's memory."""
        (operand,) = node.operands
        type = self.types[operand]
        self.is_view.append(True)
        self.contiguous.append(view.reshapes)
        self.block.append(self.block[operand] + (node.attrs["index"] if self.graph.nodes[operand].op.several else 0))
        is_dense = view.reshapes or isinstance(type, tuple)
        self.types.append(node.type if is_dense else _viewed(view, (node.type, type), node.attrs))

    def blocks(self) -> list[Block]:
        """List all blocks by number, with the steps in which they are needed; those of leaves have no bytes.

        A block is needed up to its own step, or the last one that reads it or a view of it.
        """
        sizes, born, last = list[int](), list[int](), list[int]()
        block, is_view = self.block, self.is_view
        for i, (op, operands, _, types, _) in enumerate(self.graph.nodes):
            if not is_view[i]:
                for type in types:
                    sizes.append(0 if op.is_leaf else type.nbytes)
                    born.append(i)
                    last.append(i)
                for operand in operands:
                    last[block[operand]] = i
        return list(map(Block, sizes, born, last))

    def kept(self) -> list[int]:
        """List the blocks behind the outputs, in their order, each once; a leaf's memory is its owner's."""
        return [b for b in dict.fromkeys(self.block[i] for i in self.graph.outputs) if b not in self.leaves]

    @cached_property
    def leaves(self) -> frozenset[int]:
        """The blocks of the leaves."""
        return frozenset([self.block[i] for i, node in enumerate(self.graph.nodes) if node.op.is_leaf])


def _view(op: Definition, types: tuple[TensorType, TensorType], attrs: Mapping[str, Any]) -> TensorType:
    """Return the type of a view, as NumPy strides it; as if dense, if it is larger than can be addressed."""
    result, operand = types
    if max(operand.span, result.span) >= _LARGEST:
        return result
    nothing = as_strided(np.empty(1, operand.dtype), operand.shape, operand.strides)
    return Strided(result, cast("View", op).view(np, nothing, **attrs).strides)


_viewed = RuleCache(_view)


def peak_memory_node(graph: Graph) -> Origin | None:
    """Find the client's node that most of the peak stems from, which a refusal names; None if there is none."""
    weights: dict[Origin, int] = {}
    for origin, nbytes in _at_the_peak(Storage(graph)):
        if origin is not None:
            node = origin._replace(backward=False)
            weights[node] = weights.get(node, 0) + nbytes
    return max(weights, key=weights.__getitem__, default=None)


def _at_the_peak(storage: Storage) -> Iterator[tuple[Origin | None, int]]:
    """Yield origins and bytes of feeds, of what is alive at the peak, and of the workspace of the step there."""
    nodes, blocks, kept = storage.graph.nodes, storage.blocks(), set(storage.kept())
    spaces = [space for _, space in works(nodes, storage.types)]
    needed = [live + space for live, space in zip(live_bytes(blocks, storage.kept()), spaces, strict=False)]
    peak = max(range(len(needed)), key=needed.__getitem__)
    yield nodes[peak].origin, spaces[peak]
    for i, node in enumerate(nodes):
        if node.is_leaf:
            yield node.origin, node.type.nbytes
        elif not storage.is_view[i]:
            first = storage.block[i]
            for k, block in enumerate(blocks[first : first + len(node.types)], first):
                if block.born <= peak and (peak <= block.last or k in kept):
                    yield node.origin, block.nbytes


#: bytes that a step holds; attributes; the type of a result; an entry of a list; a feed: as counted in CPython
STEP_BYTES, ATTRIBUTES_BYTES, TYPE_BYTES, ENTRY_BYTES, FEED_BYTES = 330, 250, 300, 36, 500
#: and a node of a body, with those of its derivatives and steps of their plans
BODY_NODE_BYTES: Final = 250
#: digest of a plan that has none
NO_DIGEST: Final = bytes(32)


class Step(NamedTuple):
    """One instruction: run `op` on the slots `operands`, keep the result in slot `result`, forget `dead`.

    Results of `types` are written at `places`; a view has none. `flops` is what the op takes.
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
    """Steps in order, and what they need. Slots are node numbers of the planned graph. A plan equals itself alone.

    `buffers` are the bytes of the memory that results lie in: first the arena, then one for each result that is kept.
    `peak_bytes` are these, the feeds that are read, and the largest workspace of a step; other feeds are not counted.
    `borrowed` are the positions of results that lie in the memory of a feed. Tensors among the attributes are the
    plan's own, and read-only. `digest`, 32 bytes, is the same in every process for the same request.
    `recomputed_flops`, of `flops`, are spent for want of memory. `precision` is how its products and convolutions may
    read float32 operands, if the device has a choice.
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
    borrowed: tuple[int, ...]
    digest: bytes = NO_DIGEST
    recomputed_flops: int = 0
    precision: Precision = IEEE

    @property
    def working_bytes(self) -> int:
        """The peak without what is fed."""
        return self.peak_bytes - sum(type.nbytes for type in self.feed_types.values())

    @property
    def nbytes(self) -> int:
        """Bytes that keeping the plan takes, within a factor of two: its constants, and what its steps and feeds hold.

        Steps share equal types and attributes with one another and with other plans; shared ones count for each plan.
        """
        attrs = {id(step.attrs): step.attrs for step in self.steps if step.attrs}
        types = {id(step.types): len(step.types) for step in self.steps}
        entries = sum([len(step.operands) + len(step.places) for step in self.steps])
        values = [value for each in attrs.values() for value in each.values()]
        shared = ATTRIBUTES_BYTES * len(attrs) + sum(map(_attribute_bytes, values)) + TYPE_BYTES * sum(types.values())
        # All nodes that were written for the requests that these bodies were made for: they hold one another.
        shared += BODY_NODE_BYTES * sum(budget.spent for budget in {x.budget for x in values if isinstance(x, Body)})
        return STEP_BYTES * len(self.steps) + ENTRY_BYTES * entries + shared + FEED_BYTES * len(self.feeds)


def make_plan(graph: Graph, limits: Limits, deadline: Deadline = NO_DEADLINE, *, tight: bool = False) -> Plan:
    """Plan an optimised graph; `tight`: in as little memory as is found. Raises OverBudget, DeadlineExceeded."""
    allowance = Allowance(deadline=deadline)
    storage = _materialised(Storage(graph, allowance), allowance)
    graph, feeds = storage.graph, storage.graph.feeds
    flops, workspace = _costs(storage, allowance)
    limits.admit_flops(sum(flops))
    packing = pack(storage.blocks(), storage.kept(), allowance, tight=tight)
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
        borrowed=tuple(k for k, i in enumerate(graph.outputs) if storage.block[i] in storage.leaves),
    )


def standing_for(substitute: Plan, plan: Plan) -> Plan:
    """Give a plan that runs in the place of another the digest and the precision of that."""
    return replace(substitute, digest=plan.digest, precision=plan.precision)


def graph_of(plan: Plan, registry: Registry) -> Graph:
    """Restore the graph that a plan was made of."""
    nodes: list[Node | None] = [None] * plan.slots
    for feed, slot in plan.feeds.items():
        nodes[slot] = Node(registry.ops["input"], (), {"feed": feed}, (plan.feed_types[feed],))
    for step in plan.steps:
        nodes[step.result] = Node(step.op, step.operands, step.attrs, step.types, step.origin)
    return Graph(tuple(node for node in nodes if node is not None), plan.results, registry)


def _materialised(storage: Storage, allowance: Allowance) -> Storage:
    """Append an `identity`, which copies, to each output that is a strided view."""
    graph = storage.graph
    nodes = list(graph.nodes)
    moved: dict[int, int] = {}
    for i in graph.outputs:
        if not storage.contiguous[i] and i not in moved:
            moved[i] = len(nodes)
            nodes.append(Node(graph.registry.ops["identity"], (i,), {}, nodes[i].types, nodes[i].origin))
    outputs = [moved.get(i, i) for i in graph.outputs]
    return Storage(graph.rewritten(nodes, outputs), allowance) if moved else storage


def _costs(storage: Storage, allowance: Allowance) -> tuple[list[int], int]:
    """Count the FLOPs of each node, and the workspace: that of bodies, and the largest of all other workspaces."""
    nodes = storage.graph.nodes
    costs = works(allowance.over(nodes), storage.types)
    inner = {plan for node in nodes for plan in node.op.runs}
    passing = [space - sum([x.working_bytes for x in n.op.runs]) for n, (_, space) in zip(nodes, costs, strict=True)]
    return [flops for flops, _ in costs], sum([plan.working_bytes for plan in inner]) + max(passing, default=0)


def _steps(storage: Storage, packing: Packing, flops: Sequence[int], allowance: Allowance) -> tuple[Step, ...]:
    dead, steps = _last_uses(storage.graph), list[Step]()
    listed: dict[tuple[Place, ...], tuple[Place, ...]] = {}  # equal lists of places are one object
    block, is_view, places = storage.block, storage.is_view, packing.places
    for i, (op, operands, attrs, types, origin) in enumerate(allowance.over(storage.graph.nodes)):
        if not op.is_leaf:
            first = block[i]
            written = () if is_view[i] else tuple(places[first : first + len(types)])
            written, gone = listed.setdefault(written, written), tuple(dead.get(i, ()))
            own = _own(attrs) if attrs else attrs
            steps.append(Step._make((cast("Kernel", op), operands, own, i, types, written, gone, origin, flops[i])))
    return tuple(steps)


def _own(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy the tensors of `attrs` that somebody else holds or could write to.

    A view would keep the memory that it looks into: for a constant of three numbers, the body of its request. A tensor
    that owns its memory and is read-only, as folding leaves it, is not copied.
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
    """List for each node the nodes whose value nobody reads after it. Outputs live on."""
    last = list(range(len(graph.nodes)))
    for i, (_, operands, *_) in enumerate(graph.nodes):
        for operand in operands:
            last[operand] = i
    dead: dict[int, list[int]] = {}
    outputs = set(graph.outputs)
    for value, user in enumerate(last):
        if value not in outputs:
            if user in dead:
                dead[user].append(value)
            else:
                dead[user] = [value]
    return dead
