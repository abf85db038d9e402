"""Grouping for fusion: find elementwise nodes and reductions over one space that can run as one kernel.

A node belongs to a `Domain`, the shape and dtype of the space that it is computed over. In it, the node has one value
per element or one value per row.

Two nodes of a domain cannot always share a kernel. If a path from one to the other leaves the domain, the kernel would
need a result that depends on the kernel itself. So each node has a stage: the number of times that the longest path to
it has left a group.

    a = sin(x)               stage 0
    b = gather(a, i)         stage 1: has no kernel, so the path leaves that of a
    c = a * b                stage 1: cannot join a, since b lies between them

Nodes of the same domain and stage can share a kernel regardless of the nodes between them, because any path out of the
group and back would have raised the stage.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Hashable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from engine.codegen.kernels.program import Level
from engine.ir.graph import Graph, Node
from engine.ir.op import View
from engine.ir.tensor_type import BOOL, FLOAT64, DType, Shape, TensorType, has_kernels, real_dtype
from engine.ops.elementwise.base import Elementwise
from engine.ops.reduce.sums import Rowwise

#: columns of the longest row that is reduced at once; several such rows fit in a core's own cache
LONGEST_ROW: Final = 1 << 16
#: elements up to which a whole tensor is one row, so that nodes that read its sum can stay in the kernel
LONGEST_WHOLE: Final = 1 << 14
#: elements up to which kernels are joined to save launches
MOST_OF_SMALL: Final = 1 << 13
#: maximum words for addresses and strides of operands and results in the table of joined kernels; a GPU takes 512
#: words, some of which have other uses
MOST_WORDS: Final = 400
#: elements of the largest domain; larger tensors are never run, but may be planned
MOST_ELEMENTS: Final = 1 << 32

Ending = Literal["columns", "total"]


class Domain(NamedTuple):
    """An iteration space: a shape, and the dtype of its floats, which complex numbers are pairs of."""

    shape: Shape
    dtype: DType


class Member(NamedTuple):
    """Membership of a node in a domain. A node with an `ending`, a sum over rows, is only read outside the kernel."""

    domain: Domain
    level: Level
    ending: Ending | None = None


class Group(NamedTuple):
    """Nodes of one kernel in ascending order, and the number of trailing axes that make a row (None: any number).

    `recomputed` are nodes of other groups that the kernel computes for itself.
    """

    domain: Domain
    nodes: tuple[int, ...]
    row_axes: int | None
    recomputed: tuple[int, ...] = ()


class Grouping:
    """The members of a graph's kernels over at least `min_elements` elements, and their groups.

    `excluded` nodes are not members. With `in_body`, for the body of a loop, members include nodes of bools alone, and
    reductions that otherwise do not fuse. With `late`, a group is delayed to the first of its readers that it can share
    a kernel with, even if its operands then live longer; sums over rows that would each be a kernel become one kernel,
    whatever they add up, and so do kernels over few elements.
    """

    def __init__(
        self,
        graph: Graph,
        min_elements: int,
        excluded: Container[int] = (),
        *,
        in_body: bool = False,
        late: bool = False,
    ) -> None:
        self.graph = graph
        self._in_body, self._late = in_body, late
        self.min_elements = min_elements
        #: numbers of trailing axes that make a row, for domains whose rows are reduced
        self.row_axes = _row_axes(graph, in_body)
        self.members: list[Member | None] = []
        self.stages: list[int] = []
        for i, node in enumerate(graph.nodes):
            member = None if node.is_leaf or node.op.several or i in excluded else self._member(node)
            self.members.append(member)
            # An operand in a kernel that this node cannot join is one stage earlier.
            self.stages.append(max([self.stages[o] + self._is_cut(member, o) for o in node.operands], default=0))
        if late:
            self._delay()

    def is_element(self, i: int) -> bool:
        """Whether a node has a value per element that other kernels may recompute."""
        member = self.members[i]
        is_inner = member is not None and member.level == Level.ELEMENT and member.ending is None
        return is_inner and isinstance(self.graph.nodes[i].op, Elementwise)

    def share_kernel(self, operand: int, reader: int) -> bool:
        """Whether a node reads an operand inside the kernel that both belong to."""
        operand_member, member = self.members[operand], self.members[reader]
        if operand_member is None or member is None or self.stages[operand] != self.stages[reader]:
            return False
        return self._accepts(member, operand_member, operand)

    def lacks_axes(self, operand: int, reader: int) -> bool:
        """Whether a member reads an operand as a value per row, whose shape lacks unit axes for the columns."""
        member, node = self.members[reader], self.graph.nodes[reader]
        assert member is not None
        rank = len(member.domain.shape)
        if isinstance(node.op, Elementwise):
            return member.level == Level.ROW and node.type.ndim < rank
        return self.graph.nodes[operand].type.ndim < rank

    def groups(self) -> Iterator[Group]:
        """Yield groups of nodes that share a domain and a stage, and are connected or small."""
        return self._groups(joins_small=self._late)

    def _groups(self, *, joins_small: bool) -> Iterator[Group]:
        sets = _DisjointSets(len(self.members))
        representatives: dict[tuple[Domain, int, int], int] = {}
        for i, member in enumerate(self.members):
            if member is None:
                continue
            for operand in self.graph.nodes[i].operands:
                if self.share_kernel(operand, i):
                    sets.join(operand, i)
                # Kernels that read the same large operand are joined as well, so that it is read once.
                elif self.graph.nodes[operand].type.shape == member.domain.shape:
                    sets.join(representatives.setdefault((member.domain, self.stages[i], operand), i), i)
        self._join_lone_sums(sets)
        if joins_small:
            self._join_small(sets)
        by_root: dict[int, list[int]] = {}
        for i, member in enumerate(self.members):
            if member is not None:
                by_root.setdefault(sets.root(i), []).append(i)
        for nodes in by_root.values():
            first = self.members[nodes[0]]
            assert first is not None
            yield Group(first.domain, tuple(nodes), self.row_axes.get(first.domain))

    def _join_lone_sums(self, sets: _DisjointSets) -> None:
        """Join sums over rows that would each be a kernel of its own, if they read results of one kernel."""
        roots = [sets.root(i) for i in range(len(self.members))]
        sizes, representatives = Counter(roots), dict[Hashable, int]()
        fitting = _LaunchSaver(sets, self._words(sets) if self._late else Counter())
        for i, member in enumerate(self.members):
            if member is None or member.ending != "columns" or sizes[roots[i]] > 1:
                continue
            (operand,) = self.graph.nodes[i].operands
            if self._late or self.members[operand] is not None:
                source = None if self._late else roots[operand]
                fitting.join(representatives, (member.domain, self.stages[i], source), i)

    def _join_small(self, sets: _DisjointSets) -> None:
        """Join kernels over few elements, which take no longer than a launch, unless one reads a strided view."""
        members = {i: member for i, member in enumerate(self.members) if member is not None}
        nodes = self.graph.nodes
        reads = ((i, nodes[operand].op) for i in members for operand in nodes[i].operands)
        excluded = {sets.root(i) for i, op in reads if isinstance(op, View) and not op.reshapes}
        fitting, representatives = _LaunchSaver(sets, self._words(sets)), dict[Hashable, int]()
        for i, (domain, *_) in members.items():
            if math.prod(domain.shape) <= MOST_OF_SMALL and sets.root(i) not in excluded:
                fitting.join(representatives, (domain, self.stages[i]), i)

    def _words(self, sets: _DisjointSets) -> Counter[int]:
        """Count an upper bound of table words for the operands and results of each kernel, by root."""
        arrays = {(sets.root(i), i) for i in self.graph.outputs}
        for i, node in enumerate(self.graph.nodes):
            for operand in node.operands:
                if sets.root(operand) != sets.root(i):
                    arrays |= {(sets.root(i), operand), (sets.root(operand), operand)}
        words = Counter[int]()
        for root, _ in arrays:
            member = self.members[root]
            # One word for the address, and one stride per axis.
            words[root] += 0 if member is None else 1 + len(member.domain.shape)
        return words

    def _is_cut(self, member: Member | None, operand: int) -> bool:
        """Whether a reader of this membership cannot join the kernel of an operand, if the operand is in one."""
        operand_member = self.members[operand]
        return operand_member is not None and (member is None or not self._accepts(member, operand_member, operand))

    def _delay(self) -> None:
        """Raise the stage of each group to that of its first readers, if it can share a kernel with one of them."""
        readers: list[list[int]] = [[] for _ in self.graph.nodes]
        for i, node in enumerate(self.graph.nodes):
            for operand in node.operands:
                readers[operand].append(i)
        groups = self._groups(joins_small=False)
        # From the last stage to the first, so that readers have their final stages.
        for group in sorted(groups, key=lambda group: self.stages[group.nodes[0]], reverse=True):
            stages = [*self._latest_stages(group, readers)]
            latest = min([stage for stage, _ in stages], default=0)
            # Delaying pays off only if the group then shares a kernel with a reader.
            if latest > self.stages[group.nodes[0]] and (latest, True) in stages:
                for i in group.nodes:
                    self.stages[i] = latest

    def _latest_stages(self, group: Group, readers: Sequence[Sequence[int]]) -> Iterator[tuple[int, bool]]:
        """Yield for each outside reader the latest stage that it allows, and whether it could join the group."""
        members = set(group.nodes)
        for i in group.nodes:
            for reader in readers[i]:
                if reader not in members:
                    is_cut = self._is_cut(self.members[reader], i)
                    yield self.stages[reader] - is_cut, not is_cut

    def _accepts(self, member: Member, operand_member: Member, operand: int) -> bool:
        """Whether a reader can use an operand inside its own kernel."""
        if operand_member.ending is not None or operand_member.domain != member.domain:
            return False
        if operand_member.level == Level.ELEMENT or member.level == Level.ROW:
            return True
        # A row value without its unit axes would broadcast along the columns.
        bare, _ = self._row_shapes(member.domain)
        return bare == () or self.graph.nodes[operand].type.shape != bare

    def _member(self, node: Node) -> Member | None:
        if isinstance(node.op, Elementwise):
            return self._elementwise(node)
        if isinstance(node.op, Rowwise):
            if not node.op.joins_kernels and not self._in_body:
                return None
            return self._reduction(node, node.op) if node.op.reduces else self._row_op(node)
        is_reshape = isinstance(node.op, View) and node.op.reshapes
        is_alike = is_reshape and all(type.dtype == node.type.dtype for type in self._types(node))
        return self._of_a_row(node) if is_alike else None

    def _elementwise(self, node: Node) -> Member | None:
        types = self._types(node)
        number_dtypes = {real_dtype(t.dtype) for t in (node.type, *types)} - {BOOL}
        # A kernel computes in one float dtype. Nodes of bools alone could use any one, but they only fuse in bodies,
        # where every step in Python counts.
        dtypes = number_dtypes or ({FLOAT64} if self._in_body else set())
        if len(dtypes) != 1 or not isinstance(node.op, Elementwise):
            return None
        (dtype,) = dtypes
        if not node.op.is_fusible_in(dtype, node.type, *types, **node.attrs):
            return None
        row = self._of_a_row(node)
        # A bool per row may come from numbers of another dtype, which this kernel cannot read.
        return row if row and number_dtypes <= {row.domain.dtype} else self._element(Domain(node.type.shape, dtype))

    def _of_a_row(self, node: Node) -> Member | None:
        """Return a row member if an operand is one; a reshape may only add or remove its unit axes."""
        for operand in node.operands:
            member = self.members[operand]
            if member is not None and member.level == Level.ROW and not member.ending:
                return member if node.type.shape in self._row_shapes(member.domain) else None
        return None

    def _row_op(self, node: Node) -> Member | None:
        x = self._types(node)[0]
        domain = Domain(x.shape, node.type.dtype)
        is_last = self.row_axes.get(domain) == 1 and node.attrs["axis"] == x.ndim - 1
        return self._element(domain) if is_last and x.dtype == node.type.dtype and has_kernels(x.dtype) else None

    def _reduction(self, node: Node, op: Rowwise) -> Member | None:
        x, axes = self._types(node)[0], op.row_axes(node.attrs)
        if x.dtype != node.type.dtype or not has_kernels(x.dtype):
            return None
        if not x.ndim:
            return self._element(Domain((), x.dtype)) if op.keeps_single_elements else None
        total = self._total_of_rows(node, op, axes)
        if total is not None:
            return total
        domain = Domain(x.shape, x.dtype)
        if self._element(domain) is None:
            return None
        rows = self.row_axes.get(domain)
        if rows is not None and axes == tuple(range(x.ndim - rows, x.ndim)):
            return Member(domain, Level.ROW)
        # Beside trailing axes, kernels can sum over leading axes, from row to row, but not over axes in between.
        if not _is_sum(op) or not axes or axes != tuple(range(len(axes))):
            return None
        if len(axes) == x.ndim:
            return Member(domain, Level.ROW, "total")
        return Member(domain, Level.ELEMENT, "columns") if rows == x.ndim - len(axes) else None

    def _total_of_rows(self, node: Node, op: Rowwise, axes: Sequence[int]) -> Member | None:
        """Return the member for a sum of all row values, if the node is one."""
        member, x = self.members[node.operands[0]], self._types(node)[0]
        if member is None or member.level != Level.ROW or member.ending or not _is_sum(op):
            return None
        return Member(member.domain, Level.ROW, "total") if len(axes) == x.ndim and x.ndim else None

    def _element(self, domain: Domain) -> Member | None:
        size = math.prod(domain.shape)
        return Member(domain, Level.ELEMENT) if size and self.min_elements <= size <= MOST_ELEMENTS else None

    def _row_shapes(self, domain: Domain) -> tuple[Shape, Shape]:
        rows = self.row_axes[domain]
        outer = domain.shape[: len(domain.shape) - rows]
        return outer, outer + (1,) * rows

    def _types(self, node: Node) -> list[TensorType]:
        return [self.graph.nodes[i].type for i in node.operands]


def _is_sum(op: Rowwise) -> bool:
    return op.divisor(1) is not None


def _row_axes(graph: Graph, in_body: bool) -> dict[Domain, int]:
    """Choose the number of trailing axes that make a row, for each domain with reductions of rows or sums over them.

    The most frequent number wins. If a small tensor is only summed as a whole, its row has all axes.
    """
    counts_of_domain: dict[Domain, Counter[int]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Rowwise) and (node.op.joins_kernels or in_body):
            x = graph.nodes[node.operands[0]].type
            rows = _trailing(node.op, node.op.row_axes(node.attrs), x)
            if rows and math.prod(x.shape[x.ndim - rows :]) <= LONGEST_ROW:
                counts_of_domain.setdefault(Domain(x.shape, x.dtype), Counter())[rows] += 1
    # All kernels of a domain share one row length, so that reductions and elementwise nodes fuse. Ties: shorter rows.
    return {domain: max(counts, key=lambda rows: (counts[rows], -rows)) for domain, counts in counts_of_domain.items()}


def _trailing(op: Rowwise, axes: Sequence[int], x: TensorType) -> int:
    """Count the trailing axes of a row: those reduced, or those left by a sum over leading axes; else 0."""
    if len(axes) == x.ndim:
        return x.ndim if x.size <= LONGEST_WHOLE else 0
    if axes and axes == tuple(range(x.ndim - len(axes), x.ndim)):
        return len(axes)
    is_leading = bool(axes) and axes == tuple(range(len(axes))) and _is_sum(op)
    return x.ndim - len(axes) if is_leading else 0


class _DisjointSets:
    """Disjoint sets, each represented by its smallest member."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def root(self, i: int) -> int:
        """Return the representative of the set of `i`."""
        while self._parent[i] != i:
            self._parent[i] = self._parent[self._parent[i]]  # halve the path
            i = self._parent[i]
        return i

    def join(self, i: int, j: int) -> None:
        """Merge the sets of `i` and `j`."""
        a, b = sorted((self.root(i), self.root(j)))
        self._parent[b] = a


class _LaunchSaver:
    """Merger of sets that saves launches, within the words that a kernel's table has."""

    def __init__(self, sets: _DisjointSets, words: Counter[int]) -> None:
        """Take the disjoint sets and the `words` of each, by its root."""
        self._sets, self._words = sets, words

    def join(self, representatives: dict[Hashable, int], key: Hashable, i: int) -> None:
        """Merge the set of `i` with the last set of this key; if both do not fit, make it the last one instead."""
        first, second = self._sets.root(representatives.setdefault(key, i)), self._sets.root(i)
        total_words = self._words[first] + self._words[second]
        if total_words > MOST_WORDS:
            representatives[key] = i
        elif first != second:
            self._sets.join(first, second)
            self._words[min(first, second)] = total_words
