"""Rewrites of sums before fusion: derive sums from earlier ones, and split sums over several axes in two parts.

A kernel reduces rows, which are trailing axes. A sum over axes before and behind others, as in batch normalization,
does not fit, and would read a whole tensor that a kernel wrote for this purpose only. Split in two, the first part sums
rows inside the kernel, and the second part reads one value per row:

    sum(x * y, axes=(0, 2))    becomes    sum(sum(x * y, axes=(2,)), axes=(0,))

A mean is divided after the first part, so that nothing is left to do behind the second kernel. Maxima and minima are
split the same way. So are means of all elements of a tensor that is too large for one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.compiler.fusion_groups import LONGEST_WHOLE, Domain, Grouping
from engine.ir.graph import Builder, Graph, Node, Value, shaped
from engine.ir.run_context import NO_LIMITS
from engine.ir.tensor_type import Shape, TensorType, has_kernels
from engine.ops.common.numerics import reduced_elements
from engine.ops.elementwise.arithmetic import Add, Div, DivScalar, Mul, MulScalar, Neg, Sub
from engine.ops.reduce.extremes import Max, Min
from engine.ops.reduce.sums import Mean, Rowwise, Sum

#: maximum nodes visited backwards from a sum in search of earlier sums, on all paths together
_MOST_BACK: Final = 64
#: reductions whose parts can be reduced by the same op in any order
_EXTREMES: Final = (Max, Min)

# Reuse of sums. The backward pass of normalization sums two tensors. One is a multiple of the tensor that the gradient
# of the bias sums already. The other is a multiple of a tensor minus its mean, whose sum is 0, or NaN if an element is
# not finite. So neither sum needs another pass over a tensor.


class _DerivedSum(NamedTuple):
    """A sum that follows from earlier ones, and the function `write` that writes it.

    `is_zero` tells that it is 0, or NaN if an element is not finite.
    """

    write: Callable[[], Value]
    is_zero: bool = False

    def scaled(self, step: Callable[[Value], Value]) -> _DerivedSum:
        """Apply a multiplication or division to the sum."""
        return self._replace(write=lambda: step(self.write()))


def reuse_sums(graph: Graph) -> Graph:
    """Replace sums and means of floats that follow from earlier sums; return `graph` itself if there are none.

    Their last bits differ. They also overflow if the earlier sum does, since a factor multiplies the sum rather than
    its terms.
    """
    if sum(isinstance(node.op, Sum | Mean) for node in graph.nodes) < 2:
        return graph
    writer = _Writer(graph)
    rewritten = Builder(graph.registry, NO_LIMITS).rewrite(graph, writer.rewrite_sum)
    return rewritten if writer.reuses else graph


class _Writer:
    """Writer of sums that remembers those that it has written."""

    def __init__(self, graph: Graph) -> None:
        self.reuses = False
        self._nodes = graph.nodes
        #: nodes that may still be visited
        self._budget = 0
        #: values of the new graph for nodes of the original one that have been read
        self._values: dict[int, Value] = {}
        #: sums that have been written, by operand and axes
        self._sums: dict[tuple[int, Shape], Value] = {}

    def rewrite_sum(self, node: Node, operands: Sequence[Value]) -> Value | None:
        """Return the value that replaces a node; None for nodes other than sums and means."""
        self._values.update(zip(node.operands, operands, strict=True))
        if not isinstance(node.op, Sum | Mean) or not has_kernels(node.type.dtype):
            return None
        (operand,), axes = node.operands, tuple(node.attrs["axes"])
        extent = reduced_elements(operands[0].shape, axes)
        if not axes or not extent or operands[0].dtype != node.type.dtype:
            return None
        self._budget = _MOST_BACK
        derived = None if (operand, axes) in self._sums else self._derive(operand, axes)
        if derived is None or derived.is_zero:
            result = operands[0].builder.copy(node, operands)
        else:
            self.reuses, total = True, derived.write()
            result = shaped(total / float(extent) if isinstance(node.op, Mean) else total, node.type.shape)
        if isinstance(node.op, Sum):
            self._sums[operand, axes] = result
        return result

    def _derive(self, i: int, axes: Shape) -> _DerivedSum | None:
        """Derive the sum of a node over some axes, with extent 1 there; return None if that fails within the budget."""
        node, earlier = self._nodes[i], self._sums.get((i, axes))
        if earlier is not None:
            return _DerivedSum(lambda: shaped(earlier, self._kept_shape(i, axes)))
        # Searching all paths through a large graph would take too long.
        self._budget -= 1
        if self._budget < 0 or any(self._nodes[k].type.dtype != node.type.dtype for k in node.operands):
            return None
        if isinstance(node.op, Neg | MulScalar | DivScalar):
            derived = self._derive(node.operands[0], axes)
            return derived and derived.scaled(lambda x: _emit(node, x))
        if isinstance(node.op, Add | Sub):
            return self._derive_addition(node, axes)
        return self._derive_product(node, axes) if isinstance(node.op, Mul | Div) else None

    def _derive_addition(self, node: Node, axes: Shape) -> _DerivedSum | None:
        """Derive the sum of a sum or difference if one side sums to zero.

        Two nonzero sums are not combined, because digits might cancel.
        """
        left, right = node.operands
        right_node = self._nodes[right]
        # x − mean(x) sums to 0 exactly. Multiplying the mean by 0 keeps a NaN, which the real sum would have, too.
        is_mean = (
            isinstance(right_node.op, Mean)
            and right_node.operands == (left,)
            and right_node.type.shape == self._kept_shape(left, axes)
        )
        if isinstance(node.op, Sub) and is_mean:
            subtracted = self._values[right]
            return _DerivedSum(lambda: subtracted * 0.0, is_zero=True)  # NaN if an element is not finite
        if any(self._nodes[i].type.shape != node.type.shape for i in node.operands):
            return None
        first = self._derive(left, axes)
        second = first and self._derive(right, axes)
        if first is None or second is None or not (first.is_zero or second.is_zero):
            return None
        is_zero = first.is_zero and second.is_zero
        return _DerivedSum(lambda: _emit(node, first.write(), second.write()), is_zero)

    def _derive_product(self, node: Node, axes: Shape) -> _DerivedSum | None:
        """Derive the sum of a product with a factor that is constant along the axes."""
        splits = [node.operands] if isinstance(node.op, Div) else [node.operands, node.operands[::-1]]
        for summed, factor_node in splits:
            factor = self._values.get(factor_node)
            if (
                factor is None
                or self._nodes[summed].type.shape != node.type.shape
                or not self._is_constant_along(factor_node, summed, axes)
            ):
                continue
            derived = self._derive(summed, axes)
            if derived is not None:
                return derived.scaled(lambda x, factor=factor: _emit(node, x, factor))  # type: ignore[misc]
        return None

    def _is_constant_along(self, factor_node: int, summed: int, axes: Shape) -> bool:
        """Whether a factor of a node is constant along these axes."""
        factor, rank = self._nodes[factor_node].type, self._nodes[summed].type.ndim
        lead = rank - factor.ndim
        return all(axis < lead or factor.shape[axis - lead] == 1 for axis in axes)

    def _kept_shape(self, i: int, axes: Shape) -> Shape:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(self._nodes[i].type.shape))


def _emit(node: Node, *operands: Value) -> Value:
    return operands[0].builder.emit(node.op, operands, node.attrs)


class _Axes(NamedTuple):
    """Axes of the first part of a reduction, which come last, and axes of the second part.

    If all axes are reduced, the second part also has those of the first one, whose extent is then 1.
    """

    trailing: tuple[int, ...]
    rest: tuple[int, ...]


def split_sums(graph: Graph) -> Graph:
    """Split sums whose first part fuses into a kernel that exists anyway; return `graph` itself if there are none.

    This changes the order of additions, and rounds a mean an additional time per row. `reuse_sums` runs first.
    """
    graph = reuse_sums(graph)
    candidates = {i: axes for i, node in enumerate(graph.nodes) if (axes := _axes(graph, node)) is not None}
    candidates |= _whole_means(graph)
    if not candidates:
        return graph
    # Split all candidates tentatively to see which first parts join a kernel, then split only those.
    fusing = {*_fusing(_split(graph, candidates))}
    chosen = {i: axes for k, (i, axes) in enumerate(candidates.items()) if k in fusing}
    return _split(graph, chosen).graph if chosen else graph


def _whole_means(graph: Graph) -> dict[int, _Axes]:
    """Find means of all elements of tensors too large for one row. Their first part reduces the kernel's rows."""
    means: dict[int, TensorType] = {}
    for i, node in enumerate(graph.nodes):
        if _divisor(node, 2) in (None, 1):
            continue
        x = graph.nodes[node.operands[0]].type
        is_whole = len(node.attrs["axes"]) == x.ndim > 1 and x.size > LONGEST_WHOLE
        if is_whole and x.dtype == node.type.dtype and has_kernels(x.dtype):
            means[i] = x
    rows = Grouping(graph, 0).row_axes if means else {}
    split: dict[int, _Axes] = {}
    for i, x in means.items():
        axes = graph.nodes[i].attrs["axes"]
        split[i] = _Axes(axes[-rows.get(Domain(x.shape, x.dtype), 1) :], axes)
    return split


