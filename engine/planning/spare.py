"""Plans that compute again what they have no memory to keep: values of the way there, when the way back comes to them.

The way there is cut into segments. What crosses a boundary is kept; what only the way back reads of a segment is
computed once more, all of it when the first of that is read (T. Chen et al., "Training deep nets with sublinear memory
cost"). First what is cheap goes, and products are kept; then these, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from engine.graph.errors import OverMemory
from engine.graph.ir import Graph, Node, ancestors
from engine.graph.limits import Deadline, Limits
from engine.graph.op import ResultTypes
from engine.planning.plan import Plan
from engine.planning.smallest import smallest_plan

#: segments that are tried, one after the other
_SEGMENTS: Final = (2, 4, 8, 16, 32, 64)
#: FLOPs for a byte of the result, up to which a value is cheap
_CHEAP: Final = 16


class SparePlan(NamedTuple):
    """A graph that computes some of its values twice, and its plan."""

    graph: Graph
    plan: Plan


def plan_sparing(graph: Graph, limits: Limits, deadline: Deadline, loop_threads: int) -> SparePlan:
    """The first plan that there is memory for, of those that compute more and more again. Raises OverBudget."""
    refused: OverMemory | None = None
    for each in (graph, *_variants(graph)):
        try:
            return SparePlan(each, smallest_plan(each, limits, deadline, loop_threads))
        except OverMemory as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _variants(graph: Graph) -> Iterator[Graph]:
    seen = len(graph.nodes)
    for keeps_dear in (True, False):
        for count in _SEGMENTS:
            found = with_segments(graph, count, keeps_dear=keeps_dear)
            if len(found.nodes) > seen:
                yield found


def with_segments(graph: Graph, count: int, *, keeps_dear: bool) -> Graph:
    """`graph`, its way there in so many segments; `keeps_dear`: what takes many FLOPs is computed once."""
    turn = next((i for i, node in enumerate(graph.nodes) if _is_backward(node)), len(graph.nodes))
    segments = _segments(graph, turn, count)
    again = _again(graph, turn, segments, keeps_dear=keeps_dear)
    return _rewritten(graph, turn, segments, again) if again else graph


def _is_backward(node: Node) -> bool:
    return node.origin is not None and node.origin.backward


def _segments(graph: Graph, turn: int, count: int) -> list[int]:
    """The segment of each node before the turn, of about as many bytes each."""
    sizes = [0 if node.is_leaf or node.op.is_view else node.type.nbytes for node in graph.nodes[:turn]]
    total, passed, found = max(1, sum(sizes)), 0, []
    for size in sizes:
        found.append(min(count - 1, passed * count // total))
        passed += size
    return found


def _again(graph: Graph, turn: int, segments: Sequence[int], *, keeps_dear: bool) -> set[int]:
    """The nodes that are computed again: not what later segments read, nor the last segment."""
    types: list[ResultTypes] = [node.types if node.op.several else node.types[0] for node in graph.nodes]
    crossing = set(graph.outputs)
    for i, node in enumerate(graph.nodes[:turn]):
        crossing.update(o for o in node.operands if segments[o] < segments[i])
    last = max(segments, default=0)
    found = {
        i
        for i, node in enumerate(graph.nodes[:turn])
        if node.operands and i not in crossing and segments[i] < last and not (keeps_dear and _is_dear(node, types))
    }
    # What looks at several results is where these are.
    return {
        i for i in found if not (graph.nodes[i].op.name == "get_output" and graph.nodes[i].operands[0] not in found)
    }


def _is_dear(node: Node, types: Sequence[ResultTypes]) -> bool:
    return not node.op.is_view and node.work(types).flops > _CHEAP * max(1, sum(type.nbytes for type in node.types))


def _rewritten(graph: Graph, turn: int, segments: Sequence[int], again: set[int]) -> Graph:
    """The nodes of a segment once more, in front of the first one after the turn that reads one of them."""
    nodes, renamed, copied = list(graph.nodes[:turn]), dict[int, int](), set[int]()
    readers = [o for node in graph.nodes[turn:] for o in node.operands if o < turn and o in again]
    wanted = {k: {o for o in readers if segments[o] == k} for k in {segments[o] for o in readers}}
    moved: dict[int, int] = {}
    for i, node in enumerate(graph.nodes[turn:], turn):
        for o in node.operands:
            if o < turn and o in again and segments[o] not in copied:
                copied.add(segments[o])
                _copy(graph, nodes, renamed, wanted[segments[o]], again)
        operands = tuple([renamed.get(o, o) if o < turn else moved[o] for o in node.operands])
        moved[i] = len(nodes)
        nodes.append(node.on(operands))
    return graph.rewritten(nodes, [moved.get(i, i) for i in graph.outputs])


def _copy(graph: Graph, nodes: list[Node], renamed: dict[int, int], wanted: set[int], again: set[int]) -> None:
    needed = ancestors(wanted, lambda i: [o for o in graph.nodes[i].operands if o in again])
    for i in needed:
        if i not in renamed:
            node = graph.nodes[i]
            origin = node.origin and node.origin._replace(backward=True)
            operands = tuple([renamed.get(o, o) for o in node.operands])
            renamed[i] = len(nodes)
            nodes.append(node.on(operands)._replace(origin=origin))
