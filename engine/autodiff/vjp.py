"""Reverse mode: cotangents flow from the outputs back to the nodes in `wrt`, and each op's rule emits its own step.

`vjp` first marks the nodes that lie on a path from `wrt` to an output. Then it visits these nodes in descending order.
At each node it sums the incoming cotangents, lets the op's rule emit the cotangents of the operands, and adds those to
the operands' sums. For y = Σ exp(x · w), with the seed g = 1 and `wrt` = [w]:

    %0 = input {"feed": 0}    x
    %1 = input {"feed": 1}    w
    %2 = mul(%0, %1)          visited third:  %8 · %1 for x (dropped: x is not in `wrt`), %8 · %0 for w: the gradient
    %3 = exp(%2)              visited second: %8 = %7 · %3, the cotangent of %2
    %4 = sum(%3)              visited first:  %7 = g broadcast to the shape of %3, the cotangent of %3

The gradient is appended to the same graph as ordinary nodes. So `expand_grad` can write out `grad` nodes within a graph
with the same function, and gradients of gradients need no extra code.

Some rules leave elements out: `where` passes g to the elements that it has selected, and zero to the others. A local
derivative may be infinite there, and 0 · ∞ is NaN. So a cotangent can have a *support*, a bool outside of which it is
zero by selection, and what is outside of it stays zero (see `engine.ops.common.support`). A cotangent that is zero by
value has none: at 0, the derivative of exp(log(x)) is 0 · ∞ as well, but 1.

Rules see types and attributes only, never elements. Therefore the nodes that a rule emits are recorded once as a `Tape`
and replayed for every later node with the same op, types and attributes: deep networks repeat few distinct nodes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import zip_longest
from typing import Any, Final, NamedTuple, cast

from engine.autodiff.past import OUTER, pull_back_past
from engine.ir.errors import EngineError, counted
from engine.ir.graph import Builder, Graph, Node, Origin, RuleCache, Value, cast_cotangent, is_small
from engine.ir.op import Definition, Op, Registry, Support
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Deadline, Limits
from engine.ir.verify import MalformedGraph

#: maximum number of nodes in a tape; a rule that emits more runs each time
LONGEST_TAPE: Final = 64


class Tape(NamedTuple):
    """Recorded output of a rule, with inputs numbered from 0: the cotangent, the result, then the op's operands.

    `gradients` holds the number of each operand's cotangent, or None. `rank` and `span` are the maxima over the
    recorded nodes.
    """

    nodes: tuple[Node, ...]
    gradients: tuple[int | None, ...]
    rank: int
    span: int

    def is_admitted(self, builder: Builder) -> bool:
        """Return whether replaying the tape stays within a builder's limits."""
        limits = builder.limits
        count = len(builder.nodes) + len(self.nodes)
        return count <= limits.nodes and self.rank <= limits.rank and self.span <= limits.bytes

    def write_rule(self, builder: Builder, inputs: Sequence[int]) -> list[Value | None]:
        """Append the tape on the nodes `inputs`: cotangent, result, operands. Return the operands' cotangents."""
        # The nodes bypass `Builder.append`: their types are known, and `is_admitted` has checked all limits at once.
        nodes, origin, numbers = builder.nodes, builder.origin, [*inputs]
        for op, operands, attrs, types, _ in self.nodes:
            numbers.append(len(nodes))
            nodes.append(Node._make((op, tuple(map(numbers.__getitem__, operands)), attrs, types, origin)))
        return [None if i is None else builder.value(numbers[i]) for i in self.gradients]


