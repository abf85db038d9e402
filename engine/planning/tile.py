"""Nodes whose ops have kernels for their shapes, and room to work in, are made by these."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.ir import Graph, Node
from engine.graph.tensor_type import TensorType
from engine.microkernels.recipe import Recipe
from engine.planning.storage import Storage
from engine.planning.tiled import Tiled


def tile(graph: Graph, room: int, threads: int) -> Graph:
    """`graph` with `tiled` nodes where kernels work in at most `room` bytes: with up to so many threads, or with one.

    Whether they do is decided for one thread, so that bits do not depend on how many there are.
    """
    types = Storage(graph).types
    nodes = [_tiled(node, [types[i] for i in node.operands], room, threads) for node in graph.nodes]
    changed = any(new is not old for new, old in zip(nodes, graph.nodes, strict=True))
    return graph.rewritten(nodes, graph.outputs) if changed else graph


def _tiled(node: Node, types: Sequence[object], room: int, threads: int) -> Node:
    if not node.op.is_kernel or node.op.several or not node.type.size or not _all_full(types):
        return node
    recipe: Recipe | None = node.kernel.recipe(node.type, *types, **node.attrs)
    if recipe is None or recipe.workspace(1) > room:
        return node
    fitting = threads if recipe.workspace(threads) <= room else 1
    return node._replace(op=Tiled(node.kernel, recipe, fitting))


def _all_full(types: Sequence[object]) -> bool:
    """Whether each operand is one tensor that has elements."""
    return all(isinstance(type, TensorType) and type.size for type in types)
