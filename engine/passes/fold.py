"""Constant folding: compute nodes on constants once, while planning; small ones only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.dtypes import has_infinities, is_complex
from engine.graph.errors import EngineError
from engine.graph.ir import Graph, Node, works
from engine.graph.kinds.typed_number import typed_number
from engine.graph.op import ResultTypes, View
from engine.graph.registry import Registry
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import HostArray
from engine.passes.allowance import UNBOUNDED, Allowance

#: no operand, result or workspace of a folded node is larger
MOST_BYTES = 1 << 16
#: nor does one take more arithmetic
MOST_FLOPS = 1 << 20
#: all results together: they live while planning, and on in the plan, outside the budget of an execution
MOST_BYTES_IN_ALL = 1 << 24

_ON_HOST = RunContext(np)


def fold(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """`graph` with nodes on constant operands replaced by constants, within MOST_BYTES and MOST_FLOPS a node, and
    MOST_BYTES_IN_ALL.

    A tensor that holds one number everywhere becomes a `full`. What a kernel refuses (an index out of range) is left
    to be refused when the graph runs, and what gives NaN or infinity to be found there.

    Where the whole graph takes more FLOPs than are allowed, nothing is folded: a plan then counts all of them. So
    what is computed here and what is left to a plan are never more together. Raises DeadlineExceeded.
    """
    foldable = _on_constants(graph, allowance)
    types: list[ResultTypes] = [node.types if node.op.several else node.types[0] for node in graph.nodes]
    if not foldable or sum([flops for flops, _ in works(allowance.over(graph.nodes), types)]) > allowance.flops:
        return graph
    nodes, values = list(graph.nodes), _Values(graph, types)
    for i in allowance.over(foldable):
        value = values.of(i)
        if value is not None:
            nodes[i] = _constant(value, nodes[i], graph.registry)
    return graph.rewritten(nodes, graph.outputs)


def _on_constants(graph: Graph, allowance: Allowance) -> list[int]:
    """The nodes that depend on constants alone and are none, in their order."""
    constant, foldable = set[int](), []
    for i, node in enumerate(allowance.over(graph.nodes)):
        if not node.operands:
            if not (node.op.is_leaf or node.op.several):
                constant.add(i)
        elif constant.issuperset(node.operands) and not node.op.several:
            constant.add(i)
            foldable.append(i)
    return foldable


class _Values:
    """Values of nodes on constants, each computed when it is first asked for; together MOST_BYTES_IN_ALL at most."""

    def __init__(self, graph: Graph, types: Sequence[ResultTypes]) -> None:
        self._graph = graph
        self._types = types
        self._known: dict[int, HostArray | None] = {}
        self._left = MOST_BYTES_IN_ALL

    def of(self, i: int) -> HostArray | None:
        """The value of a node, or None; its own and read-only, so that a plan can keep it as it is."""
        if i not in self._known:
            value = self._known[i] = self._evaluate(self._graph.nodes[i])
            self._left -= 0 if value is None else value.nbytes
        return self._known[i]

    def _evaluate(self, node: Node) -> HostArray | None:
        if node.type.nbytes > self._left or node.type.span > MOST_BYTES:
            return None
        flops, workspace = node.work(self._types)
        if flops > MOST_FLOPS or workspace > MOST_BYTES:
            return None
        operands = [value for value in map(self.of, node.operands) if value is not None]
        if len(operands) < len(node.operands):
            return None
        try:
            with np.errstate(all="ignore"):
                value = _run_node(node, operands)
                finite = not has_infinities(value.dtype) or bool(np.isfinite(value).all())
        except EngineError:
            return None
        value.flags.writeable = False
        return value if finite or not node.operands else None


def _run_node(node: Node, operands: Sequence[HostArray]) -> HostArray:
    if isinstance(node.op, View):
        return np.asarray(node.op.view(np, operands[0], **node.attrs))
    out = np.empty(node.type.shape, node.type.dtype)
    node.kernel.forward(_ON_HOST, *operands, out=out, **node.attrs)
    return out


def _constant(value: HostArray, node: Node, registry: Registry) -> Node:
    dense = np.asarray(value, order="C")
    if dense.size and not is_complex(dense.dtype) and dense.tobytes() == dense.tobytes()[: dense.itemsize] * dense.size:
        fill = typed_number(dense.flat[0].item(), dense.dtype)
        attrs: dict[str, Any] = {"shape": dense.shape, "fill": fill, "dtype": dense.dtype, "fill_as": None}
        return Node(registry.ops["full"], (), attrs, node.types, node.origin)
    return Node(registry.ops["constant"], (), {"value": dense}, node.types, node.origin)
