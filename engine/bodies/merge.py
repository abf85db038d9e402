"""Loop merging: loops through the same steps become one. Rules write a loop again to have more of each step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from engine.bodies.runs_functions import RunsFunctions
from engine.bodies.tidy import derived, tidy
from engine.graph.attributes import keyed
from engine.graph.body import Body
from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_LIMITS


class _Joint(NamedTuple):
    """A body that gives what several give, and for each of them where its results stand among the joint ones."""

    body: Body
    where: Sequence[Sequence[int]]


def merge(graph: Graph) -> Graph:
    """`graph` with loops over the same operands, whose carries are the same, as one that has the stacks of all."""
    groups = [group for group in _groups(graph).values() if len(group) > 1]
    joints = [(group, joint) for group in groups if (joint := _joint(graph, group)) is not None]
    return _merged(graph, joints) if joints else graph


def _groups(graph: Graph) -> Mapping[Hashable, list[int]]:
    """Loops by all that they say but their body."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for i, node in enumerate(graph.nodes):
        if isinstance(node.op, RunsFunctions) and node.op.steps_body:
            said = keyed({name: value for name, value in node.attrs.items() if name != "body"})
            groups[node.op.family, node.operands, said].append(i)
    return groups


def _joint(graph: Graph, group: Sequence[int]) -> _Joint | None:
    """One body for a group; None where their carries differ."""
    bodies = [graph.nodes[i].attrs["body"] for i in group]
    carries: int = graph.nodes[group[0]].attrs["carries"]
    first: Body = bodies[0]
    return first.made(("joint", *[body.digest for body in bodies]), lambda: _joined(bodies, carries))


def _joined(bodies: Sequence[Body], carries: int) -> _Joint | None:
    first = bodies[0]
    builder = first.budget.builder(first.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(first.inputs)]
    results = [tidy(body).inline_into(builder, leaves) for body in bodies]
    graph = derived(first, builder.graph([x for given in results for x in given]), first.inputs).graph
    outputs, start = [], 0
    for given in results:
        outputs.append(graph.outputs[start : start + len(given)])
        start += len(given)
    moving = outputs[0][:carries]
    if any(given[:carries] != moving for given in outputs):
        return None
    stacks = [*dict.fromkeys(i for given in outputs for i in given[carries:])]
    body = derived(first, graph.rewritten(graph.nodes, [*moving, *stacks]), first.inputs)
    where = [[*range(carries), *[carries + stacks.index(i) for i in given[carries:]]] for given in outputs]
    return _Joint(body, where)


def _merged(graph: Graph, joints: Sequence[tuple[Sequence[int], _Joint]]) -> Graph:
    builder = Builder(graph.registry, NO_LIMITS)
    instead = {i: (group[0], joint, n) for group, joint in joints for n, i in enumerate(group)}
    values: list[Value] = []
    for i, node in enumerate(graph.nodes):
        operands = [values[o] for o in node.operands]
        builder.origin = node.origin
        if i in instead:
            first, joint, _ = instead[i]
            values.append(_emit(node, operands, joint.body) if first == i else values[first])
        elif node.op.name == "get_output" and node.operands[0] in instead:
            values.append(operands[0].output(_place(graph, node, *instead[node.operands[0]][1:])))
        else:
            values.append(builder.copy(node, operands))
    return builder.graph([values[o] for o in graph.outputs])


def _emit(node: Node, operands: Sequence[Value], body: Body) -> Value:
    assert isinstance(node.op, RunsFunctions)
    return node.op.emit_loop(operands, {**node.attrs, "body": body})


def _place(graph: Graph, node: Node, joint: _Joint, n: int) -> int:
    """Index of a result of the merged loop. Results beside carries and stacks keep theirs."""
    loop = graph.nodes[node.operands[0]]
    assert isinstance(loop.op, RunsFunctions)
    index: int = node.attrs["index"]
    carries: int = loop.attrs["carries"]
    beside = loop.op.beside
    if carries <= index < carries + beside:
        return index
    past = beside if index >= carries else 0
    return joint.where[n][index - past] + past
