"""Fusion: turn groups of nodes over one iteration space into one kernel each.

Inside a fused kernel, intermediate values stay in registers and never reach memory. `Grouping` finds the groups. For
each group that pays off, `_Writer` writes a `FusedKernel`: it loads the operands that come from outside the group,
computes the scalar of each node, and stores the results that are read outside the group. For example,

    a = x * y
    b = exp(a)               fused(x, y) → b, s
    s = sum(b, axis=1)       two loads, three scalars, two results; a is never stored
    c = gather(b, i)         stays a node of its own: it has no scalar formula

A kernel may also recompute nodes of another group rather than read their results from memory. With the gradient of the
example, g = dL/ds, the backward pass needs

    da = broadcast(g) * b    fused(x, y, g) → da, and b is computed again from x and y

If nothing else reads b, it is now never stored at all. `_Recomputing` decides this per kernel by counting FLOPs and
bytes.

If no kernel can be written for a group, its nodes are computed one by one. Then all kernels are written again, because
they may have to store values for these nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Final, NamedTuple

from engine.codegen.kernels.program import KernelBuilder, Level, Scalar
from engine.compiler.fused_kernel import Fused, RowLayout, Strides, lay_out
from engine.compiler.fusion_groups import Group, Grouping, Member
from engine.compiler.plan import MemoryBlocks
from engine.ir.graph import Graph, Node
from engine.ir.op import View
from engine.ir.passes import dce
from engine.ir.tensor_type import BOOL, DType, Shape, Strided, TensorType, real_dtype
from engine.ops.common.numerics import reduced_elements
from engine.ops.elementwise.base import Elementwise, scalar_type
from engine.ops.reduce.sums import Rowwise

#: FLOPs per element that a kernel may spend on recomputing values of another kernel
MOST_COST: Final = 100
#: bytes that a kernel may read to recompute one byte; over 1, to admit small operands beside a large one
MOST_READ: Final = 1.125
#: maximum nodes of a kernel; compiling larger ones takes longer than it saves
MOST_NODES: Final = 400
#: elements from which a kernel pays off without being compiled, because values between its nodes exceed the cache
LEAST_ELEMENTS: Final = 1 << 21
#: FLOPs per element from which a kernel of one node pays off
_COSTLY: Final = 10
#: elements from which a kernel of one node pays off if NumPy needs several calls for it, or if it is complex
_MANY: Final = 1 << 14
#: columns of a short row, as NumPy runs an inner loop per row if operands broadcast; elements from which it matters
_SHORT_ROW: Final = 64
_MANY_ROWS: Final = 1 << 13

# Recomputation: a kernel may recompute values of another kernel rather than read them, since memory traffic costs more
# than arithmetic. The backward pass through a chain of elementwise nodes reads values of the forward pass. If these can
# be computed from operands that are in memory anyway, or from fewer bytes, they are neither written nor held between
# the kernels. Values with one element per row are always read, because that costs next to nothing.


class _Chain(NamedTuple):
    """Nodes to recompute, and the nodes that they read from memory."""

    nodes: set[int]
    inputs: set[int]


class _Recomputing:
    """The groups, each with the nodes of other groups that its kernel recomputes."""

    def __init__(self, grouping: Grouping, groups: Sequence[Group]) -> None:
        self._nodes = grouping.graph.nodes
        self._grouping = grouping
        #: nodes that are written to memory in any case
        self._stored = set(grouping.graph.outputs)
        grouped = {i for group in groups for i in group.nodes}
        for i, node in enumerate(self._nodes):
            if i not in grouped:
                self._stored.update(node.operands)
        # By stage, so that a group knows what earlier groups store. Later groups cannot feed earlier ones.
        ordered = sorted(groups, key=lambda group: grouping.stages[group.nodes[0]])
        self.groups = [self._extended(group) for group in ordered]

    def _extended(self, group: Group) -> Group:
        """Extend the group by the chains of all its operands together, or by each chain that pays off by itself."""
        inside = set(group.nodes)
        reads = [(o, i) for i in group.nodes for o in self._nodes[i].operands if o not in inside]
        outside_operands = {o for o, _ in reads}
        optional = {o for o in outside_operands if self._is_optional(o)}
        candidates = {o for o in optional if self._is_computed_in(group.domain.dtype, o)}
        # Operands read as one value per row. Recomputed in this kernel, they would be aligned with its columns instead.
        at_rows = {o for o, i in reads if self._grouping.lacks_axes(o, i)}
        recomputed: set[int] = set()
        # Chains may share inputs, so the chains together can pay off though each alone does not.
        for values in (candidates - at_rows, *({o} for o in sorted(candidates - at_rows))):
            chain = self._chain(values, inside | at_rows, group.domain.dtype)
            if values and not values <= recomputed and self._pays(chain, values, outside_operands):
                recomputed |= chain.nodes
                self._stored |= chain.inputs
        self._stored.update(optional - recomputed)
        return group._replace(recomputed=tuple(sorted(recomputed)))

    def _is_optional(self, i: int) -> bool:
        return self._grouping.is_element(i) and i not in self._stored

    def _is_computed_in(self, dtype: DType, i: int) -> bool:
        """Whether a kernel of this dtype can compute a node: a bool may come from numbers of another dtype."""
        member = self._grouping.members[i]
        return member is not None and member.domain.dtype == dtype

    def _chain(self, values: Iterable[int], inside: set[int], dtype: DType) -> _Chain:
        chain, pending = _Chain(set(), set()), list(values)
        while pending:
            i = pending.pop()
            if i in chain.nodes or i in inside:
                continue
            if self._is_optional(i) and self._is_computed_in(dtype, i):
                chain.nodes.add(i)
                pending.extend(self._nodes[i].operands)
            # Row values are not counted as inputs, since reading them costs next to nothing.
            elif (member := self._grouping.members[i]) is None or member.level == Level.ELEMENT:
                chain.inputs.add(i)
        return chain

    def _pays(self, chain: _Chain, values: Iterable[int], already_read: set[int]) -> bool:
        ops = [self._nodes[i].op for i in chain.nodes]
        cost = sum(op.cost for op in ops if isinstance(op, Elementwise))
        return cost <= MOST_COST and self._nbytes(chain.inputs - already_read) <= MOST_READ * self._nbytes(values)

    def _nbytes(self, nodes: Iterable[int]) -> int:
        return sum(self._nodes[i].type.nbytes for i in nodes)


def fuse(
    graph: Graph,
    min_elements: int = LEAST_ELEMENTS,
    *,
    compiled: bool = False,
    threads: int = 1,
    excluded: Container[int] = (),
) -> Graph:
    """Replace groups of nodes over at least `min_elements` elements by one `fused` node each, with equal results.

    `compiled` tells whether the kernels will be compiled or run by NumPy. At most `threads` threads run one kernel.
    `excluded` nodes are not fused. The plan nearly always needs less memory; it may need more if fusion prolongs the
    life of values that a kernel reads.
    """
    return with_kernels(graph, find_kernels(graph, min_elements, compiled=compiled, threads=threads, excluded=excluded))


def find_kernels(
    graph: Graph,
    min_elements: int,
    *,
    compiled: bool,
    threads: int = 1,
    excluded: Container[int] = (),
    all_pay: bool = False,
    late: bool = False,
) -> Sequence[WrittenKernel]:
    """Write the kernels of `fuse`, without replacing nodes.

    With `all_pay`, single cheap nodes and nodes of bools alone become kernels, too. `late` is passed to `Grouping`.
    """
    if not compiled and not any(n.types[0].size >= min_elements and isinstance(n.op, Elementwise) for n in graph.nodes):
        return ()
    return _kernels(
        Grouping(graph, min_elements, excluded, in_body=all_pay, late=late), compiled, threads, all_pay=all_pay
    )


def with_kernels(graph: Graph, kernels: Sequence[WrittenKernel]) -> Graph:
    """Replace the groups of these kernels by the kernels; other nodes stay.

    The kernels may be a subset of those in the graph. Then nodes without a kernel are computed one by one, even if a
    kernel also computes them internally.
    """
    # Nodes that only kernels read, and compute for themselves, are dead now.
    return dce(_rewritten(graph, kernels)) if kernels else graph


class _NotFusible(Exception):
    """Failure to write a kernel for a group."""


class WrittenKernel(NamedTuple):
    """A `fused` node on operands of the original graph, the group of nodes that it replaces, and its results.

    The node is None if other kernels recompute all nodes of the group.
    """

    node: Node | None
    group: tuple[int, ...]
    results: tuple[int, ...]

    def with_node_numbers(self, numbers: Sequence[int]) -> WrittenKernel:
        """Renumber the nodes that the op lists: node i becomes `numbers[i]`."""
        if self.node is None or not isinstance(self.node.op, Fused):
            return self
        op = replace(self.node.op, nodes=tuple(numbers[i] for i in self.node.op.nodes))
        return self._replace(node=self.node._replace(op=op))

    def adds_up(self, k: int) -> bool:
        """Whether the k-th result is a sum over rows."""
        op = self.node and self.node.op
        return isinstance(op, Fused) and op.kernel.results[k].adds_up


def _kernels(grouping: Grouping, compiled: bool, threads: int, *, all_pay: bool) -> list[WrittenKernel]:
    graph, storage = grouping.graph, MemoryBlocks(grouping.graph)
    parts = _worthwhile(grouping, compiled, all_pay=all_pay)
    while True:
        groups = _Recomputing(grouping, parts).groups
        stored, kernels = _read_nodes(graph, groups), list[WrittenKernel]()
        for group in groups:
            with suppress(_NotFusible):
                kernels.append(_Writer(storage, grouping, stored, group).write_kernel(compiled, threads))
        if len(kernels) == len(parts):
            return kernels
        # Nodes of a dropped group run one by one, and may read values that other kernels did not store. So start over.
        parts = [part for part in parts if any(part.nodes == kernel.group for kernel in kernels)]


def _worthwhile(grouping: Grouping, compiled: bool, *, all_pay: bool) -> list[Group]:
    """Select groups that pay off as kernels: by themselves, or because they take over values of another one."""
    graph = grouping.graph
    # Split groups that are too large for one kernel. Nodes are in topological order, so no part needs a later one.
    parts = [
        group._replace(nodes=group.nodes[start : start + MOST_NODES])
        for group in grouping.groups()
        for start in range(0, len(group.nodes), MOST_NODES)
    ]
    paying = {part.nodes for part in parts if all_pay or _pays_off(graph, part, compiled)}
    elements = {i for nodes in paying for i in nodes if grouping.is_element(i)}
    consuming = {
        part.nodes for part in parts if compiled and elements.intersection(graph.nodes[part.nodes[0]].operands)
    }
    return [part for part in parts if part.nodes in paying | consuming]


def _pays_off(graph: Graph, group: Group, compiled: bool) -> bool:
    if len(group.nodes) > 1:
        return True
    node = graph.nodes[group.nodes[0]]
    if not isinstance(node.op, Elementwise) or node.op.cost >= _COSTLY:
        return True
    is_complex = any(type.is_complex for type in (node.type, *(graph.nodes[i].type for i in node.operands)))
    is_slow_in_numpy = (node.op.scalar is not None or is_complex) and node.type.size >= _MANY
    shapes = {graph.nodes[i].type.shape for i in node.operands if graph.nodes[i].type.ndim}
    is_in_short_rows = len(shapes) > 1 and node.type.shape[-1] <= _SHORT_ROW and node.type.size >= _MANY_ROWS
    return compiled and (is_slow_in_numpy or is_in_short_rows)


def _read_nodes(graph: Graph, groups: Sequence[Group]) -> set[int]:
    """Find the nodes that are read from memory: outputs, and operands that their reader does not compute itself."""
    stored, grouped = set(graph.outputs), set[int]()
    for group in groups:
        nodes = {*group.nodes, *group.recomputed}
        stored.update(o for i in nodes for o in graph.nodes[i].operands if o not in nodes)
        grouped.update(group.nodes)
    for i, node in enumerate(graph.nodes):
        if i not in grouped:
            stored.update(node.operands)
    return stored


class _Writer:
    """Writer of the kernel of one group."""

    def __init__(self, storage: MemoryBlocks, grouping: Grouping, stored: set[int], group: Group) -> None:
        self.nodes = storage.graph.nodes
        self.group = group
        self._storage = storage
        self._grouping = grouping
        self._stored_nodes = stored
        self._order = sorted((*group.nodes, *group.recomputed))
        self._members = set(self._order)
        self._scalars: dict[int, Scalar] = {}

    def write_kernel(self, compiled: bool, threads: int) -> WrittenKernel:
        """Write the `fused` node. Raises _NotFusible."""
        results = tuple(i for i in self.group.nodes if self._member(i).ending is not None or i in self._stored_nodes)
        if not results:
            return WrittenKernel(None, self.group.nodes, ())
        # A kernel reads numbers of one dtype: with another it would read beyond the operand.
        if any(real_dtype(type.dtype) not in (BOOL, self.group.domain.dtype) for type in self._inputs.values()):
            raise _NotFusible
        loads = {
            key: self._builder.load(level, scalar_type(type.dtype))
            for (key, type), (level, _) in zip(self._inputs.items(), self.layout.operands, strict=True)
        }
        for i in self._order:
            self._scalars[i] = self._scalar(i, [self._operand(o, i, loads) for o in self.nodes[i].operands])
        strides = [self._store(i) for i in results]
        space = self.layout.space(strides, sums_columns=any(self._member(i).ending == "columns" for i in results))
        types = tuple(self.nodes[i].type for i in results)
        # Recomputed nodes are counted by their own kernels only, so that the FLOPs of a plan do not depend on fusion.
        flops = sum(self.nodes[i].work(self._storage.types)[0] for i in self.group.nodes)
        op = Fused(self._builder.build(), space, types, flops, self.group.nodes, compiled, threads)
        operands = tuple(operand for operand, _ in self._inputs)
        node = Node(op, operands, {}, types, self.nodes[results[0]].origin)
        return WrittenKernel(node, self.group.nodes, results)

    @cached_property
    def _builder(self) -> KernelBuilder:
        return KernelBuilder(self.group.domain.dtype.name, len(self.layout.rows))

    @cached_property
    def _inputs(self) -> dict[tuple[int, bool], TensorType]:
        """Types of operands read from memory, by operand and by whether it lacks unit axes of a row value."""
        types = {}
        for i in self._order:
            for operand in self.nodes[i].operands:
                if operand not in self._members and self._number(operand) is None:
                    lacks_axes = self._grouping.lacks_axes(operand, i)
                    types[operand, lacks_axes] = self._type(operand, lacks_axes)
        return types

    def _type(self, operand: int, lacks_axes: bool) -> TensorType:
        type = self._storage.types[operand]
        assert isinstance(type, TensorType)
        if not lacks_axes:
            return type
        # Append unit axes of stride 0, so that the value broadcasts along the columns rather than aligning with them.
        units = (1,) * (self.group.row_axes or 0)
        return Strided(type.with_shape((*type.shape, *units)), (*type.strides, *(0 for _ in units)))

    @cached_property
    def layout(self) -> RowLayout:
        """Layout of the operands. Raises _NotFusible."""
        layout = lay_out(self.group.domain.shape, list(self._inputs.values()), self.group.row_axes)
        if layout is None:
            raise _NotFusible
        return layout

    def _operand(self, operand: int, reader: int, loads: Mapping[tuple[int, bool], Scalar]) -> Scalar:
        if operand in self._members:
            return self._scalars[operand]
        number = self._number(operand)
        if number is not None:
            real = self._builder.constant(number)
            return self._builder.as_pair(real) if self.nodes[operand].type.is_complex else real
        return loads[operand, self._grouping.lacks_axes(operand, reader)]

    def _number(self, operand: int) -> float | None:
        """Return the number that fills a node's result, if it is a constant in the kernel's dtype; else None."""
        node = self.nodes[operand]
        return node.op.constant_value(node.attrs) if real_dtype(node.type.dtype) == self.group.domain.dtype else None

    def _scalar(self, i: int, operands: Sequence[Scalar]) -> Scalar:
        node, member = self.nodes[i], self._member(i)
        if isinstance(node.op, Elementwise):
            scalar = node.op.write_scalar(operands, node.attrs)
            assert scalar is not None, f"{node.op.name} is no member of a kernel"
            return scalar
        (x,) = operands
        # Views and sums over leading axes have no arithmetic per element: the kernel's result does the adding.
        if isinstance(node.op, View) or member.ending == "columns" or not self.group.domain.shape:
            return x
        # The operand is one value per row already: the total adds these up, without a sum of each row before.
        if member.ending == "total" and x.level == Level.ROW and self._is_row_value(node.operands[0]):
            return x
        if x.level != Level.ELEMENT:
            raise _NotFusible
        if member.ending == "total":
            return x.row_sum()
        assert isinstance(node.op, Rowwise)
        return node.op.row_scalar(x, self.layout.columns, node.attrs)

    def _is_row_value(self, i: int) -> bool:
        """Whether a node has one value per row, as opposed to elements that are equal along the row."""
        member = self._grouping.members[i]
        return member is not None and member.level == Level.ROW

    def _store(self, i: int) -> Strides:
        """Make the scalar of a node a result; return its strides along the row axes."""
        member, scalar = self._member(i), self._scalars[i]
        if scalar.level != member.level:
            raise _NotFusible  # a scalar of lower level would have to be broadcast into the result
        if member.ending is not None:
            self._builder.store(member.ending, scalar)
            return ()
        is_element = member.level == Level.ELEMENT
        self._builder.store("element" if is_element else "row", scalar)
        return self.layout.element if is_element else self.layout.row

    def _member(self, i: int) -> Member:
        member = self._grouping.members[i]
        assert member is not None
        return member


def _rewritten(graph: Graph, kernels: Sequence[WrittenKernel]) -> Graph:
    """Replace groups by their kernels, each at the position of its group's last node if possible."""
    unit = list(range(len(graph.nodes)))  # a kernel has the number of its last node
    by_unit = {kernel.group[-1]: kernel for kernel in kernels}
    for kernel in kernels:
        for i in kernel.group:
            unit[i] = kernel.group[-1]
    nodes: list[Node] = []
    renumbered: dict[int, int] = {}
    for number in _in_order(graph, unit):
        if number in by_unit:
            _place(graph, by_unit[number], nodes, renumbered)
        else:
            _append(graph, number, nodes, renumbered)
    return graph.with_nodes(nodes, (renumbered[i] for i in graph.outputs))


