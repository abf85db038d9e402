"""Rewrites of sums before fusion: reuse of sums that follow from others, and sums over several axes in two parts.

A kernel reduces its rows, which are trailing axes. A sum over the axes before and behind others, as normalisation over
batches has many, is none of these: it would read a whole tensor that a kernel wrote for nothing else. In two, it reads
one value a row. Means are divided at the rows, and of maxima and minima both parts are maxima and minima. A mean of all
that is many rows is a sum of rows and a sum of these, too: nothing is left to be divided behind the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.graph.dtypes import has_loops
from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_LIMITS
from engine.oplib.accumulate import count
from engine.oplib.permutation import shaped
from engine.oplib.rowwise import Rowwise
from engine.ops.max_min import Max, Min
from engine.planning.groups import LONGEST_WHOLE, Domain, Grouping
from engine.planning.known_sums import with_known_sums

#: of these, a part of the whole is one of them, too, and the order is no matter
_EXTREMES: Final = (Max, Min)


class _Axes(NamedTuple):
    """Axes of a reduction: those that come last, and the others; of all axes, the second part has those of 1, too."""

    trailing: tuple[int, ...]
    rest: tuple[int, ...]


def split_sums(graph: Graph) -> Graph:
    """`graph` with such sums in two where the first joins a kernel that there is anyway; itself, where none does.

    The order of additions is another one, and a mean is rounded once more for each row. Sums that follow from others
    are written so before.
    """
    graph = with_known_sums(graph)
    wanted = {i: axes for i, node in enumerate(graph.nodes) if (axes := _axes(graph, node)) is not None}
    wanted |= _of_all(graph)
    if not wanted:
        return graph
    joining = {*_joining(_written(graph, wanted))}
    chosen = {i: axes for k, (i, axes) in enumerate(wanted.items()) if k in joining}
    return _written(graph, chosen).graph if chosen else graph


def _of_all(graph: Graph) -> dict[int, _Axes]:
    """Means of all elements of what is too large for one row, and their axes, by the rows that its kernel has."""
    found: dict[int, _Axes] = {}
    for i, node in enumerate(graph.nodes):
        if _divisor(node, 2) in (None, 1):
            continue
        x, axes = graph.nodes[node.operands[0]].type, node.attrs["axes"]
        if len(axes) == x.ndim > 1 and x.size > LONGEST_WHOLE and x.dtype == node.type.dtype and has_loops(x.dtype):
            found[i] = _Axes(axes[-1:], axes)
    if found:
        rows = Grouping(graph, 0).row_axes
        for i, (_, axes) in found.items():
            x = graph.nodes[graph.nodes[i].operands[0]].type
            found[i] = _Axes(axes[-rows.get(Domain(x.shape, x.dtype), 1) :], axes)
    return found


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
    """`graph` with these in two."""
    first: list[int] = []
    numbers = iter(range(len(graph.nodes)))

    def written(_: Node, operands: Sequence[Value]) -> Value | None:
        i = next(numbers)
        if i not in wanted:
            return None
        node = graph.nodes[i]
        part = _reduced(node, operands[0], wanted[i].trailing)
        first.append(part.index)
        return shaped(_reduced(node, _at_rows(node, operands[0], part), wanted[i].rest), node.type.shape)

    return _Written(Builder(graph.registry, NO_LIMITS).rewrite(graph, written), first)


def _reduced(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    """The extreme or the sum over some axes, which are kept."""
    if isinstance(node.op, _EXTREMES):
        return x.builder.emit(node.op, (x,), {**node.attrs, "axes": axes, "keepdims": True})
    return x.sum(axes=axes, keepdims=True)


def _at_rows(node: Node, x: Value, part: Value) -> Value:
    """One value a row: of a mean, the part of it, so that nothing is left to be divided after the kernel."""
    divisor = _divisor(node, count(x.shape, node.attrs["axes"]))
    return part if divisor is None or divisor == 1 else part / divisor


def _divisor(node: Node, extent: int) -> float | None:
    """Divisor of a sum over `extent` elements; None for anything but sums and means."""
    return node.op.divisor(extent) if isinstance(node.op, Rowwise) else None


def _joining(written: _Written) -> Iterator[int]:
    """Positions of the first parts that reduce rows of a kernel that computes what they add up."""
    grouping = Grouping(written.graph, 0)
    for k, i in enumerate(written.first):
        (operand,) = written.graph.nodes[i].operands
        if grouping.are_one(operand, i):
            yield k
