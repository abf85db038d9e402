"""Fusion: groups of nodes over one iteration space become one kernel each, whose inner values never reach memory.

`Grouping` finds the groups. The groups that pay become kernels: `_Writer` writes the scalars of a group's nodes as a
`FusedKernel`, loads the operands from outside, and stores the results that are read from outside. For example,

    a = x * y
    b = exp(a)               fused(x, y) → b, s
    s = sum(b, axis=1)       two loads, three scalars, two results; a is never stored
    c = gather(b, i)         stays a node of its own: it has no scalar formula

A kernel may recompute nodes of another group rather than read their results from memory. A group that no kernel can be
written for is computed node by node, and then all kernels are written again, as others may have to store more for it.
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
from engine.compiler.plan import Storage
from engine.ir.graph import Graph, Node
from engine.ir.op import View
from engine.ir.passes import dce
from engine.ir.tensor_type import Shape, Strided, TensorType, real_dtype
from engine.ops.common.numerics import count
from engine.ops.elementwise.base import Elementwise, scalars_of
from engine.ops.reduce.sums import Rowwise

#: FLOPs for one element that a kernel may spend on what another has computed
MOST_COST: Final = 100
#: bytes that it may read instead of one that is then not written either: as many as a value a column beside them
MOST_READ: Final = 1.125
#: nodes of one kernel: beyond, compiling takes longer than it saves
MOST_NODES: Final = 400
#: elements from which a kernel pays at once, before anything is compiled: what lies between its nodes leaves the cache
LEAST_ELEMENTS: Final = 1 << 21
#: FLOPs for one element from which a kernel of one node pays
_COSTLY: Final = 10
#: elements from which a kernel of one node pays where NumPy takes several calls for it, or goes from pair to pair
_MANY: Final = 1 << 14
#: short rows, which NumPy begins anew one by one where operands broadcast; and elements from which that shows
_SHORT_ROW: Final = 64
_MANY_ROWS: Final = 1 << 13

# Recomputation: a kernel may recompute values of another rather than read them, since memory costs more than
# arithmetic. The backward pass through a chain of elementwise nodes reads values of the forward pass. If these can be
# computed from what is in memory anyway, or from fewer bytes, they are neither written nor kept in between. A value a
# row is always read: it costs next to nothing.


class _Chain(NamedTuple):
    """Nodes that are computed again, and the elements that this takes from memory."""

    nodes: set[int]
    inputs: set[int]


class _Recomputing:
    """The groups, each with the nodes of others that its kernel computes again."""

    def __init__(self, grouping: Grouping, groups: Sequence[Group]) -> None:
        self._nodes = grouping.graph.nodes
        self._grouping = grouping
        #: what is written to memory in any case
        self._stored = set(grouping.graph.outputs)
        grouped = {i for group in groups for i in group.nodes}
        for i, node in enumerate(self._nodes):
            if i not in grouped:
                self._stored.update(node.operands)
        ordered = sorted(groups, key=lambda group: grouping.stages[group.nodes[0]])
        self.groups = [self._extended(group) for group in ordered]

    def _extended(self, group: Group) -> Group:
        """Extend the group by all chains together, or else by each that pays by itself."""
        inside = set(group.nodes)
        reads = [(o, i) for i in group.nodes for o in self._nodes[i].operands if o not in inside]
        read = {o for o, _ in reads}
        wanted = {o for o in read if self._is_optional(o)}
        # Computed in this kernel, they would be along its columns.
        at_rows = {o for o, i in reads if self._grouping.lacks_axes(o, i)}
        again: set[int] = set()
        for values in (wanted - at_rows, *({o} for o in sorted(wanted - at_rows))):
            chain = self._chain(values, inside | at_rows)
            if values and not values <= again and self._pays(chain, values, read):
                again |= chain.nodes
        self._stored.update(wanted - again)
        return group._replace(again=tuple(sorted(again)))

    def _is_optional(self, i: int) -> bool:
        return self._grouping.is_element(i) and i not in self._stored

    def _chain(self, values: Iterable[int], inside: set[int]) -> _Chain:
        chain, todo = _Chain(set(), set()), list(values)
        while todo:
            i = todo.pop()
            if i in chain.nodes or i in inside:
                continue
            if self._is_optional(i):
                chain.nodes.add(i)
                todo.extend(self._nodes[i].operands)
            elif (member := self._grouping.members[i]) is None or member.level == Level.ELEMENT:
                chain.inputs.add(i)
        return chain

    def _pays(self, chain: _Chain, values: Iterable[int], read: set[int]) -> bool:
        ops = [self._nodes[i].op for i in chain.nodes]
        cost = sum(op.cost for op in ops if isinstance(op, Elementwise))
        return cost <= MOST_COST and self._nbytes(chain.inputs - read) <= MOST_READ * self._nbytes(values)

    def _nbytes(self, nodes: Iterable[int]) -> int:
        return sum(self._nodes[i].type.nbytes for i in nodes)


def fuse(
    graph: Graph, least: int = LEAST_ELEMENTS, *, compiled: bool = False, threads: int = 1, apart: Container[int] = ()
) -> Graph:
    """Replace groups of nodes over at least `least` elements by one `fused` node each, which computes the same.

    The kernels are to be `compiled`, or run by NumPy; at most so many `threads` take part in one. Nodes that stay
    `apart` are in none. The plan nearly always needs less memory; it may need more if what a kernel reads lives longer.
    """
    return with_kernels(graph, kernels_in(graph, least, compiled=compiled, threads=threads, apart=apart))


def kernels_in(
    graph: Graph,
    least: int,
    *,
    compiled: bool,
    threads: int = 1,
    apart: Container[int] = (),
    all_pay: bool = False,
    late: bool = False,
) -> Sequence[WrittenKernel]:
    """Write the kernels of `fuse`.

    With `all_pay`, single cheap nodes and nodes of bools alone become kernels, too; `late` is that of `Grouping`.
    """
    if not compiled and not any(n.types[0].size >= least and isinstance(n.op, Elementwise) for n in graph.nodes):
        return ()
    return _kernels(Grouping(graph, least, apart, in_body=all_pay, late=late), compiled, threads, all_pay=all_pay)


def with_kernels(graph: Graph, kernels: Sequence[WrittenKernel]) -> Graph:
    """Put these kernels in the place of their groups; other nodes stay.

    If some kernels are left out, a value that a kernel has for itself, and another node reads, is computed once more.
    """
    return dce(_rewritten(graph, kernels)) if kernels else graph


class _Unwritten(Exception):
    """Failure of a group that no kernel can be written for."""


class WrittenKernel(NamedTuple):
    """A `fused` node, on operands of the graph as it was, the nodes in whose place it stands, and its results.

    The node is None if other kernels compute all of the group for themselves.
    """

    node: Node | None
    group: tuple[int, ...]
    results: tuple[int, ...]

    def of_nodes(self, numbers: Sequence[int]) -> WrittenKernel:
        """Renumber the nodes that its op names: `numbers` by those of its group."""
        if self.node is None or not isinstance(self.node.op, Fused):
            return self
        op = replace(self.node.op, nodes=tuple(numbers[i] for i in self.node.op.nodes))
        return self._replace(node=self.node._replace(op=op))

    def adds_up(self, k: int) -> bool:
        """Whether a result is a sum over rows."""
        op = self.node and self.node.op
        return isinstance(op, Fused) and op.loop.results[k].adds_up


def _kernels(grouping: Grouping, compiled: bool, threads: int, *, all_pay: bool) -> list[WrittenKernel]:
    graph, storage = grouping.graph, Storage(grouping.graph)
    parts = _worthwhile(grouping, compiled, all_pay=all_pay)
    while True:
        groups = _Recomputing(grouping, parts).groups
        read, kernels = _read_nodes(graph, groups), list[WrittenKernel]()
        for group in groups:
            with suppress(_Unwritten):
                kernels.append(_Writer(storage, grouping, read, group).write_kernel(compiled, threads))
        if len(kernels) == len(parts):
            return kernels
        # A group that is left out is computed node by node: other kernels may have to keep for it what they recompute.
        parts = [part for part in parts if any(part.nodes == kernel.group for kernel in kernels)]


def _worthwhile(grouping: Grouping, compiled: bool, *, all_pay: bool) -> list[Group]:
    """Select the groups, in parts, that pay as kernels: each by itself, or because it spares another one a result."""
    graph = grouping.graph
    # A group that is too large for one kernel goes in parts, in their order: what is earlier needs nothing later.
    parts = [
        group._replace(nodes=group.nodes[start : start + MOST_NODES])
        for group in grouping.groups()
        for start in range(0, len(group.nodes), MOST_NODES)
    ]
    gaining = {part.nodes for part in parts if all_pay or _gains(graph, part, compiled)}
    looped = {i for nodes in gaining for i in nodes if grouping.is_element(i)}
    sparing = {part.nodes for part in parts if compiled and looped.intersection(graph.nodes[part.nodes[0]].operands)}
    return [part for part in parts if part.nodes in gaining | sparing]


def _gains(graph: Graph, group: Group, compiled: bool) -> bool:
    if len(group.nodes) > 1:
        return True
    node = graph.nodes[group.nodes[0]]
    if not isinstance(node.op, Elementwise) or node.op.cost >= _COSTLY:
        return True
    is_complex = any(type.is_complex for type in (node.type, *(graph.nodes[i].type for i in node.operands)))
    is_several = (node.op.scalar is not None or is_complex) and node.type.size >= _MANY
    shapes = {graph.nodes[i].type.shape for i in node.operands if graph.nodes[i].type.ndim}
    is_in_short_rows = len(shapes) > 1 and node.type.shape[-1] <= _SHORT_ROW and node.type.size >= _MANY_ROWS
    return compiled and (is_several or is_in_short_rows)


def _read_nodes(graph: Graph, groups: Sequence[Group]) -> set[int]:
    """Find the nodes that are read from memory: outputs, and what a node or a kernel does not compute for itself."""
    read, grouped = set(graph.outputs), set[int]()
    for group in groups:
        nodes = {*group.nodes, *group.again}
        read.update(o for i in nodes for o in graph.nodes[i].operands if o not in nodes)
        grouped.update(group.nodes)
    for i, node in enumerate(graph.nodes):
        if i not in grouped:
            read.update(node.operands)
    return read


class _Writer:
    """Writer of the kernel of one group."""

    def __init__(self, storage: Storage, grouping: Grouping, read: set[int], group: Group) -> None:
        self.nodes = storage.graph.nodes
        self.group = group
        self._storage = storage
        self._grouping = grouping
        self._read = read
        self._order = sorted((*group.nodes, *group.again))
        self._inside = set(self._order)
        self._scalars: dict[int, Scalar] = {}

    def write_kernel(self, compiled: bool, threads: int) -> WrittenKernel:
        """Write the `fused` node. Raises _Unwritten."""
        results = tuple(i for i in self.group.nodes if self._member(i).ending is not None or i in self._read)
        if not results:
            return WrittenKernel(None, self.group.nodes, ())
        if any(type.dtype.kind not in "bfc" for type in self._outside.values()):
            raise _Unwritten
        loads = {
            key: self._builder.load(level, scalars_of(type.dtype))
            for (key, type), (level, _) in zip(self._outside.items(), self.layout.operands, strict=True)
        }
        for i in self._order:
            self._scalars[i] = self._scalar(i, [self._operand(o, i, loads) for o in self.nodes[i].operands])
        strides = [self._store(i) for i in results]
        space = self.layout.space(strides, sums_columns=any(self._member(i).ending == "columns" for i in results))
        types = tuple(self.nodes[i].type for i in results)
        flops = sum(self.nodes[i].work(self._storage.types)[0] for i in self.group.nodes)
        op = Fused(self._builder.loop(), space, types, flops, self.group.nodes, compiled, threads)
        operands = tuple(operand for operand, _ in self._outside)
        node = Node(op, operands, {}, types, self.nodes[results[0]].origin)
        return WrittenKernel(node, self.group.nodes, results)

    @cached_property
    def _builder(self) -> KernelBuilder:
        return KernelBuilder(self.group.domain.dtype.name, len(self.layout.rows))

    @cached_property
    def _outside(self) -> dict[tuple[int, bool], TensorType]:
        """Operands read from memory, with their types; and whether they lack the unit axes of a value a row."""
        types = {}
        for i in self._order:
            for operand in self.nodes[i].operands:
                if operand not in self._inside and self._number(operand) is None:
                    lacks = self._grouping.lacks_axes(operand, i)
                    types[operand, lacks] = self._type(operand, lacks)
        return types

    def _type(self, operand: int, lacks_axes: bool) -> TensorType:
        type = self._storage.types[operand]
        assert isinstance(type, TensorType)
        if not lacks_axes:
            return type
        units = (1,) * (self.group.row_axes or 0)
        return Strided(type.with_shape((*type.shape, *units)), (*type.strides, *(0 for _ in units)))

    @cached_property
    def layout(self) -> RowLayout:
        """Layout of the operands. Raises _Unwritten."""
        layout = lay_out(self.group.domain.shape, list(self._outside.values()), self.group.row_axes)
        if layout is None:
            raise _Unwritten
        return layout

    def _operand(self, operand: int, reader: int, loads: Mapping[tuple[int, bool], Scalar]) -> Scalar:
        if operand in self._inside:
            return self._scalars[operand]
        number = self._number(operand)
        if number is not None:
            real = self._builder.constant(number)
            return self._builder.as_pair(real) if self.nodes[operand].type.is_complex else real
        return loads[operand, self._grouping.lacks_axes(operand, reader)]

    def _number(self, operand: int) -> float | None:
        """Return the number that a node holds everywhere, if that is one of the kernel's dtype, or of pairs of it."""
        node = self.nodes[operand]
        return node.op.number_everywhere(node.attrs) if real_dtype(node.type.dtype) == self.group.domain.dtype else None

    def _scalar(self, i: int, operands: Sequence[Scalar]) -> Scalar:
        node, member = self.nodes[i], self._member(i)
        if isinstance(node.op, Elementwise):
            scalar = node.op.scalar_of(operands, node.attrs)
            assert scalar is not None, f"{node.op.name} is no member of a kernel"
            return scalar
        (x,) = operands
        if isinstance(node.op, View) or member.ending == "columns" or not self.group.domain.shape:
            return x
        if member.ending == "total" and x.level == Level.ROW and self._stands_at_rows(node.operands[0]):
            return x
        if x.level != Level.ELEMENT:
            raise _Unwritten
        if member.ending == "total":
            return x.row_sum()
        assert isinstance(node.op, Rowwise)
        return node.op.row_scalar(x, self.layout.columns, node.attrs)

    def _stands_at_rows(self, i: int) -> bool:
        """Whether a node has one value a row; not where it has one an element that is the same along the row."""
        member = self._grouping.members[i]
        return member is not None and member.level == Level.ROW

    def _store(self, i: int) -> Strides:
        """Make the scalar of a node a result; return its steps along the row axes."""
        member, scalar = self._member(i), self._scalars[i]
        if scalar.level != member.level:
            raise _Unwritten  # it would be one number, written everywhere
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
    """Put the kernels in place of their groups, each as late as its results allow."""
    unit = list(range(len(graph.nodes)))  # the number of a kernel is that of its last node
    by_unit = {kernel.group[-1]: kernel for kernel in kernels}
    for kernel in kernels:
        for i in kernel.group:
            unit[i] = kernel.group[-1]
    nodes: list[Node] = []
    moved: dict[int, int] = {}
    for number in _in_order(graph, unit):
        if number in by_unit:
            _place(graph, by_unit[number], nodes, moved)
        else:
            _append(graph, number, nodes, moved)
    return graph.rewritten(nodes, (moved[i] for i in graph.outputs))