def _in_order(graph: Graph, unit: Sequence[int]) -> Iterator[int]:
    """Yield units in topological order, and by number if several are ready."""
    needs: dict[int, set[int]] = {number: set() for number in unit}
    readers: dict[int, list[int]] = {number: [] for number in unit}
    for i, node in enumerate(graph.nodes):
        for operand in node.operands:
            if unit[operand] != unit[i] and unit[operand] not in needs[unit[i]]:
                needs[unit[i]].add(unit[operand])
                readers[unit[operand]].append(unit[i])
    # A kernel may have to wait for operands behind some of its nodes. Other units keep their order, which determines
    # the peak of memory.
    ready = [number for number, operands in needs.items() if not operands]
    heapq.heapify(ready)
    while ready:
        number = heapq.heappop(ready)
        yield number
        for reader in readers[number]:
            needs[reader].discard(number)
            if not needs[reader]:
                heapq.heappush(ready, reader)


def _append(graph: Graph, number: int, nodes: list[Node], renumbered: dict[int, int]) -> None:
    """Append a node, after the operands that are not in `nodes` yet."""
    # Operands are missing if a kernel was to keep them internal, but a node without a kernel reads them.
    waiting = [number]
    while waiting:
        missing = [operand for operand in graph.nodes[waiting[-1]].operands if operand not in renumbered]
        if missing:
            waiting += missing
        elif (i := waiting.pop()) not in renumbered:
            nodes.append(_renumbered(graph.nodes[i], renumbered))
            renumbered[i] = len(nodes) - 1


