"""Layout of results for cards: products write their result where it is read, so that nothing is copied.

The library of a card writes a product at any strides, and adds a bias to it. So a product whose result goes through
transposes and reshapes into a copy or a concatenation, or has a bias added that no kernel adds, is written there:

    transpose(a @ b, (1, 0, 2)).reshape(n, -1)      the product writes heads side by side
    cat(a @ b, c @ d)                               each product writes its part of the whole

A reshape of a strided tensor becomes a view if strides can express it and products alone read it; of several reshapes
of one tensor, the first is a copy, and the others are views of that. Attention that holds no scores ends in products,
too, and writes its results with their axes in the order of the copy.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine.compiler.plan import Storage
from engine.ir.graph import Graph, Node, inverse
from engine.ir.tensor_type import FLOAT16, FLOAT32, FLOAT64, FLOATS, Shape, TensorType
from engine.ops.elementwise.arithmetic import Add
from engine.ops.linalg.layouts import LaidProduct, LaidProducts, LaidResults, operands_of
from engine.ops.linalg.matmul import MatMul, is_readable
from engine.ops.nn.attention_tiles import AttentionGradients, AttentionRows
from engine.ops.shape.cat import Cat
from engine.ops.shape.reshape import Reshape, Transpose

#: dtypes that cuBLASLt adds a bias in
_WITH_BIAS: Final = (FLOAT16, FLOAT32)


#: ops whose recipes write at any strides, of these dtypes
_Attention = AttentionRows | AttentionGradients
_WITH_ATTENTION: Final = (FLOAT32, FLOAT64)

#: nodes between a result and the products that write it, or read it
_MOST_BETWEEN: Final = 64


class ReshapeInPlace(Reshape):
    """A reshape of a strided tensor as a view of it: strides say where its elements are."""

    internal = True
    reshapes = False


_IN_PLACE: Final = ReshapeInPlace()


def has_products(graph: Graph) -> bool:
    """Whether a graph has nodes that `output_layout` may rewrite."""
    return any(isinstance(node.op, MatMul | _Attention) for node in graph.nodes)


class LaidGraph(NamedTuple):
    """A graph whose results lie where they are read, and for each node the node of the original graph."""

    graph: Graph
    numbers: Sequence[int]


def output_layout(graph: Graph, looped: Container[int] = ()) -> LaidGraph:
    """Write results where they are read; return `graph` itself if there are none.

    Nodes that are `looped` are parts of kernels, and stay. It computes the same; with a bias, float16 is rounded once.
    """
    turned = _attention_in_place(graph, looped)
    inside = {k for k, i in enumerate(turned.numbers) if i in looped}
    written = _copied_once(_reshaped_in_place(_products_in_place(turned.graph, inside), inside), inside)
    return turned if written is graph else _without_dead(written, turned.numbers)


def _without_dead(graph: Graph, numbers: Sequence[int]) -> LaidGraph:
    """Remove nodes that no output depends on."""
    readers, nodes = _readers(graph), list[Node]()
    moved: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        if readers[i]:
            moved[i] = len(nodes)
            nodes.append(node.on(tuple(moved[operand] for operand in node.operands)))
    return LaidGraph(graph.rewritten(nodes, [moved[i] for i in graph.outputs]), [numbers[i] for i in moved])


class _Place(NamedTuple):
    """Place of a tensor in a dense one: the elements before its first, and to step along each of its axes."""

    offset: int
    strides: Shape


class _Part(NamedTuple):
    """A product that is a part of a result, and its operands."""

    laid: LaidProduct
    operands: tuple[int, ...]


class _Copied(Exception):
    """Failure of a result that products cannot write as it lies."""


def _attention_in_place(graph: Graph, looped: Container[int]) -> LaidGraph:
    """Let attention write results with their axes in the order of the node that would copy them."""
    storage, readers = Storage(graph), _readers(graph)
    orders: dict[int, Shape] = {}  # by the number of the get_output
    for i, node in enumerate(graph.nodes):
        if not isinstance(node.op, Transpose) or node.attrs["axes"][-1] != node.type.ndim - 1 or i in looped:
            continue
        (of,) = node.operands
        is_copied = any(_copies(storage, reader) and reader not in looped for reader in readers[i])
        if is_copied and _is_of_attention(graph, of):
            orders.setdefault(of, node.attrs["axes"])
    return _turned(graph, orders) if orders else LaidGraph(graph, range(len(graph.nodes)))


def _copies(storage: Storage, i: int) -> bool:
    nodes = storage.graph.nodes
    return i < len(nodes) and isinstance(nodes[i].op, Reshape) and not storage.is_view[i]


def _is_of_attention(graph: Graph, i: int) -> bool:
    """Whether a node is a result of attention for which cards have a recipe."""
    node = graph.nodes[i]
    made = graph.nodes[node.operands[0]] if node.op.name == "get_output" else None
    if made is None or not isinstance(made.op, _Attention) or node.type.dtype not in _WITH_ATTENTION:
        return False
    return len(made.operands) == len(made.op.operands) - 1  # without a mask


def _turned(graph: Graph, orders: Mapping[int, Shape]) -> LaidGraph:
    """Turn the results of attention to these orders of axes."""
    moved, memory, nodes, numbers = list[int](), dict[int, int](), list[Node](), list[int]()
    makers = {graph.nodes[i].operands[0] for i in orders}
    read = {i: (graph.nodes[i].operands[0], graph.nodes[i].attrs["index"]) for i in orders}
    by_result = {read[i]: order for i, order in orders.items()}  # of several that read one result, the last has its way
    orders = {i: by_result[result] for i, result in read.items()}
    for i, node in enumerate(graph.nodes):
        if isinstance(node.op, Transpose) and orders.get(node.operands[0]) == node.attrs["axes"]:
            moved.append(memory[node.operands[0]])
            continue
        here = node.on(tuple(moved[operand] for operand in node.operands))
        if i in makers:
            each = [by_result.get((i, k), tuple(range(type.ndim))) for k, type in enumerate(node.types)]
            op = LaidResults(node.kernel, tuple(each))
            here = here._replace(op=op, types=op.turned(node.types))
        elif node.op.name == "get_output" and (order := by_result.get((node.operands[0], node.attrs["index"]))):
            memory[i] = len(nodes)
            numbers.append(i)
            nodes.append(here._replace(types=(node.type.with_shape([node.type.shape[a] for a in order]),)))
            here = Node(
                graph.registry.ops["transpose"], (memory[i],), {"axes": inverse(order)}, node.types, node.origin
            )
        moved.append(len(nodes))
        nodes.append(here)
        numbers.append(i)
    return LaidGraph(graph.rewritten(nodes, [moved[i] for i in graph.outputs]), numbers)


def _products_in_place(graph: Graph, looped: Container[int]) -> Graph:
    """Put products in the places of the nodes that copy their results. Other nodes keep their numbers."""
    laying = _Laying(graph, looped)
    nodes, taken, is_changed = list(graph.nodes), set[int](), False
    for i in range(len(nodes) - 1, -1, -1):
        if i not in taken and laying.is_copied(i):
            parts, through = laying.parts_of(i)
            taken |= through
            if parts:
                op = LaidProducts(nodes[i].type, [part.laid for part in parts])
                operands = tuple(operand for part in parts for operand in part.operands)
                nodes[i], is_changed = Node(op, operands, {}, nodes[i].types, nodes[i].origin), True
    return graph.rewritten(nodes, graph.outputs) if is_changed else graph


class _Laying:
    """The way from results back to the products that can write them."""

    def __init__(self, graph: Graph, looped: Container[int]) -> None:
        self._nodes, self._looped = graph.nodes, looped
        self._storage, self._readers = Storage(graph), _readers(graph)

    def is_copied(self, i: int) -> bool:
        """Whether a node would be a launch that products may spare: a copy, or a copy of it, or the sum with a bias."""
        node = self._nodes[i]
        if i in self._looped or node.op.several or node.type.dtype.name not in FLOATS or not node.type.size:
            return False
        return isinstance(node.op, Cat | Add) or any(
            _copies(self._storage, reader) and reader not in self._looped for reader in self._readers[i]
        )

    def parts_of(self, root: int) -> tuple[Sequence[_Part], set[int]]:
        """Find the products that fill a result, and the nodes on the way; neither if something else fills it."""
        through = set[int]()
        try:
            dense = TensorType(self._nodes[root].type.shape, np.dtype(np.int8)).strides
            parts = self._parts(root, _Place(0, dense), None, through, is_root=True)
        except _Copied:
            return (), set()
        return parts, through

    def _parts(
        self, i: int, place: _Place, bias: int | None, through: set[int], *, is_root: bool = False
    ) -> list[_Part]:
        """Find the products that fill `place`, where `bias` is still to be added. Raises _Copied."""
        node = self._nodes[i]
        if not is_root and (len(self._readers[i]) != 1 or i in self._looped or len(through) >= _MOST_BETWEEN):
            raise _Copied
        through.add(i)
        if isinstance(node.op, MatMul):
            return [self._part(node, place, bias)]
        if isinstance(node.op, Cat) and bias is None:
            return self._parts_of_cat(node, place, through)
        if isinstance(node.op, Add) and bias is None:
            of, bias = self._with_bias(node)
            return self._parts(of, place, bias, through)
        if isinstance(node.op, Transpose | Reshape):
            (of,) = node.operands
            shape = self._nodes[of].type.shape
            if bias is not None and not _keeps_columns(node, shape):
                raise _Copied
            return self._parts(of, _seen(node, place, shape), bias, through)
        raise _Copied

    def _part(self, node: Node, place: _Place, bias: int | None) -> _Part:
        """Place the product of a node, whose rows must be contiguous. Raises _Copied."""
        shape = node.type.shape
        if place.strides[-1] != 1 and shape[-1] > 1:
            raise _Copied
        operands = node.operands if bias is None else (*node.operands, bias)
        if any(self._nodes[operand].type.dtype != node.type.dtype for operand in operands):
            raise _Copied
        return _Part(LaidProduct(shape, *place, bias is not None), operands)

    def _parts_of_cat(self, node: Node, place: _Place, through: set[int]) -> list[_Part]:
        axis = node.attrs["axis"]
        if any(self._nodes[operand].type.dtype != node.type.dtype for operand in node.operands):
            raise _Copied  # it would be another product that is made in the dtype of the whole
        extents = [self._nodes[operand].type.shape[axis] for operand in node.operands]
        starts = [place.offset + place.strides[axis] * start for start in accumulate(extents, initial=0)]
        return [
            part
            for operand, start in zip(node.operands, starts, strict=False)
            for part in self._parts(operand, place._replace(offset=start), None, through)
        ]

    def _with_bias(self, node: Node) -> tuple[int, int]:
        """Find the operand that a bias is added to, and the bias: one number a column, contiguous. Raises _Copied."""
        type = node.type
        for of, bias in (node.operands, node.operands[::-1]):
            added = self._storage.types[bias]
            if isinstance(added, tuple) or self._nodes[of].type != type or type.dtype not in _WITH_BIAS:
                continue
            if added.is_dense and added.shape[-1:] == type.shape[-1:] == (added.size,):
                return of, bias
        raise _Copied


def _keeps_columns(node: Node, shape: Shape) -> bool:
    """Whether the last axis of a view is that of its operand, of this shape."""
    if isinstance(node.op, Transpose):
        return bool(node.attrs["axes"][-1] == len(shape) - 1)
    return node.type.shape[-1:] == shape[-1:]


def _seen(node: Node, place: _Place, shape: Shape) -> _Place:
    """Place a view's operand, of this shape, so that the view lies at `place`. Raises _Copied."""
    if isinstance(node.op, Transpose):
        steps = dict(zip(node.attrs["axes"], place.strides, strict=True))
        return place._replace(strides=tuple(steps[axis] for axis in range(len(shape))))
    strides = _reshaped(node.type.shape, place.strides, shape)
    if strides is None:
        raise _Copied
    return place._replace(strides=strides)


