"""Output layout for GPUs: products write their result directly where it is read, so that nothing is copied.

A GPU's BLAS can write a product with any strides, and add a bias to it. So if the result of a product goes through
transposes and reshapes into a copy or concatenation, or has a bias added outside any kernel, the product writes the
final result itself:

    transpose(a @ b, (1, 0, 2)).reshape(n, -1)      the product writes heads side by side
    cat(a @ b, c @ d)                               each product writes its part of the result

A reshape of a strided tensor becomes a view if strides can express it and only products read it. If several reshapes
copy one tensor, the first one copies it, and the others become views of the copy. Fused attention ends in products as
well, and writes its results with their axes in the order of the copy.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine.compiler.plan import MemoryBlocks
from engine.ir.graph import Graph, Node, inverse
from engine.ir.tensor_type import FLOAT16, FLOAT32, FLOAT64, FLOATS, Shape, TensorType
from engine.ops.elementwise.arithmetic import Add
from engine.ops.linalg.layouts import PermutedResults, StridedProduct, StridedProducts, operand_numbers
from engine.ops.linalg.matmul import MatMul, is_readable
from engine.ops.nn.attention_tiles import AttentionGradients, AttentionRows
from engine.ops.shape.cat import Cat
from engine.ops.shape.reshape import Reshape, Transpose

#: dtypes in which cuBLASLt adds a bias
_WITH_BIAS: Final = (FLOAT16, FLOAT32)


#: ops whose recipes write with any strides, and their dtypes
_Attention = AttentionRows | AttentionGradients
_WITH_ATTENTION: Final = (FLOAT32, FLOAT64)

#: maximum nodes between a result and the products that write or read it
_MOST_BETWEEN: Final = 64


class ReshapeInPlace(Reshape):
    """A reshape of a strided tensor as a view of it, with strides that give the new shape."""

    internal = True
    reshapes = False


_IN_PLACE: Final = ReshapeInPlace()


def has_products(graph: Graph) -> bool:
    """Whether a graph has nodes that `output_layout` may rewrite."""
    return any(isinstance(node.op, MatMul | _Attention) for node in graph.nodes)


class LaidGraph(NamedTuple):
    """A graph whose results are written where they are read, and the original node of each of its nodes."""

    graph: Graph
    numbers: Sequence[int]


def output_layout(graph: Graph, fused: Container[int] = ()) -> LaidGraph:
    """Let products and attention write results where they are read; return `graph` itself if none can.

    `fused` nodes are parts of kernels, and stay. Results are equal, except that float16 with a bias is rounded once.
    """
    transposed = _transpose_attention(graph, fused)
    fused_here = {k for k, i in enumerate(transposed.numbers) if i in fused}
    rewritten = _share_copies(
        _reshapes_as_views(_products_to_outputs(transposed.graph, fused_here), fused_here), fused_here
    )
    return transposed if rewritten is graph else _without_dead(rewritten, transposed.numbers)


def _without_dead(graph: Graph, numbers: Sequence[int]) -> LaidGraph:
    """Remove nodes that no output depends on."""
    readers, nodes = _readers(graph), list[Node]()
    renumbered: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        if readers[i]:
            renumbered[i] = len(nodes)
            nodes.append(node.with_operands(tuple(renumbered[operand] for operand in node.operands)))
    return LaidGraph(graph.with_nodes(nodes, [renumbered[i] for i in graph.outputs]), [numbers[i] for i in renumbered])


class _Place(NamedTuple):
    """Place of a tensor in a dense one: the offset of its first element, and its strides, in elements."""

    offset: int
    strides: Shape


class _Part(NamedTuple):
    """A product that writes a part of a result, and its operands."""

    laid: StridedProduct
    operands: tuple[int, ...]


class _NotWritable(Exception):
    """Failure of products to write a result."""


def _transpose_attention(graph: Graph, fused: Container[int]) -> LaidGraph:
    """Let attention write results with their axes in the order of the node that would copy them."""
    storage, readers = MemoryBlocks(graph), _readers(graph)
    orders: dict[int, Shape] = {}  # by the number of the get_output
    for i, node in enumerate(graph.nodes):
        if not isinstance(node.op, Transpose) or node.attrs["axes"][-1] != node.type.ndim - 1 or i in fused:
            continue
        (operand,) = node.operands
        is_copied = any(_copies(storage, reader) and reader not in fused for reader in readers[i])
        if is_copied and _is_attention_result(graph, operand):
            orders.setdefault(operand, node.attrs["axes"])
    return _with_axis_orders(graph, orders) if orders else LaidGraph(graph, range(len(graph.nodes)))


def _copies(storage: MemoryBlocks, i: int) -> bool:
    nodes = storage.graph.nodes
    return i < len(nodes) and isinstance(nodes[i].op, Reshape) and not storage.is_view[i]


def _is_attention_result(graph: Graph, i: int) -> bool:
    """Whether a node is a result of attention for which GPUs have a recipe."""
    node = graph.nodes[i]
    attention = graph.nodes[node.operands[0]] if node.op.name == "get_output" else None
    if attention is None or not isinstance(attention.op, _Attention) or node.type.dtype not in _WITH_ATTENTION:
        return False
    return len(attention.operands) == len(attention.op.operands) - 1  # without a mask


def _with_axis_orders(graph: Graph, orders: Mapping[int, Shape]) -> LaidGraph:
    """Rewrite attention to write these results with their axes in these orders."""
    renumbered, as_written, nodes, numbers = list[int](), dict[int, int](), list[Node](), list[int]()
    makers = {graph.nodes[i].operands[0] for i in orders}
    result_of = {i: (graph.nodes[i].operands[0], graph.nodes[i].attrs["index"]) for i in orders}
    # Several transposes may read one result: the last one decides.
    by_result = {result_of[i]: order for i, order in orders.items()}
    orders = {i: by_result[result] for i, result in result_of.items()}
    for i, node in enumerate(graph.nodes):
        if isinstance(node.op, Transpose) and orders.get(node.operands[0]) == node.attrs["axes"]:
            renumbered.append(as_written[node.operands[0]])
            continue
        new_node = node.with_operands(tuple(renumbered[operand] for operand in node.operands))
        if i in makers:
            axis_orders = [by_result.get((i, k), tuple(range(type.ndim))) for k, type in enumerate(node.types)]
            op = PermutedResults(node.kernel, tuple(axis_orders))
            new_node = new_node._replace(op=op, types=op.permuted_types(node.types))
        elif node.op.name == "get_output" and (order := by_result.get((node.operands[0], node.attrs["index"]))):
            as_written[i] = len(nodes)
            numbers.append(i)
            nodes.append(new_node._replace(types=(node.type.with_shape([node.type.shape[a] for a in order]),)))
            new_node = Node(
                graph.registry.ops["transpose"], (as_written[i],), {"axes": inverse(order)}, node.types, node.origin
            )
        renumbered.append(len(nodes))
        nodes.append(new_node)
        numbers.append(i)
    return LaidGraph(graph.with_nodes(nodes, [renumbered[i] for i in graph.outputs]), numbers)


def _products_to_outputs(graph: Graph, fused: Container[int]) -> Graph:
    """Replace nodes that copy results of products by products. Other nodes keep their numbers."""
    finder = _ProductFinder(graph, fused)
    nodes, consumed, is_changed = list(graph.nodes), set[int](), False
    # From the outputs backwards, so that a product writes to the last of several copies.
    for i in range(len(nodes) - 1, -1, -1):
        if i not in consumed and finder.is_copied(i):
            parts, visited = finder.parts_of(i)
            consumed |= visited
            if parts:
                op = StridedProducts(nodes[i].type, [part.laid for part in parts])
                operands = tuple(operand for part in parts for operand in part.operands)
                nodes[i], is_changed = Node(op, operands, {}, nodes[i].types, nodes[i].origin), True
    return graph.with_nodes(nodes, graph.outputs) if is_changed else graph


class _ProductFinder:
    """Search backwards from results for products that can write them."""

    def __init__(self, graph: Graph, fused: Container[int]) -> None:
        self._nodes, self._fused = graph.nodes, fused
        self._storage, self._readers = MemoryBlocks(graph), _readers(graph)

    def is_copied(self, i: int) -> bool:
        """Whether a node costs a launch that products can save: a copy, its operand, or a sum with a bias."""
        node = self._nodes[i]
        if i in self._fused or node.op.several or node.type.dtype.name not in FLOATS or not node.type.size:
            return False
        return isinstance(node.op, Cat | Add) or any(
            _copies(self._storage, reader) and reader not in self._fused for reader in self._readers[i]
        )

    def parts_of(self, root: int) -> tuple[Sequence[_Part], set[int]]:
        """Return the products that fill a result and the nodes in between; neither if something else is part of it."""
        visited = set[int]()
        try:
            dense = TensorType(self._nodes[root].type.shape, np.dtype(np.int8)).strides
            parts = self._parts(root, _Place(0, dense), None, visited, is_root=True)
        except _NotWritable:
            return (), set()
        return parts, visited

    def _parts(
        self, i: int, place: _Place, bias: int | None, visited: set[int], *, is_root: bool = False
    ) -> list[_Part]:
        """Return the products that fill `place`, to which `bias` is still to be added. Raises _NotWritable."""
        node = self._nodes[i]
        # A value that another node reads, too, has to be written in its own layout.
        if not is_root and (len(self._readers[i]) != 1 or i in self._fused or len(visited) >= _MOST_BETWEEN):
            raise _NotWritable
        visited.add(i)
        if isinstance(node.op, MatMul):
            return [self._part(node, place, bias)]
        if isinstance(node.op, Cat) and bias is None:
            return self._parts_of_cat(node, place, visited)
        if isinstance(node.op, Add) and bias is None:
            operand, bias = self._with_bias(node)
            return self._parts(operand, place, bias, visited)
        if isinstance(node.op, Transpose | Reshape):
            (operand,) = node.operands
            shape = self._nodes[operand].type.shape
            # The bias is added along the last axis of the product, which must therefore be that of the result.
            if bias is not None and not _keeps_columns(node, shape):
                raise _NotWritable
            return self._parts(operand, _operand_place(node, place, shape), bias, visited)
        raise _NotWritable

    def _part(self, node: Node, place: _Place, bias: int | None) -> _Part:
        """Place the product of a node, whose rows must be contiguous. Raises _NotWritable."""
        shape = node.type.shape
        if place.strides[-1] != 1 and shape[-1] > 1:
            raise _NotWritable
        operands = node.operands if bias is None else (*node.operands, bias)
        if any(self._nodes[operand].type.dtype != node.type.dtype for operand in operands):
            raise _NotWritable
        return _Part(StridedProduct(shape, *place, bias is not None), operands)

    def _parts_of_cat(self, node: Node, place: _Place, visited: set[int]) -> list[_Part]:
        axis = node.attrs["axis"]
        if any(self._nodes[operand].type.dtype != node.type.dtype for operand in node.operands):
            raise _NotWritable  # the concatenation would cast them
        extents = [self._nodes[operand].type.shape[axis] for operand in node.operands]
        starts = [place.offset + place.strides[axis] * start for start in accumulate(extents, initial=0)]
        return [
            part
            for operand, start in zip(node.operands, starts, strict=False)
            for part in self._parts(operand, place._replace(offset=start), None, visited)
        ]

    def _with_bias(self, node: Node) -> tuple[int, int]:
        """Return the operand that a bias is added to, and the bias: one number per column, contiguous.

        Raises _NotWritable.
        """
        type = node.type
        # Addition commutes, so either operand may be the bias.
        for operand, bias in (node.operands, node.operands[::-1]):
            bias_type = self._storage.types[bias]
            if isinstance(bias_type, tuple) or self._nodes[operand].type != type or type.dtype not in _WITH_BIAS:
                continue
            if bias_type.is_dense and bias_type.shape[-1:] == type.shape[-1:] == (bias_type.size,):
                return operand, bias
        raise _NotWritable


def _keeps_columns(node: Node, shape: Shape) -> bool:
    """Whether a view of an operand of this shape keeps its last axis."""
    if isinstance(node.op, Transpose):
        return bool(node.attrs["axes"][-1] == len(shape) - 1)
    return node.type.shape[-1:] == shape[-1:]


def _operand_place(node: Node, place: _Place, shape: Shape) -> _Place:
    """Return the place of a view's operand, of this shape, for the view to lie at `place`. Raises _NotWritable."""
    if isinstance(node.op, Transpose):
        steps = dict(zip(node.attrs["axes"], place.strides, strict=True))
        return place._replace(strides=tuple(steps[axis] for axis in range(len(shape))))
    strides = _reshaped_strides(node.type.shape, place.strides, shape)
    if strides is None:
        raise _NotWritable
    return place._replace(strides=strides)


