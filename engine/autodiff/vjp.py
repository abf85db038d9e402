"""Reverse mode: cotangents travel from outputs back to the nodes asked for, each op emitting its own rule.

`vjp` marks the nodes that lie between outputs and `wrt`, then visits these from the last to the first. At each it has
the sum of all cotangents that arrived, lets the op's rule emit the cotangents of the operands, and adds these to what
is there. Of y = Σ exp(x · w), with the seed g = 1 and `wrt` = [w]:

    %0 = input {"feed": 0}    x
    %1 = input {"feed": 1}    w
    %2 = mul(%0, %1)          visited third:  %8 · %1 for x, which is not asked for, and %8 · %0 for w: the gradient
    %3 = exp(%2)              visited second: %8 = %7 · %3, the cotangent of %2
    %4 = sum(%3)              visited first:  %7 = g broadcast to the shape of %3, the cotangent of %3

A gradient is again a graph, so that `grad` nodes within a graph are written out by the same function (`expand_grad`),
and gradients of gradients follow. Rules read types and attributes only: what a rule wrote once is kept as a `Tape`, and
copied for every node that repeats the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple, cast

from engine.ir.errors import EngineError, counted
from engine.ir.graph import Builder, Graph, Node, Origin, RuleCache, Value, for_dtype, is_small
from engine.ir.op import Definition, Op, Registry
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Deadline, Limits
from engine.ir.verify import MalformedGraph

#: nodes that a rule writes, beyond which it is run each time
LONGEST_TAPE: Final = 64


class Tape(NamedTuple):
    """Recording of what a rule writes, for operands numbered from 0: the cotangent, the result, the op's operands.

    `gradients` has the number of each operand's cotangent, None if there is none. `rank` and `span` are the largest of
    the recorded nodes.
    """

    nodes: tuple[Node, ...]
    gradients: tuple[int | None, ...]
    rank: int
    span: int

    def is_admitted(self, builder: Builder) -> bool:
        """Whether all of it is within a builder's limits."""
        limits = builder.limits
        count = len(builder.nodes) + len(self.nodes)
        return count <= limits.nodes and self.rank <= limits.rank and self.span <= limits.bytes

    def write_rule(self, builder: Builder, read: Sequence[int]) -> list[Value | None]:
        """Append it, on the nodes `read`: cotangent, result, operands. Return the cotangents of the operands."""
        nodes, origin, numbers = builder.nodes, builder.origin, [*read]
        for op, operands, attrs, types, _ in self.nodes:
            numbers.append(len(nodes))
            nodes.append(Node._make((op, tuple(map(numbers.__getitem__, operands)), attrs, types, origin)))
        return [None if i is None else builder.value(numbers[i]) for i in self.gradients]


def _record(op: Definition, told: tuple[Any, ...], attrs: Mapping[str, Any]) -> Tape | None:
    """Record an op's rule; None if it has to run each time, since it writes much, or fails."""
    registry, rule, y, *operands = told
    if not isinstance(op, Op):
        return None
    builder = Builder(cast("Registry", registry), NO_LIMITS)
    read = [builder.leaf(type, number) for number, type in enumerate((y, y, *operands))]
    try:
        gradients = rule(*read, **attrs)
    except EngineError:
        return None
    nodes = tuple(builder.nodes[len(read) :])
    plain = isinstance(gradients, (tuple, list)) and all(g is None or isinstance(g, Value) for g in gradients)
    if (
        not plain
        or len(gradients) != len(operands)
        or len(nodes) > LONGEST_TAPE
        or not all(is_small(node.attrs) for node in nodes)
    ):
        return None
    types = [type for node in nodes for type in node.types]
    return Tape(
        nodes,
        tuple([None if g is None else g.index for g in gradients]),
        max((type.ndim for type in types), default=0),
        max((type.span for type in types), default=0),
    )


#: for an op, told of: the registry, its rule, and the types of its result and operands
tape_of: Final = RuleCache(_record)


