"""Rewrites of sums before fusion: reuse of sums that follow from others, and sums over several axes in two parts.

A kernel reduces its rows, which are trailing axes. A sum over the axes before and behind others, as normalisation over
batches has many, is none of these: it would read a whole tensor that a kernel wrote for nothing else. In two, it reads
one value a row. Means are divided at the rows, and of maxima and minima both parts are maxima and minima. A mean of all
that is many rows is a sum of rows and a sum of these, too: nothing is left to be divided behind the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.compiler.fusion_groups import LONGEST_WHOLE, Domain, Grouping
from engine.ir.graph import Builder, Graph, Node, Value, shaped
from engine.ir.run_context import NO_LIMITS
from engine.ir.tensor_type import Shape, TensorType, has_loops
from engine.ops.common.numerics import count
from engine.ops.elementwise.arithmetic import Add, Div, DivScalar, Mul, MulScalar, Neg, Sub
from engine.ops.reduce.extremes import Max, Min
from engine.ops.reduce.sums import Mean, Rowwise, Sum

#: nodes that are gone back through from a sum to others, on all ways
_MOST_BACK: Final = 64
#: reductions whose parts are reduced by the same op, in any order
_EXTREMES: Final = (Max, Min)

# Reuse of sums. The backward pass of normalisation adds up a multiple of what the gradient of the bias adds up, and a
# multiple of what has its mean subtracted: that is 0, or NaN where something is not finite. So it needs no pass over
# the tensor of its own.


class _Known(NamedTuple):
    """A sum that is known: what writes it, and whether nothing is left in it but what is not finite."""

    written: Callable[[], Value]
    is_nothing: bool = False

    def then(self, step: Callable[[Value], Value]) -> _Known:
        """Apply a multiplication to it."""
        return self._replace(written=lambda: step(self.written()))


def reuse_sums(graph: Graph) -> Graph:
    """Write sums and means of floats that follow from earlier ones; return `graph` itself if none does.

    They have other last bits, and are infinite where a sum that they are a multiple of is: a factor multiplies the sum,
    not what it adds up.
    """
    if sum(isinstance(node.op, Sum | Mean) for node in graph.nodes) < 2:
        return graph
    writer = _Writer(graph)
    written = Builder(graph.registry, NO_LIMITS).rewrite(graph, writer.instead)
    return written if writer.reuses else graph


class _Writer:
    """Writer of sums, which knows those that it has written."""

    def __init__(self, graph: Graph) -> None:
        self.reuses = False
        self._nodes = graph.nodes
        #: nodes that may still be gone back through
        self._left = 0
        #: nodes of the graph as they were, and what they have become, as far as others have read them
        self._values: dict[int, Value] = {}
        #: by what is added up over which axes, the sum, as it was written
        self._sums: dict[tuple[int, Shape], Value] = {}

    def instead(self, node: Node, operands: Sequence[Value]) -> Value | None:
        """The value that takes the place of a node; None for all but sums."""
        self._values.update(zip(node.operands, operands, strict=True))
        if not isinstance(node.op, Sum | Mean) or not has_loops(node.type.dtype):
            return None
        (of,), axes = node.operands, tuple(node.attrs["axes"])
        extent = count(operands[0].shape, axes)
        if not axes or not extent or operands[0].dtype != node.type.dtype:
            return None
        self._left = _MOST_BACK
        known = None if (of, axes) in self._sums else self._known(of, axes)
        if known is None or known.is_nothing:
            made = operands[0].builder.copy(node, operands)
        else:
            self.reuses, total = True, known.written()
            made = shaped(total / float(extent) if isinstance(node.op, Mean) else total, node.type.shape)
        if isinstance(node.op, Sum):
            self._sums[of, axes] = made
        return made

    def _known(self, i: int, axes: Shape) -> _Known | None:
        """The sum of a node over some axes, which are kept; None where it is not known, or too far away."""
        node, written = self._nodes[i], self._sums.get((i, axes))
        if written is not None:
            return _Known(lambda: shaped(written, self._kept(i, axes)))
        self._left -= 1
        if self._left < 0 or any(self._nodes[k].type.dtype != node.type.dtype for k in node.operands):
            return None
        if isinstance(node.op, Neg | MulScalar | DivScalar):
            known = self._known(node.operands[0], axes)
            return known and known.then(lambda x: _emitted(node, x))
        if isinstance(node.op, Add | Sub):
            return self._of_two(node, axes)
        return self._of_product(node, axes) if isinstance(node.op, Mul | Div) else None

    def _of_two(self, node: Node, axes: Shape) -> _Known | None:
        """The sum over a sum or a difference of which one side adds up to nothing: of two, digits might cancel."""
        left, right = node.operands
        mean = self._nodes[right]
        is_mean = isinstance(mean.op, Mean) and mean.operands == (left,) and mean.type.shape == self._kept(left, axes)
        if isinstance(node.op, Sub) and is_mean:
            subtracted = self._values[right]
            return _Known(lambda: subtracted * 0.0, is_nothing=True)  # NaN where something is not finite
        if any(self._nodes[i].type.shape != node.type.shape for i in node.operands):
            return None
        first = self._known(left, axes)
        second = first and self._known(right, axes)
        if first is None or second is None or not (first.is_nothing or second.is_nothing):
            return None
        both = first.is_nothing and second.is_nothing
        return _Known(lambda: _emitted(node, first.written(), second.written()), both)

    def _of_product(self, node: Node, axes: Shape) -> _Known | None:
        """The sum over a product with a factor that is the same along the axes."""
        ways = [node.operands] if isinstance(node.op, Div) else [node.operands, node.operands[::-1]]
        for of, by in ways:
            factor = self._values.get(by)
            if factor is None or self._nodes[of].type.shape != node.type.shape or not self._is_same(by, of, axes):
                continue
            known = self._known(of, axes)
            if known is not None:
                return known.then(lambda x, factor=factor: _emitted(node, x, factor))  # type: ignore[misc]
        return None

    def _is_same(self, by: int, of: int, axes: Shape) -> bool:
        """Whether a factor of a node has one number for all that is added up over these axes."""
        factor, rank = self._nodes[by].type, self._nodes[of].type.ndim
        lead = rank - factor.ndim
        return all(axis < lead or factor.shape[axis - lead] == 1 for axis in axes)

    def _kept(self, i: int, axes: Shape) -> Shape:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(self._nodes[i].type.shape))


def _emitted(node: Node, *operands: Value) -> Value:
    return operands[0].builder.emit(node.op, operands, node.attrs)


class _Axes(NamedTuple):
    """Axes of a reduction: those that come last, and the others; of all axes, the second part has those of 1, too."""

    trailing: tuple[int, ...]
    rest: tuple[int, ...]


def split_sums(graph: Graph) -> Graph:
    """Split sums whose first part joins a kernel that there is anyway; return `graph` itself if there are none.

    This changes the order of additions, and a mean is rounded once more for each row. `reuse_sums` runs before.
    """
    graph = reuse_sums(graph)
    wanted = {i: axes for i, node in enumerate(graph.nodes) if (axes := _axes(graph, node)) is not None}
    wanted |= _of_all(graph)
    if not wanted:
        return graph
    joining = {*_joining(_written(graph, wanted))}
    chosen = {i: axes for k, (i, axes) in enumerate(wanted.items()) if k in joining}
    return _written(graph, chosen).graph if chosen else graph


def _of_all(graph: Graph) -> dict[int, _Axes]:
    """Find means of all elements of what is too large for one row, and their axes, by the rows that its kernel has."""
    means: dict[int, TensorType] = {}
    for i, node in enumerate(graph.nodes):
        if _divisor(node, 2) in (None, 1):
            continue
        x = graph.nodes[node.operands[0]].type
        is_whole = len(node.attrs["axes"]) == x.ndim > 1 and x.size > LONGEST_WHOLE
        if is_whole and x.dtype == node.type.dtype and has_loops(x.dtype):
            means[i] = x
    rows = Grouping(graph, 0).row_axes if means else {}
    split: dict[int, _Axes] = {}
    for i, x in means.items():
        axes = graph.nodes[i].attrs["axes"]
        split[i] = _Axes(axes[-rows.get(Domain(x.shape, x.dtype), 1) :], axes)
    return split


class _Written(NamedTuple):
    """A graph, and the nodes in it that are the first parts of sums, in the order of these."""

    graph: Graph
    first: Sequence[int]


def _axes(graph: Graph, node: Node) -> _Axes | None:
    """The axes of a reduction that may be split; None of anything else."""
    if not (isinstance(node.op, _EXTREMES) or _divisor(node, 1) is not None):
        return None
    x, axes = graph.nodes[node.operands[0]].type, node.attrs["axes"]
    if x.dtype != node.type.dtype or not has_loops(x.dtype) or not x.size or len(axes) in (0, x.ndim):
        return None
    trailing = tuple(a for k, a in enumerate(axes) if a == x.ndim - len(axes) + k)
    rest = tuple(a for a in axes if a not in trailing)
    return _Axes(trailing, rest) if rest and count(x.shape, trailing) > 1 else None


def _written(graph: Graph, wanted: Mapping[int, _Axes]) -> _Written:
    """Write these sums in two parts."""
    first: list[int] = []
    numbers = iter(range(len(graph.nodes)))

    def written(_: Node, operands: Sequence[Value]) -> Value | None:
        i = next(numbers)
        if i not in wanted:
            return None
        node = graph.nodes[i]
        part = _reduced(node, operands[0], wanted[i].trailing)
        first.append(part.index)
        # A mean is divided at the rows, so that nothing is left to be divided after the kernel.
        divisor = _divisor(node, count(operands[0].shape, node.attrs["axes"]))
        rows = part if divisor is None or divisor == 1 else part / divisor
        return shaped(_reduced(node, rows, wanted[i].rest), node.type.shape)

    return _Written(Builder(graph.registry, NO_LIMITS).rewrite(graph, written), first)


def _reduced(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    """Reduce to the extreme or the sum over some axes, which are kept."""
    if isinstance(node.op, _EXTREMES):
        return x.builder.emit(node.op, (x,), {**node.attrs, "axes": axes, "keepdims": True})
    return x.sum(axes=axes, keepdims=True)


def _divisor(node: Node, extent: int) -> float | None:
    """Divisor of a sum over `extent` elements; None for anything but sums and means."""
    return node.op.divisor(extent) if isinstance(node.op, Rowwise) else None


def _joining(written: _Written) -> Iterator[int]:
    """Positions of the first parts that reduce rows of a kernel that computes what they add up."""
    grouping = Grouping(written.graph, 0)
    for k, i in enumerate(written.first):
        (operand,) = written.graph.nodes[i].operands
        if grouping.share_kernel(operand, i):
            yield k