def _in_order(graph: Graph, unit: Sequence[int]) -> Iterator[int]:
    """Yield units in an order in which operands come first, and else in that of their numbers."""
    needs: dict[int, set[int]] = {number: set() for number in unit}
    readers: dict[int, list[int]] = {number: [] for number in unit}
    for i, node in enumerate(graph.nodes):
        for operand in node.operands:
            if unit[operand] != unit[i] and unit[operand] not in needs[unit[i]]:
                needs[unit[i]].add(unit[operand])
                readers[unit[operand]].append(unit[i])
    ready = [number for number, needed in needs.items() if not needed]
    heapq.heapify(ready)
    while ready:
        number = heapq.heappop(ready)
        yield number
        for reader in readers[number]:
            needs[reader].discard(number)
            if not needs[reader]:
                heapq.heappush(ready, reader)


def _append(graph: Graph, number: int, nodes: list[Node], moved: dict[int, int]) -> None:
    """Append a node, behind those that it reads and no kernel has written."""
    waiting = [number]
    while waiting:
        missing = [operand for operand in graph.nodes[waiting[-1]].operands if operand not in moved]
        if missing:
            waiting += missing
        elif (i := waiting.pop()) not in moved:
            nodes.append(_moved(graph.nodes[i], moved))
            moved[i] = len(nodes) - 1