class _SplitGraph(NamedTuple):
    """A graph, and its nodes that are first parts of sums, in order."""

    graph: Graph
    first: Sequence[int]


def _axes(graph: Graph, node: Node) -> _Axes | None:
    """Return the axes of both parts of a reduction, or None if it cannot be split."""
    if not (isinstance(node.op, _EXTREMES) or _divisor(node, 1) is not None):
        return None
    x, axes = graph.nodes[node.operands[0]].type, node.attrs["axes"]
    if x.dtype != node.type.dtype or not has_kernels(x.dtype) or not x.size or len(axes) in (0, x.ndim):
        return None
    trailing = tuple(a for k, a in enumerate(axes) if a == x.ndim - len(axes) + k)
    rest = tuple(a for a in axes if a not in trailing)
    return _Axes(trailing, rest) if rest and reduced_elements(x.shape, trailing) > 1 else None


def _split(graph: Graph, axes_of_node: Mapping[int, _Axes]) -> _SplitGraph:
    """Split these sums in two."""
    first: list[int] = []
    numbers = iter(range(len(graph.nodes)))

    def write_node(_: Node, operands: Sequence[Value]) -> Value | None:
        i = next(numbers)
        if i not in axes_of_node:
            return None
        node = graph.nodes[i]
        part = _reduced(node, operands[0], axes_of_node[i].trailing)
        first.append(part.index)
        # Divide a mean after the first part, inside the kernel, so that no division is left behind the second part.
        divisor = _divisor(node, reduced_elements(operands[0].shape, node.attrs["axes"]))
        rows = part if divisor is None or divisor == 1 else part / divisor
        return shaped(_reduced(node, rows, axes_of_node[i].rest), node.type.shape)

    return _SplitGraph(Builder(graph.registry, NO_LIMITS).rewrite(graph, write_node), first)


def _reduced(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    """Reduce over some axes, with extent 1 there in the result, by the same extreme or by a sum."""
    if isinstance(node.op, _EXTREMES):
        return x.builder.emit(node.op, (x,), {**node.attrs, "axes": axes, "keepdims": True})
    return x.sum(axes=axes, keepdims=True)


def _divisor(node: Node, extent: int) -> float | None:
    """Return the divisor of a sum over `extent` elements; None for nodes other than sums and means."""
    return node.op.divisor(extent) if isinstance(node.op, Rowwise) else None


def _fusing(split: _SplitGraph) -> Iterator[int]:
    """Yield positions of first parts that reduce rows of a kernel that computes their operands."""
    grouping = Grouping(split.graph, 0)
    for k, i in enumerate(split.first):
        (operand,) = split.graph.nodes[i].operands
        if grouping.share_kernel(operand, i):
            yield k