def _reshaped_strides(shape: Shape, strides: Sequence[int], into: Shape) -> Shape | None:
    """Return the strides, in bytes, of a tensor in another shape, or None if NumPy would copy it."""
    try:
        return np.reshape(as_strided(np.empty(1, np.int8), shape, strides), into, copy=False).strides
    except ValueError:
        return None


def _readers(graph: Graph) -> Mapping[int, Sequence[int]]:
    """Return the readers of each node that an output depends on. The end of the graph counts as a reader of outputs."""
    readers: dict[int, list[int]] = {i: [] for i in range(len(graph.nodes))}
    for i in graph.outputs:
        readers[i].append(len(graph.nodes))
    # Backwards, so that nodes that no output depends on are skipped, and do not count as readers of their operands.
    for i in range(len(graph.nodes) - 1, -1, -1):
        if readers[i]:
            for operand in graph.nodes[i].operands:
                readers[operand].append(i)
    return readers


def _reshapes_as_views(graph: Graph, fused: Container[int]) -> Graph:
    """Replace reshapes by views if products can read the operand with its strides."""
    refused = set[int]()
    while True:
        storage, readers = MemoryBlocks(graph), _readers(graph)
        chosen = [
            i
            for i, node in enumerate(graph.nodes)
            if readers[i] and i not in fused and i not in refused and _may_be_view(storage, node, i)
        ]
        if not chosen:
            return graph
        nodes = list(graph.nodes)
        for i in chosen:
            nodes[i] = nodes[i]._replace(op=_IN_PLACE)
        rewritten = graph.with_nodes(nodes, graph.outputs)
        storage_after = MemoryBlocks(rewritten)
        # Views change the strides of the nodes behind them, so check the readers after all replacements, and start over
        # without the reshapes that products cannot read.
        unsuitable = {i for i in chosen if not _is_read_by_products(storage_after, readers, i)}
        if not unsuitable:
            return rewritten
        refused |= unsuitable


