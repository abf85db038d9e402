"""The links of the chain rule: each value between `wrt` and `of`, and the ops that read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.calls import Gradients
from engine.graph.ir import Builder, Node, ancestors
from engine.graph.op import NoGradient
from engine.passes.allowance import Allowance
from engine.planning.bodies import with_planned_bodies
from engine.planning.plan import Plan, make_plan
from engine.tools.peel import Peeled
from engine.tools.point import Point
from engine.transforms.vjp import vjp


@dataclass(frozen=True, eq=False)
class Reader:
    """One op on its own, in a plan that is fed its operands by their nodes; and the nodes that its results are.

    `is_step` says that it carries no derivative: where it does not change at all, there is none.
    """

    plan: Plan
    results: tuple[int, ...]
    is_step: bool


@dataclass(frozen=True)
class Links:
    """The graph of `of`, where node k of `wrt`, at `by[k]`, is offset by what is fed under ("offset", k).

    `between` is all that depends on `by`, these included, on the way to `end`, in ascending order. `readers` has the
    floats among it but the end that are looked at, and what reads each. `values` is the plan of `operands`, which is
    all that is read; `cotangents` that of the cotangents of `pulled`.
    """

    nodes: Sequence[Node]
    end: int
    by: tuple[int, ...]
    between: Sequence[int]
    readers: Mapping[int, Sequence[Reader]]
    operands: tuple[int, ...]
    values: Plan
    pulled: tuple[int, ...]
    cotangents: Plan

    @property
    def peak_bytes(self) -> int:
        """The most that is held at once, where all values and cotangents are kept."""
        values, cotangents = (sum(self.nodes[i].type.nbytes for i in kept) for kept in (self.operands, self.pulled))
        single = max((reader.plan.peak_bytes for found in self.readers.values() for reader in found), default=0)
        return values + max(self.values.peak_bytes, self.cotangents.peak_bytes, cotangents + single)

    def after(self, k: int) -> list[int]:
        """Node k of `wrt`, and what depends on it on the way to the end, in ascending order."""
        return _between(self.nodes, self.between, [self.by[k]])

    def added_up(self, errors: Mapping[int, float]) -> dict[int, float]:
        """For each of `between`, `errors` along the way from there to the end on which they add up to most."""
        most = dict.fromkeys(self.between, 0.0)
        for i in reversed(self.between):
            most[i] += errors.get(i, 0.0)
            for j in self.nodes[i].operands:
                if j in most:
                    most[j] = max(most[j], most[i])
        return most


def find_links(point: Point, call: Gradients, *, peels: bool = False) -> Links:
    """The links of `call`; with `peels`, those within what ops run. Raises EngineError."""
    builder = point.builder()
    peeled = point.peeled(builder) if peels else None
    end, by = _offset(point, call, builder, peeled)
    nodes = tuple(builder.nodes)
    between = _between(nodes, ancestors([end], lambda i: nodes[i].operands), by)
    floats = [i for i in between if nodes[i].type.is_differentiable and not nodes[i].op.several and i != end]
    operands = sorted({j for i in between for j in nodes[i].operands if not nodes[j].op.several} | {*by})
    values = point.plan(builder, [builder.value(i) for i in operands])
    one = builder.value(end).full_like(1.0)
    found = vjp(builder, [(builder.value(end), one)], [builder.value(i) for i in (*floats, end)])
    pulled = {i: g for i, g in zip((*floats, end), found, strict=True) if g is not None}
    if peeled:
        pulled |= {x: pulled[y] for x, y in peeled.alike.items() if y in pulled}
    cotangents = point.plan(builder, list(pulled.values()))
    readers = _readers(builder, nodes, between, [i for i in floats if not peeled or i not in peeled.hidden])
    links = Links(nodes, end, tuple(by), between, readers, tuple(operands), values, tuple(pulled), cotangents)
    point.limits.admit_bytes(links.peak_bytes)
    return links


def _between(nodes: Sequence[Node], among: Iterable[int], by: Iterable[int]) -> list[int]:
    """Nodes of `among`, in ascending order, that depend on `by`, and these, whether or not they are there."""
    reached = set(by)
    for i in among:
        if not reached.isdisjoint(nodes[i].operands):
            reached.add(i)
    return sorted(reached)


def _offset(point: Point, call: Gradients, builder: Builder, peeled: Peeled | None) -> tuple[int, list[int]]:
    """The graph with offsets, written into a builder: `of`, behind an `identity` that reads it; and `wrt`."""
    nodes = point.displaced(builder, call, call.wrt, lambda x, k: x + builder.leaf(x.type, ("offset", k)), peeled)
    return nodes[call.of].identity().index, [nodes[node].index for node in call.wrt]


def _readers(
    builder: Builder, nodes: Sequence[Node], between: Sequence[int], floats: Iterable[int]
) -> dict[int, list[Reader]]:
    """For each of `floats`, what reads it among `between`."""
    parts: dict[int, list[int]] = {}
    for i in between:
        if nodes[i].op.name == "get_output":
            parts.setdefault(nodes[i].operands[0], []).append(i)
    readers: dict[int, list[Reader]] = {i: [] for i in floats}
    for i in between:
        read = readers.keys() & nodes[i].operands
        if read:
            reader = _alone(builder, nodes, i, parts.get(i, [i]))
            for j in read:
                readers[j].append(reader)
    return readers


def _alone(builder: Builder, nodes: Sequence[Node], index: int, results: Sequence[int]) -> Reader:
    """One node in a graph of its own."""
    own = Builder(builder.registry, builder.limits, builder.deadline)
    operands = {i: own.leaf(nodes[i].type, i) for i in dict.fromkeys(nodes[index].operands)}
    made = own.copy(nodes[index], [operands[i] for i in nodes[index].operands])
    read = [own.copy(nodes[i], [made]) for i in results] if nodes[index].op.several else [made]
    return Reader(
        make_plan(
            with_planned_bodies(own.graph(read), own.limits, Allowance(deadline=own.deadline)), own.limits, own.deadline
        ),
        tuple(results),
        isinstance(nodes[index].op.vjp, NoGradient),
    )
