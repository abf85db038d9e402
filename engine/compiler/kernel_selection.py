"""Selection of microkernels: nodes whose ops have some for their shapes, and memory to work in, are made by these."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.codegen.microkernels.recipe import Recipe
from engine.compiler.memory_plan import Storage
from engine.compiler.recipes import recipe_for
from engine.ir.dtypes import DTYPES
from engine.ir.graph import Graph, Node
from engine.ir.op import Kernel, ResultTypes, View
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import Shape, Strided, TensorType


def read_extents(graph: Graph) -> list[Shape]:
    """Leading-extent analysis: for each node, the extents of the leading part of its (first) result that is ever read.

    Views say what they read of their operand: all other ops read everything.
    """
    read: list[Shape] = [(0,) * node.type.ndim for node in graph.nodes]
    for i in graph.outputs:
        read[i] = graph.nodes[i].type.shape
    for i in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[i]
        for operand in node.operands:
            extents = graph.nodes[operand].type.shape
            if isinstance(node.op, View):
                extents = node.op.leading_part(read[i], extents, node.attrs)
            read[operand] = tuple(map(max, read[operand], extents))
    return read


@dataclass(frozen=True, eq=False, repr=False)
class MicrokernelOp(Kernel):
    """`op`, made by `recipe` with at most `threads` threads. No op of the opset: one is made for each node."""

    op: Kernel
    made_by: Recipe
    threads: int

    name = "microkernel"
    operands = ("x...",)
    internal = True
    dtypes = DTYPES

    def __post_init__(self) -> None:
        object.__setattr__(self, "attrs", self.op.attrs)  # a class attribute elsewhere

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Infer as the op does."""
        return self.op.infer(*types, **attrs)

    def forward(self, run: RunContext, *arrays: Any, out: Any, **attrs: Any) -> None:
        """Run the op."""
        self.op.forward(run, *arrays, out=out, **attrs)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the op."""
        return self.op.flops(out, *types, **attrs)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Memory that the kernels work in."""
        return self.made_by.workspace(self.threads)


def select_microkernels(graph: Graph, most_bytes: int, threads: int, *, in_body: bool = False) -> Graph:
    """Select microkernels that work in at most `most_bytes`: with up to so many threads, or with one.

    The choice is made for one thread, so that bits do not depend on how many there are. The body of a loop, `in_body`,
    has microkernels that pay nowhere else.
    """
    return _rewritten(graph, [_selected(*each, most_bytes, threads, in_body=in_body) for each in _as_they_lie(graph)])


def select_alike(graph: Graph, selected: Graph, kept: Container[Kernel]) -> Graph:
    """Put those microkernels of `selected` that are `kept` in the place of equal nodes of `graph`."""
    known = {
        _likeness(node.op.op, node, read, types): node.op
        for node, read, types in _as_they_lie(selected)
        if isinstance(node.op, MicrokernelOp) and node.op in kept
    }
    alike = ((node, known.get(_likeness(node.op, node, read, types))) for node, read, types in _as_they_lie(graph))
    return _rewritten(graph, [node if op is None else node._replace(op=op) for node, op in alike])


def _as_they_lie(graph: Graph) -> Iterator[tuple[Node, Shape, Sequence[object]]]:
    """Yield the nodes, each with its extents that are read, and its operands' types."""
    types = Storage(graph).types
    for node, read in zip(graph.nodes, read_extents(graph), strict=True):
        yield node, read, [types[i] for i in node.operands]


def _rewritten(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """Put these nodes in the place of those of `graph`; return it as it is if they are its own."""
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