class Tapes:
    """The tapes of a builder's nodes.

    Nodes that say the same share their attributes and types, as objects: most are told by these, without a look into
    them.
    """

    def __init__(self, builder: Builder) -> None:
        self._nodes, self._registry = builder.nodes, builder.registry
        self._known: dict[tuple[int, ...], Tape | None] = {}

    def of(self, node: Node) -> Tape | None:
        """The tape of a node of one result; None where its rule is to be run."""
        nodes = self._nodes
        told = (id(node.op), id(node.attrs), id(node.types), *[id(nodes[i].types) for i in node.operands])
        if told in self._known:
            return self._known[told]
        types = [nodes[i].types[0] for i in node.operands]
        tape = tape_of(node.op, (self._registry, node.op.vjp, node.types[0], *types), node.attrs)
        self._known[told] = tape
        return tape


#: whether a node depends differentiably on one of those that gradients are taken by, as far as that was asked
Dependence = dict[int, bool]


def vjp(
    builder: Builder, seeds: Iterable[tuple[Value, Value]], wrt: Sequence[Value], known: Dependence | None = None
) -> list[Value | None]:
    """Append the gradient of Σ sum(output · cotangent) over `seeds` with respect to each node of `wrt`.

    Every node counts as itself: paths through another node that computes the same do not contribute. A node without
    a path to any output has None; the others a value of their own type. Nodes on no path cost nothing: they are looked
    at once, and where several sweeps by the same `wrt` share what is `known`, once for all of them.
    """
    builder.deadline.check()
    seeds, targets, known = list(seeds), {x.index for x in wrt}, {} if known is None else known
    _explore(builder.nodes, [output.index for output, _ in seeds], targets, known)
    cotangents = Cotangents(builder, known)
    for output, cotangent in seeds:
        cotangents.add(output.index, cotangent)
    gradients: dict[int, Value | None] = {}
    origin, tapes = builder.origin, Tapes(builder)
    # Nodes are visited from the last to the first. What reads a node comes behind it in the list, so that all of its
    # cotangents have arrived when its turn comes. What rules append stands behind all of these, and is not visited.
    for index, arrived in cotangents:
        if index in targets:
            gradients[index] = arrived[0]
        _pull_back(builder, index, arrived, cotangents, tapes)
    builder.origin = origin
    return [gradients.get(x.index) for x in wrt]


def vjp_or_zeros(builder: Builder, seeds: Iterable[tuple[Value, Value]], wrt: Sequence[Value]) -> list[Value]:
    """Append `vjp`, with zeros for nodes without a path."""
    return or_zeros(wrt, vjp(builder, seeds, wrt))


def or_zeros(like: Sequence[Value], gradients: Sequence[Value | None]) -> list[Value]:
    """Replace None by zeros like the node."""
    return [x.full_like(0.0) if g is None else g for x, g in zip(like, gradients, strict=True)]


def _explore(nodes: Sequence[Node], outputs: Iterable[int], targets: set[int], known: Dependence) -> None:
    """Write into `known` which nodes lie between `targets` and `outputs`."""
    first = min(targets, default=len(nodes))
    reached, todo = list[int](), list(outputs)
    while todo:
        index = todo.pop()
        if index >= first and index not in known:
            known[index] = False
            reached.append(index)
            todo += _differentiable_operands(nodes[index])
    # Operands come first, so that what is known of them decides for the nodes that read them.
    for index in sorted(reached):
        known[index] = index in targets or any(map(known.get, _differentiable_operands(nodes[index])))


def _differentiable_operands(node: Node) -> Sequence[int]:
    if not node.operands or not node.op.is_differentiable:
        return ()
    types = node.types
    return node.operands if types[0].is_differentiable or any(type.is_differentiable for type in types) else ()


