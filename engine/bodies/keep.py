"""What a loop keeps for its way back, of what each step computes: what is dear to compute again.

The way back through a step computes it once more from what came to it. Products and functions of the mathematical
library cost more than to be written to memory and read again; sums, differences and choices cost less. What the way
there does not compute anyway, as the cosine of its sine, is left to the way back.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from typing import Final, NamedTuple

from engine.bodies.tidy import derived, tidy
from engine.bodies.way_back import BodyBack
from engine.graph.body import Body
from engine.graph.ir import Graph, Node
from engine.graph.memory import attributes_key
from engine.graph.op import ResultTypes

#: FLOPs for an element of the result, from which a value is dear
_DEAR: Final = 8


class BackWithKept(NamedTuple):
    """A step's way back that is given some values, behind its other inputs, and the body that makes them of a step's.

    There may be none: then `front` is None.
    """

    back: BodyBack
    front: Body | None


def with_kept(body: Body, back: BodyBack, consts: int) -> BackWithKept:
    """Of a step, whose first inputs are consts: those stay the same, and with them what they make."""
    return back.body.made(("kept", body.digest, consts), lambda: _with_kept(body, back, consts))


def _with_kept(body: Body, back: BodyBack, consts: int) -> BackWithKept:
    graph, inputs = back.body.graph, len(body.inputs)
    numbers: dict[Hashable, int] = {}
    made = {*_numbered(tidy(body).graph, numbers)}
    of_the_way_there = {i for i, number in enumerate(_numbered(graph, numbers)) if number in made}
    nodes = _dear(graph, inputs, consts, of_the_way_there)
    if not nodes:
        return BackWithKept(back, None)
    front = derived(back.body, graph.rewritten(graph.nodes, nodes), back.body.inputs[:inputs])
    return BackWithKept(BodyBack(_given(back.body, nodes), back.reached), front)


def _numbered(graph: Graph, numbers: dict[Hashable, int]) -> list[int]:
    """For each node a number, the same in all graphs for nodes that say the same of the same inputs."""
    found: list[int] = []
    for node in graph.nodes:
        said = node.op, tuple([found[i] for i in node.operands]), attributes_key(node.attrs) if node.attrs else ()
        found.append(numbers.setdefault(said, len(numbers)))
    return found


def _dear(graph: Graph, inputs: int, consts: int, made: Set[int]) -> list[int]:
    """What the way back needs of the way there, where that is made and dear; all else is looked through."""
    there, fixed = set[int](), set[int]()
    for i, node in enumerate(graph.nodes):
        feed = node.attrs["feed"] if node.is_leaf else None
        if feed is not None:
            there.update([i] if feed < inputs else [])
            fixed.update([i] if feed < consts else [])
        elif there.issuperset(node.operands):
            there.add(i)
            fixed.update([i] if fixed.issuperset(node.operands) else [])
    todo = [o for i, node in enumerate(graph.nodes) if i not in there for o in node.operands if o in there]
    todo += [i for i in graph.outputs if i in there]
    return _found(graph, todo, fixed, made)


def _found(graph: Graph, todo: list[int], fixed: Set[int], made: Set[int]) -> list[int]:
    types: list[ResultTypes] = [node.types if node.op.several else node.types[0] for node in graph.nodes]
    found, seen = set[int](), set[int]()
    while todo:
        i = todo.pop()
        if i in seen or i in fixed or graph.nodes[i].is_leaf:
            continue
        seen.add(i)
        if i in made and _is_dear(graph.nodes[i], types):
            found.add(i)
        else:
            todo += graph.nodes[i].operands
    return sorted(found)


def _is_dear(node: Node, types: Sequence[ResultTypes]) -> bool:
    if node.op.is_view or node.op.several or not node.op.is_kernel or not node.type.is_differentiable:
        return False
    return node.work(types).flops >= _DEAR * max(1, node.type.size)


def _given(body: Body, nodes: Sequence[int]) -> Body:
    """The body with these nodes as further inputs."""
    graph, places = body.graph, {i: len(body.inputs) + place for place, i in enumerate(nodes)}
    registry = graph.registry
    made = [
        Node(registry.ops["input"], (), {"feed": places[i]}, node.types, node.origin) if i in places else node
        for i, node in enumerate(graph.nodes)
    ]
    types = [*body.inputs, *[graph.nodes[i].type for i in nodes]]
    return derived(body, graph.rewritten(made, graph.outputs), types)
