"""Plans: linear steps, each of which knows where its results lie and which values are dead after it.

Peak bytes and FLOPs are known here, before anything runs; a request over its budget is refused here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, cast

import numpy as np

from engine.compiler.memory_plan import Packing, Place, Storage, pack
from engine.ir.body import Body
from engine.ir.graph import Graph, Node, Origin, works
from engine.ir.inference import is_small
from engine.ir.limits import NO_DEADLINE, Deadline, Limits
from engine.ir.op import Kernel
from engine.ir.passes import Allowance
from engine.ir.registry import Registry
from engine.ir.run_report import IEEE, Precision
from engine.ir.tensor_type import HostArray, TensorType, read_only_copy

#: bytes that a step holds; attributes; the type of a result; an entry of a list; a feed: as counted in CPython
STEP_BYTES, ATTRIBUTES_BYTES, TYPE_BYTES, ENTRY_BYTES, FEED_BYTES = 330, 250, 300, 36, 500
#: and a node of a body, with those of its derivatives and steps of their plans
BODY_NODE_BYTES: Final = 250
#: digest of a plan that has none
NO_DIGEST: Final = bytes(32)


class Step(NamedTuple):
    """One instruction: run `op` on the slots `operands`, keep the result in slot `result`, forget `dead`.

    Results of `types` are written at `places`; a view has none. `flops` is what the op takes.
    """

    op: Kernel
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    result: int
    types: tuple[TensorType, ...]
    places: Sequence[Place]
    dead: tuple[int, ...]
    origin: Origin | None
    flops: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Plan:
    """Steps in order, and what they need. Slots are node numbers of the planned graph. A plan equals itself alone.

    `buffers` are the bytes of the memory that results lie in: first the arena, then one for each result that is kept.
    `peak_bytes` are these, the feeds that are read, and the largest workspace of a step; other feeds are not counted.
    `borrowed` are the positions of results that lie in the memory of a feed. Tensors among the attributes are the
    plan's own, and read-only. `digest`, 32 bytes, is the same in every process for the same request.
    `recomputed_flops`, of `flops`, are spent for want of memory. `precision` is how its products and convolutions may
    read float32 operands, if the device has a choice.
    """

    steps: tuple[Step, ...]
    feeds: Mapping[Hashable, int]
    results: tuple[int, ...]
    result_types: tuple[TensorType, ...]
    slots: int
    flops: int
    peak_bytes: int
    buffers: tuple[int, ...]
    feed_types: Mapping[Hashable, TensorType]
    borrowed: tuple[int, ...]
    digest: bytes = NO_DIGEST
    recomputed_flops: int = 0
    precision: Precision = IEEE

    @property
    def working_bytes(self) -> int:
        """The peak without what is fed."""
        return self.peak_bytes - sum(type.nbytes for type in self.feed_types.values())

    @property
    def nbytes(self) -> int:
        """Bytes that keeping the plan takes, within a factor of two: its constants, and what its steps and feeds hold.

        Steps share equal types and attributes with one another and with other plans; shared ones count for each plan.
        """
        attrs = {id(step.attrs): step.attrs for step in self.steps if step.attrs}
        types = {id(step.types): len(step.types) for step in self.steps}
        entries = sum([len(step.operands) + len(step.places) for step in self.steps])
        values = [value for each in attrs.values() for value in each.values()]
        shared = ATTRIBUTES_BYTES * len(attrs) + sum(map(_attribute_bytes, values)) + TYPE_BYTES * sum(types.values())
        # All nodes that were written for the requests that these bodies were made for: they hold one another.
        shared += BODY_NODE_BYTES * sum(budget.spent for budget in {x.budget for x in values if isinstance(x, Body)})
        return STEP_BYTES * len(self.steps) + ENTRY_BYTES * entries + shared + FEED_BYTES * len(self.feeds)


def make_plan(graph: Graph, limits: Limits, deadline: Deadline = NO_DEADLINE, *, tight: bool = False) -> Plan:
    """Plan an optimised graph; `tight`: in as little memory as is found. Raises OverBudget, DeadlineExceeded."""
    allowance = Allowance(deadline=deadline)
    storage = _materialised(Storage(graph, allowance), allowance)
    graph, feeds = storage.graph, storage.graph.feeds
    flops, workspace = _costs(storage, allowance)
    limits.admit_flops(sum(flops))
    packing = pack(storage.blocks(), storage.kept(), allowance, tight=tight)
    peak = sum(graph.nodes[i].type.nbytes for i in feeds.values()) + packing.nbytes + workspace
    limits.admit_peak(peak)
    return Plan(
        steps=_steps(storage, packing, flops, allowance),
        feeds=feeds,
        results=graph.outputs,
        result_types=tuple(graph.nodes[i].type for i in graph.outputs),
        slots=len(graph.nodes),
        flops=sum(flops),
        peak_bytes=peak,
        buffers=packing.buffers,
        feed_types={feed: graph.nodes[i].type for feed, i in feeds.items()},
        borrowed=tuple(k for k, i in enumerate(graph.outputs) if storage.block[i] in storage.leaves),
    )


def standing_for(substitute: Plan, plan: Plan) -> Plan:
    """Give a plan that runs in the place of another the digest and the precision of that."""
    return replace(substitute, digest=plan.digest, precision=plan.precision)


def graph_of(plan: Plan, registry: Registry) -> Graph:
    """Restore the graph that a plan was made of."""
    nodes: list[Node | None] = [None] * plan.slots
    for feed, slot in plan.feeds.items():
        nodes[slot] = Node(registry.ops["input"], (), {"feed": feed}, (plan.feed_types[feed],))
    for step in plan.steps:
        nodes[step.result] = Node(step.op, step.operands, step.attrs, step.types, step.origin)
    return Graph(tuple(node for node in nodes if node is not None), plan.results, registry)


def _materialised(storage: Storage, allowance: Allowance) -> Storage:
    """Append an `identity`, which copies, to each output that is a strided view."""
    graph = storage.graph
    nodes = list(graph.nodes)
    moved: dict[int, int] = {}
    for i in graph.outputs:
        if not storage.contiguous[i] and i not in moved:
            moved[i] = len(nodes)
            nodes.append(Node(graph.registry.ops["identity"], (i,), {}, nodes[i].types, nodes[i].origin))
    outputs = [moved.get(i, i) for i in graph.outputs]
    return Storage(graph.rewritten(nodes, outputs), allowance) if moved else storage


def _costs(storage: Storage, allowance: Allowance) -> tuple[list[int], int]:
    """Count the FLOPs of each node, and the workspace: that of bodies, and the largest of all other workspaces."""
    nodes = storage.graph.nodes
    costs = works(allowance.over(nodes), storage.types)
    inner = {plan for node in nodes for plan in node.op.runs}
    passing = [space - sum([x.working_bytes for x in n.op.runs]) for n, (_, space) in zip(nodes, costs, strict=True)]
    return [flops for flops, _ in costs], sum([plan.working_bytes for plan in inner]) + max(passing, default=0)


def _steps(storage: Storage, packing: Packing, flops: Sequence[int], allowance: Allowance) -> tuple[Step, ...]:
    dead, steps = _last_uses(storage.graph), list[Step]()
    listed: dict[tuple[Place, ...], tuple[Place, ...]] = {}  # equal lists of places are one object
    block, is_view, places = storage.block, storage.is_view, packing.places
    for i, (op, operands, attrs, types, origin) in enumerate(allowance.over(storage.graph.nodes)):
        if not op.is_leaf:
            first = block[i]
            written = () if is_view[i] else tuple(places[first : first + len(types)])
            written, gone = listed.setdefault(written, written), tuple(dead.get(i, ()))
            own = _own(attrs) if attrs else attrs
            steps.append(Step._make((cast("Kernel", op), operands, own, i, types, written, gone, origin, flops[i])))
    return tuple(steps)


def _own(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy the tensors of `attrs` that somebody else holds or could write to.

    A view would keep the memory that it looks into: for a constant of three numbers, the body of its request. A tensor
    that owns its memory and is read-only, as folding leaves it, is not copied.
    """
    if is_small(attrs) or not any(isinstance(value, np.ndarray) for value in attrs.values()):
        return attrs
    return {name: _owned(value) if isinstance(value, np.ndarray) else value for name, value in attrs.items()}


def _owned(array: HostArray) -> HostArray:
    return array if array.flags.owndata and not array.flags.writeable else read_only_copy(array)


def _attribute_bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return ENTRY_BYTES * len(value) if isinstance(value, tuple) else 0


def _last_uses(graph: Graph) -> dict[int, list[int]]:
    """List for each node the nodes whose value nobody reads after it. Outputs live on."""
    last = list(range(len(graph.nodes)))
    for i, (_, operands, *_) in enumerate(graph.nodes):
        for operand in operands:
            last[operand] = i
    dead: dict[int, list[int]] = {}
    outputs = set(graph.outputs)
    for value, user in enumerate(last):
        if value not in outputs:
            if user in dead:
                dead[user].append(value)
            else:
                dead[user] = [value]
    return dead