def _reshaped(shape: Shape, strides: Sequence[int], into: Shape) -> Shape | None:
    """Return the strides, in bytes, of a tensor in another shape; None if it would be copied."""
    try:
        return np.reshape(as_strided(np.empty(1, np.int8), shape, strides), into, copy=False).strides
    except ValueError:
        return None


def _readers(graph: Graph) -> Mapping[int, Sequence[int]]:
    """Readers of each node that an output depends on; an output is read by the end of the graph as well."""
    readers: dict[int, list[int]] = {i: [] for i in range(len(graph.nodes))}
    for i in graph.outputs:
        readers[i].append(len(graph.nodes))
    for i in range(len(graph.nodes) - 1, -1, -1):
        if readers[i]:
            for operand in graph.nodes[i].operands:
                readers[operand].append(i)
    return readers


def _reshaped_in_place(graph: Graph, looped: Container[int]) -> Graph:
    """Replace reshapes by views where products can read their operand as it lies."""
    refused = set[int]()
    while True:
        storage, readers = Storage(graph), _readers(graph)
        chosen = [
            i
            for i, node in enumerate(graph.nodes)
            if readers[i] and i not in looped and i not in refused and _may_be_view(storage, node, i)
        ]
        if not chosen:
            return graph
        nodes = list(graph.nodes)
        for i in chosen:
            nodes[i] = nodes[i]._replace(op=_IN_PLACE)
        written = graph.rewritten(nodes, graph.outputs)
        lying = Storage(written)
        missed = {i for i in chosen if not _is_for_products(lying, readers, i)}
        if not missed:
            return written
        refused |= missed


