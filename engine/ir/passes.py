"""Passes: from a graph to one with the same results and fewer nodes.

Passes run after differentiation, when no node is referred to by the client's name for it any more. `PASSES` has their
order; each has a name, a switch and a timing. `dce` removes what no output needs, `fold` computes what depends on
constants alone, `simplify` applies the rewrite rules that ops declare, and `cse` merges nodes that compute the same.
The gradient of Σ exp(x · w) by w, as reverse mode writes it, and after the passes:

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

Each pass walks the nodes once or twice, and looks at the deadline on its way.
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
from engine.ir.graph import Builder, Graph, Node, Value, attributes_key, works
from engine.ir.kinds.scalars import typed_number
from engine.ir.op import Narrowed, Registry, ResultTypes, RewriteRule, View
from engine.ir.run_context import NO_DEADLINE, NO_END, NO_LIMITS, Deadline, RunContext
from engine.ir.tensor_type import HostArray, has_infinities, is_complex

_Item = TypeVar("_Item")

#: how often the deadline is looked at
NODES_BETWEEN_LOOKS: Final = 256
#: no operand, result or workspace of a folded node is larger
MOST_BYTES = 1 << 16
#: nor does one take more arithmetic
MOST_FLOPS = 1 << 20
#: all results together: they live while planning, and on in the plan, outside the budget of an execution
MOST_BYTES_IN_ALL = 1 << 24

_ON_HOST = RunContext(np)


class Allowance(NamedTuple):
    """The request's FLOPs, which folding counts towards, and its deadline, which every pass looks at.

    `stops_stay`: the graph is yet to be differentiated, and what stops gradients stays in it.
    """

    flops: int = NO_END
    deadline: Deadline = NO_DEADLINE
    stops_stay: bool = False

    def over(self, items: Sequence[_Item]) -> Iterable[_Item]:
        """`items` one by one, as long as there is time. Raises DeadlineExceeded."""
        self.deadline.check()
        return items if len(items) <= NODES_BETWEEN_LOOKS else self._looking(items)

    def _looking(self, items: Sequence[_Item]) -> Iterator[_Item]:
        for start in range(0, len(items), NODES_BETWEEN_LOOKS):
            self.deadline.check()
            yield from items[start : start + NODES_BETWEEN_LOOKS]


UNBOUNDED: Final = Allowance()


def cse(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """Common subexpression elimination: merge equal nodes. Raises DeadlineExceeded.

    Leaves are never equal; operands of commutative ops may be swapped.
    """
    nodes: list[Node] = []
    seen: dict[Hashable, int] = {}
    renamed: list[int] = []
    for node in allowance.over(graph.nodes):
        op, operands, attrs, _, _ = node
        operands = tuple(map(renamed.__getitem__, operands))
        position = number = len(nodes)
        if not op.is_leaf:
            ordered = tuple(sorted(operands)) if op.commutative else operands
            number = seen.setdefault((op, ordered, attributes_key(attrs) if attrs else ()), position)
        if number == position:
            nodes.append(node.on(operands))
        renamed.append(number)
    return graph.rewritten(nodes, [renamed[i] for i in graph.outputs])


def dce(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """Dead code elimination: remove nodes that no output needs. Raises DeadlineExceeded."""
    nodes = _narrowed(graph, allowance) if any(node.op.narrows for node in graph.nodes) else graph.nodes
    live = [False] * len(nodes)
    for index in graph.outputs:
        live[index] = True
    for index in allowance.over(range(len(live) - 1, -1, -1)):
        if live[index]:
            for operand in nodes[index].operands:
                live[operand] = True
    return graph if nodes is graph.nodes and all(live) else _kept(graph, nodes, live, allowance)


def _kept(graph: Graph, nodes: Sequence[Node], live: list[bool], allowance: Allowance) -> Graph:
    """Return the graph of the `live` nodes."""
    first = len(live) if all(live) else live.index(False)  # what lies before it stays as it is
    kept, renamed = list(nodes[:first]), list(range(first))
    for node, lives in zip(allowance.over(nodes[first:]), live[first:], strict=True):
        renamed.append(len(kept) if lives else -1)
        if lives:
            kept.append(node.on(tuple(map(renamed.__getitem__, node.operands))))
    return graph.rewritten(kept, [renamed[index] for index in graph.outputs])


def _narrowed(graph: Graph, allowance: Allowance) -> Sequence[Node]:
    """The nodes, where those that may do with less work make only results that are read; the same, where all do.

    Nobody reads a `get_output` of another.
    """
    smaller: dict[int, Narrowed] = {}
    nodes, live = list(graph.nodes), set(graph.outputs)
    read: defaultdict[int, set[int]] = defaultdict(set)
    for index in allowance.over(range(len(nodes) - 1, -1, -1)):
        node = nodes[index]
        if index in live:
            if node.op.narrows and read[index]:
                less = node.op.narrowed(node.attrs, len(node.operands), read[index])
                if len(less.operands) < len(node.operands) or len(less.results) < len(node.types):
                    smaller[index] = less
                    node = nodes[index] = node._replace(
                        op=less.op or node.op,
                        operands=tuple([node.operands[i] for i in less.operands]),
                        attrs=less.attrs,
                        types=tuple([node.types[k] for k in less.results]),
                    )
            elif node.op.name == "get_output":
                read[node.operands[0]].add(node.attrs["index"])
            live.update(node.operands)
    for index, node in enumerate(nodes if smaller else ()):
        if node.op.name == "get_output" and index in live and (made := smaller.get(node.operands[0])) is not None:
            nodes[index] = node._replace(attrs={"index": made.results.index(node.attrs["index"])})
    return nodes if smaller else graph.nodes


def fold(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """Constant folding: compute nodes on constants once, within MOST_BYTES and MOST_FLOPS a node.

    All results together take MOST_BYTES_IN_ALL at most.

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
    """Algebraic simplification: apply the rules that ops declare, once, in order, on operands that are simplified.

    `engine.ops.rewrites` says what a rule may change of a value. Raises DeadlineExceeded.
    """
    builder = Builder(graph.registry, NO_LIMITS)  # it has been admitted; what it comes down to is no larger
    nodes = builder.nodes
    renamed: list[int] = []
    shared, outputs = set[int](), frozenset(graph.outputs)
    reads = Counter(chain(graph.outputs, chain.from_iterable([node.operands for node in graph.nodes])))
    several = {i for i, count in reads.items() if count > 1}
    ops = {node.op for node in graph.nodes}
    telling = {op: _telling(op.rewrites, graph.registry) for op in ops}
    if allowance.stops_stay:
        telling |= {op: frozenset() for op in ops if not op.is_differentiable}
    for i, node in enumerate(allowance.over(graph.nodes)):
        told, shorter = telling[node.op], None
        operands = tuple(map(renamed.__getitem__, node.operands))
        if told is None or (told and not told.isdisjoint([nodes[j].op.name for j in operands])):
            builder.origin = node.origin
            shorter = _rewritten(node, [builder.value(j) for j in operands], shared, is_output=i in outputs)
        renamed.append(len(nodes) if shorter is None else shorter.index)
        if shorter is None:
            nodes.append(node.on(operands))
        if i in several:
            shared.add(renamed[i])
    return graph.rewritten(nodes, [renamed[i] for i in graph.outputs])


