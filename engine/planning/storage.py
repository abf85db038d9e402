"""Memory of a plan, decided before it runs: which results are views, how long each block is needed, and where it lies.

A result that does not outlive the run gets a place in the arena. One that does has memory of its own, so that keeping
it keeps nothing else; until it is written, that memory serves like the arena.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine.graph.ir import Graph, Node
from engine.graph.memory import Memory
from engine.graph.op import Definition, ResultTypes, View
from engine.graph.tensor_type import Strided, TensorType
from engine.passes.allowance import UNBOUNDED, Allowance
from engine.planning.arena import Block

#: bytes that NumPy can address
_LARGEST = 1 << 62


class Storage:
    """The blocks of memory behind the nodes of a graph: one for each result that is no view.

    A view shares its operand's block, which lives as long as anything that looks at it. `is_view` and `contiguous`
    say, for each node, whether it is one, and whether it fills its block densely; `block` is the number of the block
    behind its (first) result, and `types` what rules are told of it as an operand.
    """

    def __init__(self, graph: Graph, allowance: Allowance = UNBOUNDED) -> None:
        self.graph = graph
        self.is_view: list[bool] = []
        self.contiguous: list[bool] = []
        self.block: list[int] = []
        self.types: list[ResultTypes] = []
        self._count = 0
        for node in allowance.over(graph.nodes):
            view = node.view
            if view is not None and (not view.reshapes or self.contiguous[node.operands[0]]):
                self._look(node, view)
            else:
                self._place(node)

    def _place(self, node: Node) -> None:
        """Memory of its own."""
        self.is_view.append(False)
        self.contiguous.append(True)
        self.block.append(self._count)
        self._count += len(node.types)
        self.types.append(node.types if node.op.several else node.types[0])

    def _look(self, node: Node, view: View) -> None:
        """The operand's memory."""
        self.is_view.append(True)
        self.contiguous.append(view.reshapes)
        self.block.append(self._seen(node))
        self.types.append(self._lying(node, view))

    def _seen(self, node: Node) -> int:
        """The block that a view looks at."""
        (operand,) = node.operands
        return self.block[operand] + (node.attrs["index"] if self.graph.nodes[operand].op.several else 0)

    def _lying(self, node: Node, view: View) -> TensorType:
        """The type of a view, with its strides where it is not dense."""
        operand = self.types[node.operands[0]]
        if view.reshapes or isinstance(operand, tuple):
            return node.type
        return _viewed(view, (node.type, operand), node.attrs)

    def blocks(self) -> list[Block]:
        """All blocks by number, and from which step to which they are needed; those of leaves have no bytes.

        A block is needed up to its own step, or the last one that reads it; what looks at it counts when that is read.
        """
        sizes, born, last = list[int](), list[int](), list[int]()
        block, is_view = self.block, self.is_view
        for i, (op, operands, _, types, _) in enumerate(self.graph.nodes):
            if not is_view[i]:
                for type in types:
                    sizes.append(0 if op.is_leaf else type.nbytes)
                    born.append(i)
                    last.append(i)
                for operand in operands:
                    last[block[operand]] = i
        return list(map(Block, sizes, born, last))

    def kept(self) -> list[int]:
        """The blocks behind the outputs, in their order, each once; a leaf's memory is its owner's."""
        found = dict.fromkeys(self.block[i] for i in self.graph.outputs)
        return [block for block in found if block not in self.leaves]

    @cached_property
    def leaves(self) -> frozenset[int]:
        """The blocks of the leaves."""
        return frozenset([self.block[i] for i, node in enumerate(self.graph.nodes) if node.op.is_leaf])


def _view(op: Definition, types: tuple[TensorType, TensorType], attrs: Mapping[str, Any]) -> TensorType:
    """The type of a view, as NumPy strides it; of what nobody can address, as if it were dense."""
    result, operand = types
    if max(operand.span, result.span) >= _LARGEST:
        return result
    nothing = as_strided(np.empty(1, operand.dtype), operand.shape, operand.strides)
    return Strided(result, cast("View", op).view(np, nothing, **attrs).strides)


_viewed = Memory(_view)