def _copied_once(graph: Graph, looped: Container[int]) -> Graph:
    """Replace reshapes that would copy a tensor again by reshapes of its copy."""
    storage, readers = Storage(graph), _readers(graph)
    nodes, copies, is_changed = list(graph.nodes), dict[int, int](), False
    for i, node in enumerate(nodes):
        if isinstance(node.op, Reshape) and not storage.is_view[i] and readers[i] and i not in looped:
            (operand,) = node.operands
            if operand in copies:
                nodes[i], is_changed = node.on((copies[operand],)), True
            else:
                copies[operand] = i
    return graph.rewritten(nodes, graph.outputs) if is_changed else graph


def _may_be_view(storage: Storage, node: Node, i: int) -> bool:
    """Whether a node is a reshape that copies, though strides could express it."""
    if not isinstance(node.op, Reshape) or storage.is_view[i]:
        return False
    operand = storage.types[node.operands[0]]
    return isinstance(operand, TensorType) and _reshaped(operand.shape, operand.strides, node.type.shape) is not None


def _is_for_products(storage: Storage, readers: Mapping[int, Sequence[int]], i: int, most: int = _MOST_BETWEEN) -> bool:
    """Whether products alone read a node, behind at most so many views, and can read it as it lies."""
    nodes, type = storage.graph.nodes, storage.types[i]
    if not most or not isinstance(type, TensorType):
        return False
    for reader in readers[i]:
        node = nodes[reader] if reader < len(nodes) else None
        if node is None:
            return False
        if storage.is_view[reader]:
            if node.op.several or not _is_for_products(storage, readers, reader, most - 1):
                return False
        elif not (_multiplies(node, i) and is_readable(type, node.type.dtype)):
            return False
    return True


def _multiplies(node: Node, i: int) -> bool:
    """Whether a node reads another as nothing but a matrix."""
    if isinstance(node.op, LaidProducts):
        parts = operands_of(node.op.parts)
        return all(node.operands[numbers[2]] != i for part, numbers in parts if part.has_bias)
    return isinstance(node.op, MatMul)
