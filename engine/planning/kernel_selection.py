"""Selection of microkernels: nodes whose ops have some for their shapes, and memory to work in, are made by these."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Sequence

from engine.graph.ir import Graph, Node
from engine.graph.op import Kernel
from engine.graph.tensor_type import Shape, Strided, TensorType
from engine.planning.leading import read_extents
from engine.planning.microkernel_op import MicrokernelOp
from engine.planning.storage import Storage
from engine.recipes.recipe_table import recipe_for


def select_microkernels(graph: Graph, most_bytes: int, threads: int, *, in_body: bool = False) -> Graph:
    """`graph` with microkernels where these work in at most `most_bytes`: with up to so many threads, or with one.

    Whether they do is decided for one thread, so that bits do not depend on how many there are. The body of a loop,
    `in_body`, has some that pay nowhere else.
    """
    return _rewritten(graph, [_selected(*each, most_bytes, threads, in_body=in_body) for each in _as_they_lie(graph)])


def select_alike(graph: Graph, selected: Graph, kept: Container[Kernel]) -> Graph:
    """`graph` with those microkernels of `selected` that are `kept`, where it has nodes like theirs."""
    known = {
        _likeness(node.op.op, node, read, types): node.op
        for node, read, types in _as_they_lie(selected)
        if isinstance(node.op, MicrokernelOp) and node.op in kept
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
    """Key of all that a recipe is made from; attributes are the same object wherever a node has been moved to."""
    return op, id(node.attrs), node.types, read, *types


def _selected(
    node: Node, read: Shape, types: Sequence[object], most_bytes: int, threads: int, *, in_body: bool
) -> Node:
    if not node.op.is_kernel or node.op.several or 0 in read or not node.type.size:
        return node
    if not all(isinstance(type, TensorType) and type.size for type in types):
        return node
    out = Strided(node.type.with_shape(read), node.type.strides) if node.kernel.makes_parts else node.type
    recipe = recipe_for(node.kernel, "cpu", out, *types, in_body=in_body, **node.attrs)
    if recipe is None or recipe.workspace(1) > most_bytes:
        return node
    fitting = threads if recipe.workspace(threads) <= most_bytes else 1
    return node._replace(op=MicrokernelOp(node.kernel, recipe, fitting))
