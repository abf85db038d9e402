"""Checkpointing: which values of a loop body are saved for the backward pass.

The way back through a step computes it again from what came to it. Products and functions of the mathematical library
cost more than to be written to memory and read again; sums, differences and choices cost less. So what is dear is
saved, and a value that the forward pass does not compute anyway, as the cosine of its sine, is left to the way back.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from typing import Final, NamedTuple

from engine.autodiff.bodies import BodyBack, derived, tidy
from engine.ir.graph import Graph, Node, attributes_key
from engine.ir.op import ResultTypes
from engine.ir.program import Body

#: FLOPs an element of the result from which a value is costly: it is saved rather than computed again
_COSTLY: Final = 8


class CheckpointedBack(NamedTuple):
    """A step's way back that reads saved values, behind its other inputs, and the body that computes them in the step.

    If nothing is saved, `front` is None.
    """

    back: BodyBack
    front: Body | None


def checkpointed(body: Body, back: BodyBack, consts: int) -> CheckpointedBack:
    """Save values of a step for its way back. Its first inputs are consts: what depends on these alone is not saved."""
    return back.body.made(("kept", body.digest, consts), lambda: _checkpointed(body, back, consts))


def _checkpointed(body: Body, back: BodyBack, consts: int) -> CheckpointedBack:
    graph, inputs = back.body.graph, len(body.inputs)
    numbers: dict[Hashable, int] = {}
    made = {*_numbers_of(tidy(body).graph, numbers)}
    of_the_way_there = {i for i, number in enumerate(_numbers_of(graph, numbers)) if number in made}
    nodes = _values_to_save(graph, inputs, consts, of_the_way_there)
    if not nodes:
        return CheckpointedBack(back, None)
    front = derived(back.body, graph.rewritten(graph.nodes, nodes), back.body.inputs[:inputs])
    return CheckpointedBack(BodyBack(_with_inputs(back.body, nodes), back.reached), front)


def _numbers_of(graph: Graph, numbers: dict[Hashable, int]) -> list[int]:
    """Number the nodes, so that nodes that compute the same of the same inputs have one number in all graphs."""
    numbered: list[int] = []
    for node in graph.nodes:
        said = node.op, tuple([numbered[i] for i in node.operands]), attributes_key(node.attrs) if node.attrs else ()
        numbered.append(numbers.setdefault(said, len(numbers)))
    return numbered


def _values_to_save(graph: Graph, inputs: int, consts: int, made: Set[int]) -> list[int]:
    """Nodes of the forward pass to save: the way back reads them, the forward pass computes them, and they are costly.

    A node that is not saved is computed again, so that what it reads is looked at in its turn.
    """
    # `there`: nodes of the forward pass, which depend on the step's inputs alone; `fixed`: of these, on consts alone.
    there, fixed = set[int](), set[int]()
    for i, node in enumerate(graph.nodes):
        feed = node.attrs["feed"] if node.is_leaf else None
        if feed is not None:
            there.update([i] if feed < inputs else [])
            fixed.update([i] if feed < consts else [])
        elif there.issuperset(node.operands):
            there.add(i)
            fixed.update([i] if fixed.issuperset(node.operands) else [])
    # Where the way back begins to read the way there, and walks it from the results to the inputs.
    todo = [o for i, node in enumerate(graph.nodes) if i not in there for o in node.operands if o in there]
    todo += [i for i in graph.outputs if i in there]
    return _saved_among(graph, todo, fixed, made)


def _saved_among(graph: Graph, todo: list[int], fixed: Set[int], made: Set[int]) -> list[int]:
    types: list[ResultTypes] = [node.types if node.op.several else node.types[0] for node in graph.nodes]
    saved, seen = set[int](), set[int]()
    while todo:
        i = todo.pop()
        if i in seen or i in fixed or graph.nodes[i].is_leaf:
            continue
        seen.add(i)
        if i in made and _is_costly(graph.nodes[i], types):
            saved.add(i)
        else:
            todo += graph.nodes[i].operands
    return sorted(saved)


def _is_costly(node: Node, types: Sequence[ResultTypes]) -> bool:
    if node.op.is_view or node.op.several or not node.op.is_kernel or not node.type.is_differentiable:
        return False
    return node.work(types).flops >= _COSTLY * max(1, node.type.size)


def _with_inputs(body: Body, nodes: Sequence[int]) -> Body:
    """The body, which reads these nodes as further inputs."""
    graph, places = body.graph, {i: len(body.inputs) + place for place, i in enumerate(nodes)}
    registry = graph.registry
    made = [
        Node(registry.ops["input"], (), {"feed": places[i]}, node.types, node.origin) if i in places else node
        for i, node in enumerate(graph.nodes)
    ]
    types = [*body.inputs, *[graph.nodes[i].type for i in nodes]]
    return derived(body, graph.rewritten(made, graph.outputs), types)
