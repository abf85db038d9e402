"""Nodes whose ops have kernels for their shapes, and room to work in, are made by these."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Sequence

from engine.graph.ir import Graph, Node
from engine.graph.op import Kernel
from engine.graph.tensor_type import Shape, Strided, TensorType
from engine.microkernels.recipe import Recipe
from engine.planning.leading import read_extents
from engine.planning.storage import Storage
from engine.planning.tiled import Tiled


def tile(graph: Graph, room: int, threads: int) -> Graph:
    """`graph` with `tiled` nodes where kernels work in at most `room` bytes: with up to so many threads, or with one.

    Whether they do is decided for one thread, so that bits do not depend on how many there are.
    """
    return _rewritten(graph, [_tiled(*each, room, threads) for each in _as_they_lie(graph)])


def tile_alike(graph: Graph, tiled: Graph, kept: Container[Kernel]) -> Graph:
    """`graph` with those ops of `tiled`, which `tile` has made, that are `kept`, where it has nodes like theirs."""
    known = {
        _likeness(node.op.op, node, read, types): node.op
        for node, read, types in _as_they_lie(tiled)
        if isinstance(node.op, Tiled) and node.op in kept
    }
    alike = ((node, known.get(_likeness(node.op, node, read, types))) for node, read, types in _as_they_lie(graph))
    return _rewritten(graph, [node if op is None else node._replace(op=op) for node, op in alike])


def _as_they_lie(graph: Graph) -> Iterator[tuple[Node, Shape, Sequence[object]]]:
    """The nodes, each with what is read of it, and its operands' types."""
    types = Storage(graph).types
    for node, read in zip(graph.nodes, read_extents(graph), strict=True):
        yield node, read, [types[i] for i in node.operands]


def _rewritten(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """`graph` with these nodes in the place of its own; itself, where they are these."""
    changed = any(new is not old for new, old in zip(nodes, graph.nodes, strict=True))
    return graph.rewritten(nodes, graph.outputs) if changed else graph


def _likeness(op: object, node: Node, read: Shape, types: Sequence[object]) -> Hashable:
    """What a recipe is made from; attributes are the same object wherever a node has been moved to."""
    return op, id(node.attrs), node.types, read, *types


def _tiled(node: Node, read: Shape, types: Sequence[object], room: int, threads: int) -> Node:
    if not node.op.is_kernel or node.op.several or 0 in read or not node.type.size or not _all_full(types):
        return node
    out = Strided(node.type.with_shape(read), node.type.strides) if node.kernel.makes_parts else node.type
    recipe: Recipe | None = node.kernel.recipe(out, *types, **node.attrs)
    if recipe is None or recipe.workspace(1) > room:
        return node
    fitting = threads if recipe.workspace(threads) <= room else 1
    return node._replace(op=Tiled(node.kernel, recipe, fitting))


def _all_full(types: Sequence[object]) -> bool:
    """Whether each operand is one tensor that has elements."""
    return all(isinstance(type, TensorType) and type.size for type in types)
