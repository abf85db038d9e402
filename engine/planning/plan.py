"""A graph made ready to run: linear steps, each knowing where its results lie and what is dead after it.

Peak bytes and FLOPs are known here, before anything runs; a request over its budget is refused here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from engine.graph.ir import Graph, Node, Origin
from engine.graph.limits import NO_DEADLINE, Deadline, Limits
from engine.graph.op import Kernel, ResultTypes
from engine.graph.tensor_type import TensorType
from engine.planning.arena import Packing, Place, pack
from engine.planning.storage import Storage


class Step(NamedTuple):
    """One instruction: run `op` on the slots `operands`, keep the result in slot `result`, forget `dead`.

    Results of `types` are written at `places`; a view has none.
    """

    op: Kernel
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    result: int
    types: tuple[TensorType, ...]
    places: Sequence[Place]
    dead: tuple[int, ...]
    origin: Origin | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order, and what they need. Slots are node numbers of the planned graph.

    `buffers` are the bytes of the memory that results lie in: first the arena, then one for each result that is kept.
    `peak_bytes` are these, the feeds that are read, and the largest workspace of a step. What was fed besides is the
    request's, and not counted.
    """

    steps: tuple[Step, ...]
    feeds: Mapping[Hashable, int]
    results: tuple[int, ...]
    result_types: tuple[TensorType, ...]
    slots: int
    flops: int
    peak_bytes: int
    buffers: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Roughly what keeping the plan takes: its constants, and about 1 KiB a step."""
        arrays = (value for step in self.steps for value in step.attrs.values() if isinstance(value, np.ndarray))
        return sum(a.nbytes for a in arrays) + 1024 * len(self.steps)


def make_plan(graph: Graph, limits: Limits, deadline: Deadline = NO_DEADLINE) -> Plan:
    """The plan of an optimised graph. Raises OverBudget, DeadlineExceeded."""
    deadline.check()
    storage = _materialised(Storage(graph))
    graph = storage.graph
    costs = [cost(storage, node) for node in graph.nodes]
    flops = sum(flops for flops, _ in costs)
    limits.admit_flops(flops)
    packing = pack(storage.blocks(), storage.kept())
    feeds = sum(node.type.nbytes for node in graph.nodes if node.is_leaf)
    peak = feeds + packing.nbytes + max((workspace for _, workspace in costs), default=0)
    limits.admit_bytes(peak)
    types = tuple(graph.nodes[i].type for i in graph.outputs)
    steps = _steps(storage, packing)
    return Plan(steps, graph.feeds, graph.outputs, types, len(graph.nodes), flops, peak, packing.buffers)


def _materialised(storage: Storage) -> Storage:
    """The same with an `identity`, which copies what is not contiguous, on each output that is a strided view."""
    graph = storage.graph
    nodes = list(graph.nodes)
    moved: dict[int, int] = {}
    for i in graph.outputs:
        if not storage.contiguous[i] and i not in moved:
            moved[i] = len(nodes)
            nodes.append(Node(graph.registry.ops["identity"], (i,), {}, nodes[i].types, nodes[i].origin))
    return Storage(graph.rewritten(nodes, (moved.get(i, i) for i in graph.outputs))) if moved else storage


def cost(storage: Storage, node: Node) -> tuple[int, int]:
    """FLOPs and workspace bytes of one node."""
    if node.is_leaf:
        return 0, 0
    operands = [storage.types[i] for i in node.operands]
    out: ResultTypes = node.types if node.op.several else node.type
    return node.kernel.flops(out, *operands, **node.attrs), node.kernel.workspace(out, *operands, **node.attrs)


def _steps(storage: Storage, packing: Packing) -> tuple[Step, ...]:
    dead = _last_uses(storage.graph)
    return tuple(
        Step(n.kernel, n.operands, n.attrs, i, n.types, _places(storage, packing, i), tuple(dead.get(i, ())), n.origin)
        for i, n in enumerate(storage.graph.nodes)
        if not n.is_leaf
    )


def _places(storage: Storage, packing: Packing, i: int) -> Sequence[Place]:
    """Where the results of a node lie; nowhere of their own, if it is a view."""
    first, count = storage.block[i], len(storage.graph.nodes[i].types)
    return () if storage.is_view[i] else packing.places[first : first + count]


def _last_uses(graph: Graph) -> dict[int, list[int]]:
    """For each node, the nodes whose value nobody reads after it. Outputs live on."""
    outputs = set(graph.outputs)
    last = {j: i for i, node in enumerate(graph.nodes) for j in (*node.operands, i)}
    dead: dict[int, list[int]] = {}
    for value, user in last.items():
        if value not in outputs:
            dead.setdefault(user, []).append(value)
    return dead
