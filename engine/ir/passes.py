"""Passes: transforms from a graph to one with the same results and fewer nodes.

Passes run after differentiation, when the client's node names are no longer needed. `PASSES` lists them in order; each
has a name, a switch and a timing. `dce` removes nodes that no output needs, `fold` computes nodes that depend on
constants alone, `simplify` applies the rewrite rules of ops, and `cse` merges nodes that compute the same. The gradient
of Σ exp(x · w) with respect to w, as reverse mode emits it, and after the passes:

    %0 = input {"feed": 0} : float64[3]                     %0 = input {"feed": 0} : float64[3]
    %1 = input {"feed": 1} : float64[3]                     %1 = input {"feed": 1} : float64[3]
    %2 = mul(%0, %1) : float64[3]                           %2 = mul(%0, %1) : float64[3]
    %3 = exp(%2) : float64[3]                               %3 = exp(%2) : float64[3]
    %4 = sum(%3) {…} : float64[]                            %4 = mul(%3, %0) : float64[3]
    %5 = full {"shape": [], "fill": 1.0, …} : float64[]     return %4
    %6 = reshape(%5) {"shape": [1], …} : float64[1]
    %7 = broadcast_to(%6) {"shape": [3]} : float64[3]
    %8 = mul(%7, %3) : float64[3]
    %9 = mul(%8, %1) : float64[3]
    %10 = mul(%8, %0) : float64[3]
    return %10

Each pass walks the nodes once or twice, and checks the deadline on the way.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from engine.ir.errors import EngineError
from engine.ir.graph import Builder, Graph, Node, Value, attributes_key, work_by_node
from engine.ir.kinds.scalars import typed_number
from engine.ir.op import Narrowed, Registry, ResultTypes, RewriteRule, View
from engine.ir.run_context import NO_DEADLINE, NO_END, NO_LIMITS, Deadline, RunContext
from engine.ir.tensor_type import HostArray, has_infinities, is_complex

_Item = TypeVar("_Item")

#: number of nodes between two deadline checks
NODES_BETWEEN_LOOKS: Final = 256
#: maximum size of an operand, result or workspace of a folded node
MOST_BYTES = 1 << 16
#: maximum FLOPs of a folded node
MOST_FLOPS = 1 << 20
#: maximum total size of folded results: they stay in the plan, outside the memory budget of an execution
MOST_BYTES_IN_ALL = 1 << 24

_ON_HOST = RunContext(np)


class Allowance(NamedTuple):
    """The request's FLOPs, which folding counts towards, and its deadline, which every pass checks.

    With `keep_stops`, the graph is yet to be differentiated, so nodes that stop gradients must stay.
    """

    flops: int = NO_END
    deadline: Deadline = NO_DEADLINE
    keep_stops: bool = False

    def over(self, items: Sequence[_Item]) -> Iterable[_Item]:
        """Iterate over `items` with deadline checks. Raises DeadlineExceeded."""
        self.deadline.check()
        return items if len(items) <= NODES_BETWEEN_LOOKS else self._with_checks(items)

    def _with_checks(self, items: Sequence[_Item]) -> Iterator[_Item]:
        for start in range(0, len(items), NODES_BETWEEN_LOOKS):
            self.deadline.check()
            yield from items[start : start + NODES_BETWEEN_LOOKS]


UNBOUNDED: Final = Allowance()


def cse(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """Merge equal nodes (common subexpression elimination). Raises DeadlineExceeded.

    Leaves are never equal. Operands of commutative ops may be swapped.
    """
    nodes: list[Node] = []
    seen: dict[Hashable, int] = {}
    new_index: list[int] = []
    for node in allowance.over(graph.nodes):
        op, operands, attrs, _, _ = node
        operands = tuple(map(new_index.__getitem__, operands))
        position = number = len(nodes)
        if not op.is_leaf:
            ordered = tuple(sorted(operands)) if op.commutative else operands
            number = seen.setdefault((op, ordered, attributes_key(attrs) if attrs else ()), position)
        if number == position:
            nodes.append(node.with_operands(operands))
        new_index.append(number)
    return graph.with_nodes(nodes, [new_index[i] for i in graph.outputs])


def dce(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """Remove nodes that no output needs (dead code elimination). Raises DeadlineExceeded."""
    nodes = _narrowed(graph, allowance) if any(node.op.narrows for node in graph.nodes) else graph.nodes
    live = [False] * len(nodes)
    for index in graph.outputs:
        live[index] = True
    for index in allowance.over(range(len(live) - 1, -1, -1)):
        if live[index]:
            for operand in nodes[index].operands:
                live[operand] = True
    return graph if nodes is graph.nodes and all(live) else _without_dead(graph, nodes, live, allowance)


def _without_dead(graph: Graph, nodes: Sequence[Node], live: list[bool], allowance: Allowance) -> Graph:
    """Return the graph of the `live` nodes."""
    first = len(live) if all(live) else live.index(False)  # earlier nodes keep their indices
    live_nodes, new_index = list(nodes[:first]), list(range(first))
    for node, lives in zip(allowance.over(nodes[first:]), live[first:], strict=True):
        new_index.append(len(live_nodes) if lives else -1)
        if lives:
            live_nodes.append(node.with_operands(tuple(map(new_index.__getitem__, node.operands))))
    return graph.with_nodes(live_nodes, [new_index[index] for index in graph.outputs])


def _narrowed(graph: Graph, allowance: Allowance) -> Sequence[Node]:
    """Return the nodes, with ops that set `narrows` reduced to the results that are read; the same object if none is.

    A `get_output` of a result that is no longer computed has no readers.
    """
    reduced_nodes: dict[int, Narrowed] = {}
    nodes, live = list(graph.nodes), set(graph.outputs)
    read: defaultdict[int, set[int]] = defaultdict(set)
    for index in allowance.over(range(len(nodes) - 1, -1, -1)):
        node = nodes[index]
        if index in live:
            if node.op.narrows and read[index]:
                reduced = node.op.narrowed(node.attrs, len(node.operands), read[index])
                if len(reduced.operands) < len(node.operands) or len(reduced.results) < len(node.types):
                    reduced_nodes[index] = reduced
                    node = nodes[index] = node._replace(
                        op=reduced.op or node.op,
                        operands=tuple([node.operands[i] for i in reduced.operands]),
                        attrs=reduced.attrs,
                        types=tuple([node.types[k] for k in reduced.results]),
                    )
            elif node.op.name == "get_output":
                read[node.operands[0]].add(node.attrs["index"])
            live.update(node.operands)
    for index, node in enumerate(nodes if reduced_nodes else ()):
        if (
            node.op.name == "get_output"
            and index in live
            and (reduction := reduced_nodes.get(node.operands[0])) is not None
        ):
            nodes[index] = node._replace(attrs={"index": reduction.results.index(node.attrs["index"])})
    return nodes if reduced_nodes else graph.nodes


def fold(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """Compute nodes on constants once (constant folding), within MOST_BYTES and MOST_FLOPS per node.

    All results together take at most MOST_BYTES_IN_ALL. A tensor that holds one number everywhere becomes a `full`. A
    node whose kernel raises (an index out of range), or whose result is not finite, is not folded, so that it is
    reported when the graph runs.

    If the whole graph takes more FLOPs than allowed, nothing is folded, so that the plan counts all of them. So folding
    and the plan together never exceed the allowance. Raises DeadlineExceeded.
    """
    foldable = _on_constants(graph, allowance)
    types: list[ResultTypes] = [node.types if node.op.several else node.types[0] for node in graph.nodes]
    if not foldable or sum([flops for flops, _ in work_by_node(allowance.over(graph.nodes), types)]) > allowance.flops:
        return graph
    nodes, values = list(graph.nodes), _Values(graph, types)
    for i in allowance.over(foldable):
        value = values.get(i)
        if value is not None:
            nodes[i] = _constant(value, nodes[i], graph.registry)
    return graph.with_nodes(nodes, graph.outputs)


def _on_constants(graph: Graph, allowance: Allowance) -> list[int]:
    """Return the nodes that depend on constants alone, without the constants themselves, in order."""
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
    """Values of nodes on constants, computed on first use; together at most MOST_BYTES_IN_ALL."""

    def __init__(self, graph: Graph, types: Sequence[ResultTypes]) -> None:
        self._graph = graph
        self._types = types
        self._cache: dict[int, HostArray | None] = {}
        self._bytes_left = MOST_BYTES_IN_ALL

    def get(self, i: int) -> HostArray | None:
        """Return the value of a node, or None. The array is read-only and owned, so a plan can hold it."""
        if i not in self._cache:
            value = self._cache[i] = self._evaluate(self._graph.nodes[i])
            self._bytes_left -= 0 if value is None else value.nbytes
        return self._cache[i]

    def _evaluate(self, node: Node) -> HostArray | None:
        if node.type.nbytes > self._bytes_left or node.type.span > MOST_BYTES:
            return None
        flops, workspace = node.work(self._types)
        if flops > MOST_FLOPS or workspace > MOST_BYTES:
            return None
        operands = [value for value in map(self.get, node.operands) if value is not None]
        if len(operands) < len(node.operands):
            return None
        try:
            with np.errstate(all="ignore"):
                if isinstance(node.op, View):
                    value = np.asarray(node.op.view(np, operands[0], **node.attrs))
                else:
                    value = np.empty(node.type.shape, node.type.dtype)
                    node.kernel.forward(_ON_HOST, *operands, out=value, **node.attrs)
                finite = not has_infinities(value.dtype) or bool(np.isfinite(value).all())
        except EngineError:
            return None
        value.flags.writeable = False
        return value if finite or not node.operands else None


def _constant(value: HostArray, node: Node, registry: Registry) -> Node:
    dense = np.asarray(value, order="C")
    if dense.size and not is_complex(dense.dtype) and dense.tobytes() == dense.tobytes()[: dense.itemsize] * dense.size:
        fill = typed_number(dense.flat[0].item(), dense.dtype)
        attrs: dict[str, Any] = {"shape": dense.shape, "fill": fill, "dtype": dense.dtype, "fill_as": None}
        return Node(registry.ops["full"], (), attrs, node.types, node.origin)
    return Node(registry.ops["constant"], (), {"value": dense}, node.types, node.origin)


def simplify(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """Apply the rewrite rules of ops once, in order, to nodes whose operands are already simplified.

    `engine.ops.rewrites` defines the changes of a value that a rule may make. Raises DeadlineExceeded.
    """
    builder = Builder(graph.registry, NO_LIMITS)  # the graph was admitted, and rules only make it smaller
    nodes = builder.nodes
    new_index: list[int] = []
    shared, outputs = set[int](), frozenset(graph.outputs)
    reads = Counter(chain(graph.outputs, chain.from_iterable([node.operands for node in graph.nodes])))
    read_repeatedly = {i for i, count in reads.items() if count > 1}
    ops = {node.op for node in graph.nodes}
    # Most nodes have no operand that their rules could apply to. Comparing op names rules them out cheaply.
    triggers = {op: _triggers(op.rewrites, graph.registry) for op in ops}
    if allowance.keep_stops:
        triggers |= {op: frozenset() for op in ops if not op.is_differentiable}
    for i, node in enumerate(allowance.over(graph.nodes)):
        node_triggers, simplified = triggers[node.op], None
        operands = tuple(map(new_index.__getitem__, node.operands))
        if node_triggers is None or (
            node_triggers and not node_triggers.isdisjoint([nodes[j].op.name for j in operands])
        ):
            builder.origin = node.origin
            simplified = _rewritten(node, [builder.value(j) for j in operands], shared, is_output=i in outputs)
        new_index.append(len(nodes) if simplified is None else simplified.index)
        if simplified is None:
            nodes.append(node.with_operands(operands))
        if i in read_repeatedly:
            shared.add(new_index[i])
    return graph.with_nodes(nodes, [new_index[i] for i in graph.outputs])


@cache
def _triggers(rules: tuple[RewriteRule, ...], registry: Registry) -> frozenset[str] | None:
    """Return the ops of which an operand must be one for any of these rules to apply; None if a rule always applies."""
    needs = [rule.needs for rule in rules]
    if None in needs:
        return None
    maybe_numbers = [op.name for op in registry.ops.values() if op.may_be_constant]
    return frozenset(chain(*filter(None, needs), maybe_numbers if any(rule.needs_number for rule in rules) else ()))


def _rewritten(node: Node, operands: Sequence[Value], shared: set[int], *, is_output: bool) -> Value | None:
    for rule in node.op.rewrites:
        if (is_output and not rule.rewrites_outputs) or (
            rule.unshared_operand is not None and operands[rule.unshared_operand].index in shared
        ):
            continue
        simplified: Value | None = rule.find(node, operands)
        if simplified is not None and simplified.type == node.type:
            return simplified
    return None


class Pass(Protocol):
    """Function from a graph to one with the same results, within an allowance. Raises DeadlineExceeded."""

    __name__: str

    def __call__(self, graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
        """Return the other graph."""


# Dead code is removed first: gradient rules emit cotangents for every operand, so that later passes would look at
# unneeded nodes. It is removed again at the end, since simplified nodes leave their operands behind. Folding precedes
# simplifying: a value found to be one number everywhere can then be a neutral element.
PASSES: tuple[Pass, ...] = (dce, fold, simplify, cse, dce)


@dataclass(frozen=True, slots=True)
class Timing:
    """Time that one pass took, in seconds, and the number of nodes it left."""

    name: str
    seconds: float
    nodes: int


def optimise(graph: Graph, allowance: Allowance = UNBOUNDED, off: Iterable[str] = ()) -> Graph:
    """Return `graph` after all passes but those named in `off`: the same results, fewer nodes.

    Raises DeadlineExceeded.
    """
    return run_passes(graph, switched(off), allowance)[0]


def switched(off: Iterable[str]) -> tuple[Pass, ...]:
    """Return the passes without those named in `off`. Raises ValueError for an unknown name."""
    unknown = set(off).difference(apply.__name__ for apply in PASSES)
    if unknown:
        raise ValueError(f"there is no pass called {', '.join(sorted(unknown))}")
    return tuple(apply for apply in PASSES if apply.__name__ not in set(off))


def run_passes(
    graph: Graph, passes: Sequence[Pass] = PASSES, allowance: Allowance = UNBOUNDED
) -> tuple[Graph, list[Timing]]:
    """Return `graph` after `passes`, and the timing of each. Raises DeadlineExceeded."""
    timings = []
    for apply in passes:
        start = time.perf_counter()
        graph = apply(graph, allowance)
        timings.append(Timing(apply.__name__, time.perf_counter() - start, len(graph.nodes)))
    return graph, timings
