"""Sums that follow from others: of what is a multiple of a tensor that is added up anyway, or adds nothing to one.

The way back through normalisation adds up what reaches the mean: a multiple of what the gradient of the bias adds up,
and a multiple of what has its mean taken off, of which nothing is left, but NaN where something is not finite. So it
needs no pass over the tensor of its own, and what reads the sum, none after that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from engine.graph.dtypes import has_loops
from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_LIMITS
from engine.graph.tensor_type import Shape
from engine.oplib.accumulate import count
from engine.oplib.permutation import shaped
from engine.ops.arithmetic import Add, Div, Mul, Sub
from engine.ops.scalar import DivScalar, MulScalar
from engine.ops.sign import Neg
from engine.ops.sum import Mean, Sum

#: nodes that are gone back through from a sum to others, on all ways
_MOST_BACK: Final = 64


class _Known(NamedTuple):
    """A sum that is known: what writes it, and whether nothing is left in it but what is not finite."""

    written: Callable[[], Value]
    is_nothing: bool = False

    def then(self, step: Callable[[Value], Value]) -> _Known:
        """A multiple of it."""
        return self._replace(written=lambda: step(self.written()))


def with_known_sums(graph: Graph) -> Graph:
    """`graph` with sums and means of floats that follow from earlier ones written so; itself, where none does.

    They have other last bits, and are infinite where a sum that they are a multiple of is: a factor multiplies the sum,
    not what it adds up.
    """
    if sum(isinstance(node.op, Sum | Mean) for node in graph.nodes) < 2:
        return graph
    writer = _Writer(graph)
    written = Builder(graph.registry, NO_LIMITS).rewrite(graph, writer.instead)
    return written if writer.found else graph


class _Writer:
    """Writer of sums, which knows those that it has written."""

    def __init__(self, graph: Graph) -> None:
        self.found = False
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
            self.found, total = True, known.written()
            made = shaped(total / float(extent) if isinstance(node.op, Mean) else total, node.type.shape)
        if isinstance(node.op, Sum):
            self._sums[of, axes] = made
        return made

    def _known(self, i: int, axes: Shape) -> _Known | None:
        """The sum of a node over some axes, which are kept; None where it is not known, or too far away."""
        node, there = self._nodes[i], self._sums.get((i, axes))
        if there is not None:
            return _Known(lambda: shaped(there, self._kept(i, axes)))
        self._left -= 1
        if self._left < 0 or any(self._nodes[k].type.dtype != node.type.dtype for k in node.operands):
            return None
        if isinstance(node.op, Neg | MulScalar | DivScalar):
            found = self._known(node.operands[0], axes)
            return found and found.then(lambda x: x.builder.emit(node.op, (x,), node.attrs))
        if isinstance(node.op, Add | Sub):
            return self._of_two(node, axes)
        return self._of_product(node, axes) if isinstance(node.op, Mul | Div) else None

    def _of_two(self, node: Node, axes: Shape) -> _Known | None:
        """The sum over a sum or a difference of which one side adds up to nothing: of two, digits might cancel."""
        if isinstance(node.op, Sub) and self._is_mean(node.operands[1], node.operands[0], axes):
            mean = self._values[node.operands[1]]
            return _Known(lambda: mean * 0.0, is_nothing=True)  # NaN where something is not finite
        if any(self._nodes[i].type.shape != node.type.shape for i in node.operands):
            return None
        first = self._known(node.operands[0], axes)
        second = first and self._known(node.operands[1], axes)
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
            found = self._known(of, axes)
            if found is not None:
                return found.then(lambda x, factor=factor: _emitted(node, x, factor))  # type: ignore[misc]
        return None

    def _is_mean(self, i: int, of: int, axes: Shape) -> bool:
        node = self._nodes[i]
        return isinstance(node.op, Mean) and node.operands == (of,) and node.type.shape == self._kept(of, axes)

    def _is_same(self, by: int, of: int, axes: Shape) -> bool:
        """Whether a factor of a node has one number for all that is added up over these axes."""
        factor, rank = self._nodes[by].type, self._nodes[of].type.ndim
        lead = rank - factor.ndim
        return all(axis < lead or factor.shape[axis - lead] == 1 for axis in axes)

    def _kept(self, i: int, axes: Shape) -> Shape:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(self._nodes[i].type.shape))


def _emitted(node: Node, *operands: Value) -> Value:
    return operands[0].builder.emit(node.op, operands, node.attrs)