@cache
def _telling(rules: tuple[RewriteRule, ...], registry: Registry) -> frozenset[str] | None:
    """Return the ops that an operand must be of for any of these rules to apply; None if one is to be tried always."""
    needs = [rule.needs for rule in rules]
    if None in needs:
        return None
    numbers = [op.name for op in registry.ops.values() if op.may_be_one_number]
    return frozenset(chain(*filter(None, needs), numbers if any(rule.needs_number for rule in rules) else ()))


def _rewritten(node: Node, operands: Sequence[Value], shared: set[int], *, is_output: bool) -> Value | None:
    for rule in node.op.rewrites:
        if (is_output and not rule.of_outputs) or (rule.alone is not None and operands[rule.alone].index in shared):
            continue
        shorter: Value | None = rule.find(node, operands)
        if shorter is not None and shorter.type == node.type:
            return shorter
    return None


class Pass(Protocol):
    """A function from a graph to one with the same results, within what it is allowed. Raises DeadlineExceeded."""

    __name__: str

    def __call__(self, graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
        """The other graph."""


# Dead code goes first: gradient rules emit for every operand, and what nobody asked for need not be looked at. It
# goes again at the end, since what has been shortened leaves its operands behind. Folding comes before simplifying:
# what turns out to be one number everywhere can then be a neutral element.
PASSES: tuple[Pass, ...] = (dce, fold, simplify, cse, dce)


@dataclass(frozen=True, slots=True)
class Timing:
    """Time that one pass took, in seconds, and the nodes it left."""

    name: str
    seconds: float
    nodes: int


def optimise(graph: Graph, allowance: Allowance = UNBOUNDED, off: Iterable[str] = ()) -> Graph:
    """`graph` after all passes but those named in `off`: the same results from fewer nodes. Raises DeadlineExceeded."""
    return run_passes(graph, switched(off), allowance)[0]


def switched(off: Iterable[str]) -> tuple[Pass, ...]:
    """The passes without those named in `off`. Raises ValueError for a name that no pass has."""
    unknown = set(off).difference(apply.__name__ for apply in PASSES)
    if unknown:
        raise ValueError(f"there is no pass called {', '.join(sorted(unknown))}")
    return tuple(apply for apply in PASSES if apply.__name__ not in set(off))


def run_passes(
    graph: Graph, passes: Sequence[Pass] = PASSES, allowance: Allowance = UNBOUNDED
) -> tuple[Graph, list[Timing]]:
    """`graph` after `passes`, and what each of them took. Raises DeadlineExceeded."""
    timings = []
    for apply in passes:
        start = time.perf_counter()
        graph = apply(graph, allowance)
        timings.append(Timing(apply.__name__, time.perf_counter() - start, len(graph.nodes)))
    return graph, timings