def _place(graph: Graph, kernel: WrittenKernel, nodes: list[Node], renumbered: dict[int, int]) -> None:
    """Append a kernel and its results. A mean is appended as a sum and its quotient."""
    ops, fused = graph.registry.ops, len(nodes)
    if kernel.node is None:
        return
    nodes.append(_renumbered(kernel.node, renumbered))
    for k, i in enumerate(kernel.results):
        node = graph.nodes[i]
        nodes.append(Node(ops["get_output"], (fused,), {"index": k}, node.types, node.origin))
        divisor = _divisor(node, graph.nodes[node.operands[0]].type.shape) if kernel.adds_up(k) else 1.0
        if divisor != 1:
            nodes.append(Node(ops["div_scalar"], (len(nodes) - 1,), {"scalar": divisor}, node.types, node.origin))
        renumbered[i] = len(nodes) - 1


def _divisor(node: Node, shape: Shape) -> float:
    """Return the divisor of the sum that replaces a node: the number of elements for a mean, 1 for a sum."""
    assert isinstance(node.op, Rowwise)
    divisor = node.op.divisor(reduced_elements(shape, node.op.row_axes(node.attrs)))
    assert divisor is not None, f"{node.op.name} is no sum"
    return divisor


def _renumbered(node: Node, renumbered: Mapping[int, int]) -> Node:
    return node.with_operands(tuple(renumbered[i] for i in node.operands))