def _record(op: Definition, signature: tuple[Any, ...], attrs: Mapping[str, Any]) -> Tape | None:
    """Record an op's rule. Return None if the rule must run each time: it emits many nodes, or raises."""
    registry, rule, y, *operands = signature
    if not isinstance(op, Op):
        return None
    builder = Builder(cast("Registry", registry), NO_LIMITS)
    # Run the rule on leaves for the cotangent (which has the type of the result), the result and the operands.
    leaves = [builder.leaf(type, number) for number, type in enumerate((y, y, *operands))]
    try:
        gradients = rule(*leaves, **attrs)
    except EngineError:
        return None
    nodes = tuple(builder.nodes[len(leaves) :])
    # An invalid rule, or one that returns mappings for operands with several results, runs each time, so that
    # `_check_rule` reports errors with the node. Large attributes would keep tensors alive in the process-wide cache.
    is_valid = isinstance(gradients, (tuple, list)) and all(g is None or isinstance(g, Value) for g in gradients)
    if (
        not is_valid
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


#: tapes by op and (registry, rule, result type, operand types)
tape_of: Final = RuleCache(_record)


class Tapes:
    """Tapes of a builder's nodes.

    Repeated nodes share their attribute and type objects, so most lookups compare object ids only.
    """

    def __init__(self, builder: Builder) -> None:
        self._nodes, self._registry = builder.nodes, builder.registry
        self._by_identity: dict[tuple[int, ...], Tape | None] = {}

    def get(self, node: Node) -> Tape | None:
        """Return the tape of a node with one result, or None if its rule must run."""
        nodes = self._nodes
        # Ids are unique here: the builder's nodes keep these objects alive for as long as this cache exists.
        identity = (id(node.op), id(node.attrs), id(node.types), *[id(nodes[i].types) for i in node.operands])
        if identity in self._by_identity:
            return self._by_identity[identity]
        types = [nodes[i].types[0] for i in node.operands]
        tape = tape_of(node.op, (self._registry, node.op.vjp, node.types[0], *types), node.attrs)
        self._by_identity[identity] = tape
        return tape


#: cache: whether a node depends differentiably on one of `wrt`, for the nodes explored so far
Dependence = dict[int, bool]


def vjp(
    builder: Builder, seeds: Iterable[tuple[Value, Value]], wrt: Sequence[Value], dependence: Dependence | None = None
) -> list[Value | None]:
    """Append the gradient of Σ sum(output · cotangent) over `seeds` with respect to each node in `wrt`.

    Every node counts as itself: a path through another node that computes the same value does not contribute. A node
    without a path to any output gets None; the others get a value of their own type. Nodes on no path cost one look;
    sweeps with the same `wrt` can share that work by passing the same `dependence`.
    """
    builder.deadline.check()
    seeds, targets, dependence = list(seeds), {x.index for x in wrt}, {} if dependence is None else dependence
    _explore(builder.nodes, [output.index for output, _ in seeds], targets, dependence)
    cotangents = Cotangents(builder, dependence)
    for output, cotangent in seeds:
        cotangents.add(output.index, cotangent)
    gradients: dict[int, Value | None] = {}
    origin, tapes = builder.origin, Tapes(builder)
    # Nodes are visited in descending order. A node's readers come later in the list, so all of its cotangents have
    # been added by its turn. The nodes that rules append come after all of these, and are never visited.
    for index, incoming in cotangents:
        if index in targets:
            gradients[index] = incoming[0]
        _pull_back(builder, index, incoming, cotangents, tapes, targets)
    builder.origin = origin
    return [gradients.get(x.index) for x in wrt]


def vjp_or_zeros(builder: Builder, seeds: Iterable[tuple[Value, Value]], wrt: Sequence[Value]) -> list[Value]:
    """Append `vjp`, with zeros for nodes without a path."""
    return or_zeros(wrt, vjp(builder, seeds, wrt))


def or_zeros(values: Sequence[Value], gradients: Sequence[Value | None]) -> list[Value]:
    """Replace None with zeros like the node."""
    return [x.full_like(0.0) if g is None else g for x, g in zip(values, gradients, strict=True)]


def _explore(nodes: Sequence[Node], outputs: Iterable[int], targets: set[int], dependence: Dependence) -> None:
    """Record in `dependence` which nodes lie between `targets` and `outputs`."""
    # Nodes before the first target cannot depend on a target, so the search stops there.
    first = min(targets, default=len(nodes))
    reached, todo = list[int](), list(outputs)
    while todo:
        index = todo.pop()
        if index >= first and index not in dependence:
            dependence[index] = False
            reached.append(index)
            todo += _differentiable_operands(nodes[index])
    # In ascending order, the operands of a node are decided before the node itself.
    for index in sorted(reached):
        dependence[index] = index in targets or any(map(dependence.get, _differentiable_operands(nodes[index])))


def _differentiable_operands(node: Node) -> Sequence[int]:
    if not node.operands or not node.op.is_differentiable:
        return ()
    types = node.types
    return node.operands if types[0].is_differentiable or any(type.is_differentiable for type in types) else ()


class Cotangents:
    """Sums of incoming cotangents by node. Iterates in descending order of nodes.

    A node is yielded after all of its readers have been visited. Nodes on no path are never yielded.
    """

    def __init__(self, builder: Builder, dependence: Dependence) -> None:
        self._nodes = builder.nodes
        self._dependence = dependence
        self._sums: dict[int, dict[int, Value]] = {}
        #: supports of these sums, if all of their terms have one
        self._supports: dict[tuple[int, int], Support] = {}
        self._queue: list[int] = []  # heap of negated node numbers: heapq yields the smallest first

    def add(
        self, index: int, g: Value, result: int = 0, source: int | None = None, support: Support | None = None
    ) -> None:
        """Add `g` to the sum for a result of a node, in that result's dtype; `support`: where it may not be zero.

        Raises MalformedGraph if the rule of node `source` emitted a wrong shape.
        """
        type = self._nodes[index].types[result]
        # Types are mostly shared objects, so compare identities first. A rule may emit another dtype: in a product of
        # float32 and float64, the float32 operand's cotangent is float64. It must be cast to the operand's dtype.
        if g.type is not type:
            if g.type.shape != type.shape:
                if source is None:
                    raise MalformedGraph(f"it is given a cotangent of {g.type}", index, self._nodes[index])
                detail = f"its rule gives %{index} : {type} a cotangent of {g.type}"
                raise MalformedGraph(detail, source, self._nodes[source])
            g = cast_cotangent(g, type)
        sums = self._sums.get(index)
        if support is not None and (sums is None or result not in sums):
            self._supports[index, result] = support
        elif (index, result) in self._supports:
            known = self._supports.pop((index, result))
            if support is not None:
                self._supports[index, result] = known.union(support)
        if sums is None:
            self._sums[index] = {result: g}
            if self._dependence.get(index):
                heappush(self._queue, -index)
        else:
            sums[result] = sums[result] + g if result in sums else g

    def supports(self, index: int) -> list[Support | None] | None:
        """Return the support of each result's cotangent; None if there are none."""
        if not self._supports:
            return None
        found = [self._supports.pop((index, k), None) for k in range(len(self._nodes[index].types))]
        return found if any(found) else None

    def __iter__(self) -> Iterator[tuple[int, list[Value | None]]]:
        """Yield each node with the cotangent of each of its results."""
        while self._queue:
            index = -heappop(self._queue)
            sums = self._sums.pop(index)
            yield index, [sums.get(k) for k in range(len(self._nodes[index].types))]


def _pull_back(
    builder: Builder,
    index: int,
    incoming: Sequence[Value | None],
    cotangents: Cotangents,
    tapes: Tapes,
    targets: Container[int],
) -> None:
    """Propagate the cotangents of a node to its operands."""
    node, supports = builder.nodes[index], cotangents.supports(index)
    if not _differentiable_operands(node):
        return
    origin = node.origin
    # Attribute what the rule emits to the client's node, marked as backward, for messages and for FLOP counts.
    builder.origin = origin and Origin(origin.node, origin.op, True, origin.function, origin.inner)
    if node.op.name in OUTER and (g := incoming[0]) is not None:
        past = pull_back_past(builder, index, g, None if supports is None else supports[0], targets)
        if past is not None:
            cotangents.add(past.node, past.cotangent, 0, index, past.support)
            return
    gradients, kept = _gradients(builder, index, node, incoming, supports, tapes)
    for i, g, support in zip_longest(node.operands, gradients, kept):
        if isinstance(g, Value):
            if builder.nodes[i].types[0].is_differentiable:
                cotangents.add(i, g, 0, index, support)
        # The operand has several results: the rule returned a cotangent for some of them.
        elif g is not None:
            for k, part in g.items():
                if part is not None and builder.nodes[i].types[k].is_differentiable:
                    cotangents.add(i, part, k, index, support)


def _gradients(
    builder: Builder,
    index: int,
    node: Node,
    incoming: Sequence[Value | None],
    supports: Sequence[Support | None] | None,
    tapes: Tapes,
) -> tuple[Sequence[Any], Sequence[Support | None]]:
    """Emit the gradients of a node: replay its tape, or run its rule. `incoming` matches the types of its results.

    Return the supports of the gradients, too, if they have any.
    """
    g, leaves_out = incoming[0], node.op.selects and node.op.leaves_out(builder.nodes, node.operands)
    if not node.op.several and supports is None and not leaves_out:
        assert g is not None
        # Replaying a tape skips the rule, and the type inference of each node that the rule emits.
        tape = tapes.get(node)
        if tape is not None and tape.is_admitted(builder):
            return tape.write_rule(builder, (g.index, index, *node.operands)), ()
    y, operands = builder.value(index), [builder.value(i) for i in node.operands]
    kept: Sequence[Support | None] = ()
    if supports is None and not leaves_out:
        gradients = node.rules.vjp(tuple(incoming) if node.op.several else g, y, *operands, **node.attrs)
    else:
        gradients, kept = node.op.supported_vjp(incoming, supports, y, *operands, **node.attrs)
    _check_rule(gradients, index, node)
    return gradients, kept


def _check_rule(gradients: Any, index: int, node: Node) -> None:
    """Raise MalformedGraph unless a rule gives one value, mapping of values or None for each operand."""
    if not isinstance(gradients, (tuple, list, Sequence)):  # tuple and list first: the abstract class is slow to check
        raise MalformedGraph(f"its rule gives a {type(gradients).__name__}, not a sequence of values", index, node)
    if len(gradients) != len(node.operands):
        actual, expected = counted(len(gradients), "cotangent"), counted(len(node.operands), "operand")
        raise MalformedGraph(f"its rule gives {actual} for {expected}", index, node)
    for i, g in enumerate(gradients):
        if g is not None and not isinstance(g, (Value, Mapping)):
            raise MalformedGraph(f"its rule gives operand {i} a {type(g).__name__}, not a value", index, node)


def expand_grad(graph: Graph, limits: Limits | None = None, deadline: Deadline = NO_DEADLINE) -> Graph:
    """Write out the `grad` nodes of a graph, inner ones first. Must run before any other transform.

    Each result gets its own `identity`. A rule may return an existing node as the gradient (the gradient of `x·w` with
    respect to `x` is `w`), and a later derivative with respect to that gradient must not include other uses of `w`.
    """
    if not any(node.op.name == "grad" for node in graph.nodes):
        return graph
    builder = Builder(graph.registry, limits or Limits(), deadline)

    def expand(node: Node, operands: Sequence[Value]) -> Value | None:
        if node.op.name != "grad":
            return None
        y, x, *seeds = operands
        # A `grad` node has the operands y, x and optionally the cotangent of y, which is 1 for a scalar y.
        seed = seeds[0] if seeds else y.full_like(1.0)
        (gradient,) = vjp_or_zeros(builder, [(y, seed)], [x])
        return gradient.identity()

    return builder.rewrite(graph, expand)