def _share_copies(graph: Graph, fused: Container[int]) -> Graph:
    """Replace reshapes that would copy the same tensor again by reshapes of the first copy."""
    storage, readers = MemoryBlocks(graph), _readers(graph)
    nodes, copies, is_changed = list(graph.nodes), dict[int, int](), False
    for i, node in enumerate(nodes):
        if isinstance(node.op, Reshape) and not storage.is_view[i] and readers[i] and i not in fused:
            (operand,) = node.operands
            if operand in copies:
                nodes[i], is_changed = node.with_operands((copies[operand],)), True
            else:
                copies[operand] = i
    return graph.with_nodes(nodes, graph.outputs) if is_changed else graph


def _may_be_view(storage: MemoryBlocks, node: Node, i: int) -> bool:
    """Whether a node is a reshape that copies, although strides could express it."""
    if not isinstance(node.op, Reshape) or storage.is_view[i]:
        return False
    operand = storage.types[node.operands[0]]
    return (
        isinstance(operand, TensorType)
        and _reshaped_strides(operand.shape, operand.strides, node.type.shape) is not None
    )


def _is_read_by_products(
    storage: MemoryBlocks, readers: Mapping[int, Sequence[int]], i: int, max_views: int = _MOST_BETWEEN
) -> bool:
    """Whether only products read a node, behind at most `max_views` views, and can read its strides."""
    nodes, type = storage.graph.nodes, storage.types[i]
    if not max_views or not isinstance(type, TensorType):
        return False
    for reader in readers[i]:
        node = nodes[reader] if reader < len(nodes) else None
        if node is None:
            return False
        if storage.is_view[reader]:
            if node.op.several or not _is_read_by_products(storage, readers, reader, max_views - 1):
                return False
        elif not (_reads_as_matrix(node, i) and is_readable(type, node.type.dtype)):
            return False
    return True


def _reads_as_matrix(node: Node, i: int) -> bool:
    """Whether a node is a product that reads another node only as a matrix, not as a bias."""
    if isinstance(node.op, StridedProducts):
        parts = operand_numbers(node.op.parts)
        return all(node.operands[numbers[2]] != i for part, numbers in parts if part.has_bias)
    return isinstance(node.op, MatMul)
