"""A graph made ready to run: linear steps, each knowing what it allocates and what is dead after it.

Peak bytes and FLOPs are known here, before anything runs; a request over its budget is refused here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from engine.ir import Graph, Node, Origin
from engine.limits import NO_DEADLINE, Deadline, Limits
from engine.op import Op, Types
from engine.registry import registry
from engine.storage import Storage
from engine.tensor_type import TensorType


class Step(NamedTuple):
    """One instruction: run `op` on the slots `operands`, keep the result in slot `result`, forget `dead`."""

    op: Op
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    result: int
    types: tuple[TensorType, ...]
    is_view: bool
    dead: tuple[int, ...]
    origin: Origin | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order, and what they need. Slots are node numbers of the planned graph."""

    steps: tuple[Step, ...]
    feeds: Mapping[Hashable, int]
    results: tuple[int, ...]
    result_types: tuple[TensorType, ...]
    slots: int
    flops: int
    peak_bytes: int

    @property
    def nbytes(self) -> int:
        """Roughly what keeping the plan takes: its constants, and about 1 KiB a step."""
        arrays = (value for step in self.steps for value in step.attrs.values() if isinstance(value, np.ndarray))
        return sum(a.nbytes for a in arrays) + 1024 * len(self.steps)


def make_plan(graph: Graph, limits: Limits, deadline: Deadline = NO_DEADLINE) -> Plan:
    """The plan of an optimised graph. Raises OverBudget, DeadlineExceeded."""
    deadline.check()
    graph = _materialise(graph)
    storage, dead = Storage(graph), _last_uses(graph)
    costs = [_cost(graph, node) for node in graph.nodes]
    flops = sum(cost for cost, _ in costs)
    peak = storage.peak(dead, [workspace for _, workspace in costs])
    limits.admit_flops(flops)
    limits.admit_bytes(peak)
    steps = tuple(
        Step(n.op, n.operands, n.attrs, i, n.types, storage.is_view[i], tuple(dead.get(i, ())), n.origin)
        for i, n in enumerate(graph.nodes)
        if not n.is_leaf
    )
    types = tuple(graph.nodes[i].type for i in graph.outputs)
    return Plan(steps, graph.feeds, graph.outputs, types, len(graph.nodes), flops, peak)


def _materialise(graph: Graph) -> Graph:
    """`graph` with an `identity`, which copies what is not contiguous, on each output that is a strided view."""
    contiguous = Storage(graph).contiguous
    nodes = list(graph.nodes)
    moved: dict[int, int] = {}
    for i in graph.outputs:
        if not contiguous[i] and i not in moved:
            moved[i] = len(nodes)
            nodes.append(Node(registry().ops["identity"], (i,), {}, nodes[i].types, nodes[i].origin))
    return Graph(tuple(nodes), tuple(moved.get(i, i) for i in graph.outputs)) if moved else graph


def _cost(graph: Graph, node: Node) -> tuple[int, int]:
    """FLOPs and workspace bytes of one node."""
    if node.is_leaf:
        return 0, 0
    operands = [graph.nodes[i].types if graph.nodes[i].op.several else graph.nodes[i].type for i in node.operands]
    out: Types = node.types if node.op.several else node.type
    return node.op.flops(out, *operands, **node.attrs), node.op.workspace(out, *operands, **node.attrs)


def _last_uses(graph: Graph) -> dict[int, list[int]]:
    """For each node, the nodes whose value nobody reads after it. Outputs live on."""
    outputs = set(graph.outputs)
    last = {j: i for i, node in enumerate(graph.nodes) for j in (*node.operands, i)}
    dead: dict[int, list[int]] = {}
    for value, user in last.items():
        if value not in outputs:
            dead.setdefault(user, []).append(value)
    return dead