def _place(graph: Graph, kernel: WrittenKernel, nodes: list[Node], moved: dict[int, int]) -> None:
    """Append a kernel and its results; of a mean, the sum and then its quotient."""
    ops, fused = graph.registry.ops, len(nodes)
    if kernel.node is None:
        return
    nodes.append(_moved(kernel.node, moved))
    for k, i in enumerate(kernel.results):
        node = graph.nodes[i]
        nodes.append(Node(ops["get_output"], (fused,), {"index": k}, node.types, node.origin))
        divisor = _divisor(node, graph.nodes[node.operands[0]].type.shape) if kernel.adds_up(k) else 1.0
        if divisor != 1:
            nodes.append(Node(ops["div_scalar"], (len(nodes) - 1,), {"scalar": divisor}, node.types, node.origin))
        moved[i] = len(nodes) - 1


def _divisor(node: Node, shape: Shape) -> float:
    """Return the divisor of the sum that stands in the place of a node."""
    assert isinstance(node.op, Rowwise)
    divisor = node.op.divisor(count(shape, node.op.row_axes(node.attrs)))
    assert divisor is not None, f"{node.op.name} is no sum"
    return divisor


def _moved(node: Node, moved: Mapping[int, int]) -> Node:
    return node.on(tuple(moved[i] for i in node.operands))
