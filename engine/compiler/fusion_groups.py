"""Groups of nodes that fuse: elementwise nodes and reductions over one space, without a cycle between groups.

A node belongs to a `Domain`, the shape and dtype that it is computed over; as an element of it, or as one value a row.
Its stage is how often the longest path to it has left a group. Nodes of one domain and stage can be one kernel whatever
lies between them: each path out of the group and back would have raised the stage.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Hashable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from engine.codegen.kernels.program import Level
from engine.ir.graph import Graph, Node
from engine.ir.op import View
from engine.ir.tensor_type import BOOL, FLOAT64, DType, Shape, TensorType, has_loops, real_dtype
from engine.ops.elementwise.base import Elementwise
from engine.ops.reduce.sums import Rowwise

#: the longest row that is reduced as a whole: several of them fit in a core's own cache
LONGEST_ROW: Final = 1 << 16
#: up to here a whole tensor is one row, so that what is computed from its sum can stay in the kernel
LONGEST_WHOLE: Final = 1 << 14
#: elements of kernels that are joined for their launches
MOST_OF_SMALL: Final = 1 << 13
#: words of the table of kernels that are joined, for the addresses and strides of what they read and write: a card
#: takes 512, and some are for other things
MOST_WORDS: Final = 400
#: beyond, nothing is run; a plan may be asked for all the same
MOST_ELEMENTS: Final = 1 << 32

Ending = Literal["columns", "total"]


class Domain(NamedTuple):
    """An iteration space: a shape, and the dtype of the floats in it, those of complex numbers included."""

    shape: Shape
    dtype: DType


class Member(NamedTuple):
    """Membership of a node in a domain; a sum over rows ends there: only what is outside may read it."""

    domain: Domain
    level: Level
    ending: Ending | None = None


class Group(NamedTuple):
    """Nodes that become one kernel, in ascending order, and the trailing axes that are its rows (None: any number).

    `again` are nodes of other groups that it recomputes.
    """

    domain: Domain
    nodes: tuple[int, ...]
    row_axes: int | None
    again: tuple[int, ...] = ()


class Grouping:
    """The members of a graph's kernels over at least `least` elements, and how they fall into groups.

    Nodes that stay `apart` belong to none. In the body of a loop, `in_body`, nodes of bools alone are members, and
    reductions that join kernels nowhere else. With `late`, a group is delayed to the first of its readers that it can
    be one kernel with, though what it reads then lives longer; sums over rows that would each be a kernel of its own
    become one, whatever they add up; and so do kernels over few elements.
    """

    def __init__(
        self, graph: Graph, least: int, apart: Container[int] = (), *, in_body: bool = False, late: bool = False
    ) -> None:
        self.graph = graph
        self._in_body, self._late = in_body, late
        self.least = least
        #: of a domain whose rows are reduced: how many trailing axes these have
        self.row_axes = _row_axes(graph, in_body)
        self.members: list[Member | None] = []
        self.stages: list[int] = []
        for i, node in enumerate(graph.nodes):
            member = None if node.is_leaf or node.op.several or i in apart else self._member(node)
            self.members.append(member)
            # one more than that of an operand that the kernel of this node cannot take along
            self.stages.append(max([self.stages[o] + self._leaves(member, o) for o in node.operands], default=0))
        if late:
            self._delay()

    def is_element(self, i: int) -> bool:
        """Whether a node is a value an element that other kernels may compute for themselves."""
        member = self.members[i]
        is_inner = member is not None and member.level == Level.ELEMENT and member.ending is None
        return is_inner and isinstance(self.graph.nodes[i].op, Elementwise)

    def are_one(self, operand: int, reader: int) -> bool:
        """Whether a node reads an operand within the kernel that both belong to."""
        other, member = self.members[operand], self.members[reader]
        if other is None or member is None or self.stages[operand] != self.stages[reader]:
            return False
        return self._takes(member, other, operand)

    def lacks_axes(self, operand: int, reader: int) -> bool:
        """Whether a member reads an operand as one value a row, which goes without unit axes for the columns."""
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
        together = _Together(len(self.members))
        meeting: dict[tuple[Domain, int, int], int] = {}
        for i, member in enumerate(self.members):
            if member is None:
                continue
            for operand in self.graph.nodes[i].operands:
                if self.are_one(operand, i):
                    together.join(operand, i)
                elif self.graph.nodes[operand].type.shape == member.domain.shape:
                    together.join(meeting.setdefault((member.domain, self.stages[i], operand), i), i)
        self._join_lone_sums(together)
        if joins_small:
            self._join_small(together)
        by_root: dict[int, list[int]] = {}
        for i, member in enumerate(self.members):
            if member is not None:
                by_root.setdefault(together.root(i), []).append(i)
        for nodes in by_root.values():
            first = self.members[nodes[0]]
            assert first is not None
            yield Group(first.domain, tuple(nodes), self.row_axes.get(first.domain))

    def _join_lone_sums(self, together: _Together) -> None:
        """Join sums over rows that would each be a kernel of its own, of several results of one kernel."""
        roots = [together.root(i) for i in range(len(self.members))]
        sizes, meeting = Counter(roots), dict[Hashable, int]()
        fitting = _Fitting(together, self._words(together) if self._late else Counter())
        for i, member in enumerate(self.members):
            if member is None or member.ending != "columns" or sizes[roots[i]] > 1:
                continue
            (operand,) = self.graph.nodes[i].operands
            if self._late or self.members[operand] is not None:
                of = None if self._late else roots[operand]
                fitting.join(meeting, (member.domain, self.stages[i], of), i)

    def _join_small(self, together: _Together) -> None:
        """Join kernels over few elements, as each takes no longer than its launch, unless one reads a strided view."""
        members = {i: member for i, member in enumerate(self.members) if member is not None}
        nodes = self.graph.nodes
        reads = ((i, nodes[operand].op) for i in members for operand in nodes[i].operands)
        apart = {together.root(i) for i, op in reads if isinstance(op, View) and not op.reshapes}
        fitting, meeting = _Fitting(together, self._words(together)), dict[Hashable, int]()
        for i, (domain, *_) in members.items():
            if math.prod(domain.shape) <= MOST_OF_SMALL and together.root(i) not in apart:
                fitting.join(meeting, (domain, self.stages[i]), i)

    def _words(self, together: _Together) -> Counter[int]:
        """Count the words of the table of each kernel for what it reads and writes, at most, by root."""
        arrays = {(together.root(i), i) for i in self.graph.outputs}
        for i, node in enumerate(self.graph.nodes):
            for operand in node.operands:
                if together.root(operand) != together.root(i):
                    arrays |= {(together.root(i), operand), (together.root(operand), operand)}
        words = Counter[int]()
        for root, _ in arrays:
            member = self.members[root]
            words[root] += 0 if member is None else 1 + len(member.domain.shape)
        return words

    def _leaves(self, member: Member | None, operand: int) -> bool:
        """Whether an operand has to leave its kernel, if it is in one, for a reader of this membership."""
        other = self.members[operand]
        return other is not None and (member is None or not self._takes(member, other, operand))

    def _delay(self) -> None:
        """Raise the stages of groups to that of their first readers, if they are one with some of these."""
        readers: list[list[int]] = [[] for _ in self.graph.nodes]
        for i, node in enumerate(self.graph.nodes):
            for operand in node.operands:
                readers[operand].append(i)
        groups = self._groups(joins_small=False)
        for group in sorted(groups, key=lambda group: self.stages[group.nodes[0]], reverse=True):
            ways = [*self._ways_out(group, readers)]
            latest = min([stage for stage, _ in ways], default=0)
            if latest > self.stages[group.nodes[0]] and (latest, True) in ways:
                for i in group.nodes:
                    self.stages[i] = latest

    def _ways_out(self, group: Group, readers: Sequence[Sequence[int]]) -> Iterator[tuple[int, bool]]:
        """Yield for each reader outside of a group the last stage that leaves room for it, and whether both are one."""
        inside = set(group.nodes)
        for i in group.nodes:
            for reader in readers[i]:
                if reader not in inside:
                    leaves = self._leaves(self.members[reader], i)
                    yield self.stages[reader] - leaves, not leaves

    def _takes(self, member: Member, other: Member, operand: int) -> bool:
        """Whether a reader can have an operand from within its kernel."""
        if other.ending is not None or other.domain != member.domain:
            return False
        if other.level == Level.ELEMENT or member.level == Level.ROW:
            return True
        # One value a row without its unit axes would broadcast along the columns.
        bare, _ = self._row_shapes(member.domain)
        return bare == () or self.graph.nodes[operand].type.shape != bare

    def _member(self, node: Node) -> Member | None:
        if isinstance(node.op, Elementwise):
            return self._elementwise(node)
        if isinstance(node.op, Rowwise):
            if not node.op.joins_loops and not self._in_body:
                return None
            return self._reduction(node, node.op) if node.op.reduces else self._row_op(node)
        is_reshape = isinstance(node.op, View) and node.op.reshapes
        is_alike = is_reshape and all(type.dtype == node.type.dtype for type in self._types(node))
        return self._of_a_row(node) if is_alike else None

    def _elementwise(self, node: Node) -> Member | None:
        types = self._types(node)
        numbers = {real_dtype(t.dtype) for t in (node.type, *types)} - {BOOL}
        dtypes = numbers or ({FLOAT64} if self._in_body else set())
        if len(dtypes) != 1 or not isinstance(node.op, Elementwise):
            return None
        (dtype,) = dtypes
        if not node.op.is_fusible_in(dtype, node.type, *types, **node.attrs):
            return None
        row = self._of_a_row(node)
        # A truth value a row may be of numbers of another dtype, which a kernel of these could not read.
        return row if row and numbers <= {row.domain.dtype} else self._element(Domain(node.type.shape, dtype))

    def _of_a_row(self, node: Node) -> Member | None:
        """Make a member of one value a row, as its operands are; a reshape only adds its unit axes, or removes them."""
        for operand in node.operands:
            member = self.members[operand]
            if member is not None and member.level == Level.ROW and not member.ending:
                return member if node.type.shape in self._row_shapes(member.domain) else None
        return None

    def _row_op(self, node: Node) -> Member | None:
        x = self._types(node)[0]
        domain = Domain(x.shape, node.type.dtype)
        is_last = self.row_axes.get(domain) == 1 and node.attrs["axis"] == x.ndim - 1
        return self._element(domain) if is_last and x.dtype == node.type.dtype and has_loops(x.dtype) else None

    def _reduction(self, node: Node, op: Rowwise) -> Member | None:
        x, axes = self._types(node)[0], op.row_axes(node.attrs)
        if x.dtype != node.type.dtype or not has_loops(x.dtype):
            return None
        if not x.ndim:
            return self._element(Domain((), x.dtype)) if op.is_one_of_one else None
        whole = self._total_of_rows(node, op, axes)
        if whole is not None:
            return whole
        domain = Domain(x.shape, x.dtype)
        if self._element(domain) is None:
            return None
        rows = self.row_axes.get(domain)
        if rows is not None and axes == tuple(range(x.ndim - rows, x.ndim)):
            return Member(domain, Level.ROW)
        if not _is_sum(op) or not axes or axes != tuple(range(len(axes))):
            return None
        if len(axes) == x.ndim:
            return Member(domain, Level.ROW, "total")
        return Member(domain, Level.ELEMENT, "columns") if rows == x.ndim - len(axes) else None

    def _total_of_rows(self, node: Node, op: Rowwise, axes: Sequence[int]) -> Member | None:
        """Make a member of the sum of all values that stand at one a row."""
        member, x = self.members[node.operands[0]], self._types(node)[0]
        if member is None or member.level != Level.ROW or member.ending or not _is_sum(op):
            return None
        return Member(member.domain, Level.ROW, "total") if len(axes) == x.ndim and x.ndim else None

    def _element(self, domain: Domain) -> Member | None:
        size = math.prod(domain.shape)
        return Member(domain, Level.ELEMENT) if size and self.least <= size <= MOST_ELEMENTS else None

    def _row_shapes(self, domain: Domain) -> tuple[Shape, Shape]:
        rows = self.row_axes[domain]
        kept = domain.shape[: len(domain.shape) - rows]
        return kept, kept + (1,) * rows

    def _types(self, node: Node) -> list[TensorType]:
        return [self.graph.nodes[i].type for i in node.operands]


def _is_sum(op: Rowwise) -> bool:
    return op.divisor(1) is not None


def _row_axes(graph: Graph, in_body: bool) -> dict[Domain, int]:
    """Count the trailing axes of each domain with reductions along trailing axes, or sums over leading ones.

    The most frequent count wins; a small tensor that is only added up has all.
    """
    wanted: dict[Domain, Counter[int]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Rowwise) and (node.op.joins_loops or in_body):
            x = graph.nodes[node.operands[0]].type
            rows = _trailing(node.op, node.op.row_axes(node.attrs), x)
            if rows and math.prod(x.shape[x.ndim - rows :]) <= LONGEST_ROW:
                wanted.setdefault(Domain(x.shape, x.dtype), Counter())[rows] += 1
    return {domain: max(counts, key=lambda rows: (counts[rows], -rows)) for domain, counts in wanted.items()}


def _trailing(op: Rowwise, axes: Sequence[int], x: TensorType) -> int:
    """Count the trailing axes that an op reduces over, or leaves alone when it adds up leading ones; 0: neither."""
    if len(axes) == x.ndim:
        return x.ndim if x.size <= LONGEST_WHOLE else 0
    if axes and axes == tuple(range(x.ndim - len(axes), x.ndim)):
        return len(axes)
    is_leading = bool(axes) and axes == tuple(range(len(axes))) and _is_sum(op)
    return x.ndim - len(axes) if is_leading else 0


class _Together:
    """Disjoint sets, by their smallest member."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def root(self, i: int) -> int:
        """Return the member that stands for the set of `i`."""
        while self._parent[i] != i:
            self._parent[i] = self._parent[self._parent[i]]
            i = self._parent[i]
        return i

    def join(self, i: int, j: int) -> None:
        """Merge the sets of `i` and `j`."""
        a, b = sorted((self.root(i), self.root(j)))
        self._parent[b] = a


class _Fitting:
    """Joining of sets to save launches, as far as a kernel's table has the words for both."""

    def __init__(self, together: _Together, words: Counter[int]) -> None:
        """`words` of each set, by its root."""
        self._together, self._words = together, words

    def join(self, meeting: dict[Hashable, int], key: Hashable, i: int) -> None:
        """Merge the set of `i` with the last of this key; or make it the last one, if that is full."""
        first, second = self._together.root(meeting.setdefault(key, i)), self._together.root(i)
        both = self._words[first] + self._words[second]
        if both > MOST_WORDS:
            meeting[key] = i
        elif first != second:
            self._together.join(first, second)
            self._words[min(first, second)] = both