class Cotangents:
    """Cotangents that have arrived, by node: iterated from the last node to the first, each with the sums of its own.

    A node comes once all nodes that read it have been visited. Nodes on no path are never visited.
    """

    def __init__(self, builder: Builder, known: Dependence) -> None:
        self._nodes = builder.nodes
        self._known = known
        self._arrived: dict[int, dict[int, Value]] = {}
        self._next: list[int] = []  # a heap of numbers of nodes, negated

    def add(self, index: int, g: Value, result: int = 0, by: int | None = None) -> None:
        """`g` arrives at a result of a node, in whose dtype it is added to what is there.

        Raises MalformedGraph where the rule of node `by` errs in shape.
        """
        type = self._nodes[index].types[result]
        if g.type is not type:
            if g.type.shape != type.shape:
                if by is None:
                    raise MalformedGraph(f"it is given a cotangent of {g.type}", index, self._nodes[index])
                wrong = f"its rule gives %{index} : {type} a cotangent of {g.type}"
                raise MalformedGraph(wrong, by, self._nodes[by])
            g = for_dtype(g, type)
        there = self._arrived.get(index)
        if there is None:
            self._arrived[index] = {result: g}
            if self._known.get(index):
                heappush(self._next, -index)
        else:
            there[result] = there[result] + g if result in there else g

    def __iter__(self) -> Iterator[tuple[int, list[Value | None]]]:
        """Each node, and what has arrived at each of its results."""
        while self._next:
            index = -heappop(self._next)
            there = self._arrived.pop(index)
            yield index, [there.get(k) for k in range(len(self._nodes[index].types))]


def _pull_back(
    builder: Builder, index: int, arrived: Sequence[Value | None], cotangents: Cotangents, tapes: Tapes
) -> None:
    """Move the cotangents of a node to its operands."""
    node = builder.nodes[index]
    if not _differentiable_operands(node):
        return
    origin = node.origin
    builder.origin = origin and Origin(origin.node, origin.op, True, origin.function, origin.inner)
    for i, g in zip(node.operands, _gradients(builder, index, node, arrived, tapes), strict=True):
        if isinstance(g, Value):
            if builder.nodes[i].types[0].is_differentiable:
                cotangents.add(i, g, 0, index)
        elif g is not None:
            for k, part in g.items():
                if part is not None and builder.nodes[i].types[k].is_differentiable:
                    cotangents.add(i, part, k, index)


def _gradients(
    builder: Builder, index: int, node: Node, arrived: Sequence[Value | None], tapes: Tapes
) -> Sequence[Any]:
    """Write what the rule of a node gives: copied, if it has a tape. What arrives is of the type of its result."""
    g = arrived[0]
    if not node.op.several:
        assert g is not None
        tape = tapes.of(node)
        if tape is not None and tape.is_admitted(builder):
            return tape.write_rule(builder, (g.index, index, *node.operands))
    y, operands = builder.value(index), [builder.value(i) for i in node.operands]
    gradients = node.rules.vjp(tuple(arrived) if node.op.several else g, y, *operands, **node.attrs)
    _check_rule(gradients, index, node)
    return gradients


def _check_rule(gradients: Any, index: int, node: Node) -> None:
    """Raise MalformedGraph unless the rule of a node gives a value, several of them or None for each operand."""
    if not isinstance(gradients, (tuple, list, Sequence)):  # the first two, since these are quick to tell
        raise MalformedGraph(f"its rule gives a {type(gradients).__name__}, not a sequence of values", index, node)
    if len(gradients) != len(node.operands):
        given, wanted = counted(len(gradients), "cotangent"), counted(len(node.operands), "operand")
        raise MalformedGraph(f"its rule gives {given} for {wanted}", index, node)
    for i, g in enumerate(gradients):
        if g is not None and not isinstance(g, (Value, Mapping)):
            raise MalformedGraph(f"its rule gives operand {i} a {type(g).__name__}, not a value", index, node)


def expand_grad(graph: Graph, limits: Limits | None = None, deadline: Deadline = NO_DEADLINE) -> Graph:
    """Write out the `grad` nodes of a graph, inner ones first: before any other transform.

    The result of each stands behind an `identity` of its own: were it the very node that the rule ended on (the
    gradient of `x·w` by `x` is `w`), a later derivative by the one would take in the other.
    """
    if not any(node.op.name == "grad" for node in graph.nodes):
        return graph
    builder = Builder(graph.registry, limits or Limits(), deadline)

    def written_out(node: Node, operands: Sequence[Value]) -> Value | None:
        if node.op.name != "grad":
            return None
        y, x, *seeds = operands
        seed = seeds[0] if seeds else y.full_like(1.0)
        (gradient,) = vjp_or_zeros(builder, [(y, seed)], [x])
        return gradient.identity()

    return builder.rewrite(graph, written_out)
