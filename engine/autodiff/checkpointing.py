"""Checkpointing: which values of a loop body are saved for the backward pass.

The backward body of a step recomputes the step's forward values from the step's inputs. For y = tanh(carry · w):

    forward step:   %2 = mul(carry, w)    %3 = tanh(%2)
    backward step:  %2 = mul(carry, w)    %3 = tanh(%2)    g · (1 − %3²) · w

Recomputing a value costs its FLOPs; saving it costs one write and one read of memory. Matrix products and functions of
the mathematical library cost more than the memory traffic, while sums, differences and selections cost less. So
`checkpointed` saves a value if

- the backward body reads it, directly or through values that are not saved,
- the forward step computes it anyway (the derivative of a sine reads a cosine, which the forward step does not have),
- it depends on more than the loop's consts, and
- it takes at least `_COSTLY` FLOPs per element.

Here this is %3. The forward loop then stacks %3 of every step, computed by a second body, `front`. The backward body
gets a row of that stack as a further input, in place of %3, and dead code elimination removes %2.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from typing import Final, NamedTuple

from engine.autodiff.bodies import BackwardBody, derive_body, tidy
from engine.ir.graph import Graph, Node, attributes_key
from engine.ir.op import ResultTypes
from engine.ir.program import Body

#: minimum number of FLOPs per element of the result at which a value is saved rather than recomputed
_COSTLY: Final = 8


class CheckpointedBack(NamedTuple):
    """Backward body of a step that reads saved values after its other inputs, and the body that computes them.

    `front` is None if nothing is saved.
    """

    back: BackwardBody
    front: Body | None


def checkpointed(body: Body, back: BackwardBody, consts: int) -> CheckpointedBack:
    """Choose values of a step to save for its backward body. The first `consts` inputs are the loop's consts.

    A value that depends on consts alone is not saved: it is the same at each step.
    """
    return back.body.cached(("kept", body.digest, consts), lambda: _checkpointed(body, back, consts))


def _checkpointed(body: Body, back: BackwardBody, consts: int) -> CheckpointedBack:
    graph, inputs = back.body.graph, len(body.inputs)
    # The backward body has its own copies of the forward nodes. Value numbering tells which of them the forward step
    # computes, too: equal numbers mean the same op on the same inputs, in either graph.
    numbers: dict[Hashable, int] = {}
    forward_numbers = {*_numbers_of(tidy(body).graph, numbers)}
    computed_forward = {i for i, number in enumerate(_numbers_of(graph, numbers)) if number in forward_numbers}
    saved = _values_to_save(graph, inputs, consts, computed_forward)
    if not saved:
        return CheckpointedBack(back, None)
    front = derive_body(back.body, graph.with_nodes(graph.nodes, saved), back.body.inputs[:inputs])
    return CheckpointedBack(BackwardBody(_with_inputs(back.body, saved), back.reached), front)


def _numbers_of(graph: Graph, numbers: dict[Hashable, int]) -> list[int]:
    """Number the nodes by value: nodes that compute the same from the same inputs have one number in all graphs."""
    numbered: list[int] = []
    for node in graph.nodes:
        value = node.op, tuple([numbered[i] for i in node.operands]), attributes_key(node.attrs) if node.attrs else ()
        numbered.append(numbers.setdefault(value, len(numbers)))
    return numbered


def _values_to_save(graph: Graph, inputs: int, consts: int, computed_forward: Set[int]) -> list[int]:
    """List the forward nodes to save: costly, computed by the forward step, and read by the backward body.

    A node that is not saved is recomputed, so its operands become candidates.
    """
    # `forward`: nodes that depend on no cotangent; `fixed`: nodes that depend on consts alone.
    forward, fixed = set[int](), set[int]()
    for i, node in enumerate(graph.nodes):
        feed = node.attrs["feed"] if node.is_leaf else None
        if feed is not None:
            forward.update([i] if feed < inputs else [])
            fixed.update([i] if feed < consts else [])
        elif forward.issuperset(node.operands):
            forward.add(i)
            fixed.update([i] if fixed.issuperset(node.operands) else [])
    # Search from the forward nodes that backward nodes read, down to the inputs.
    frontier = [o for i, node in enumerate(graph.nodes) if i not in forward for o in node.operands if o in forward]
    frontier += [i for i in graph.outputs if i in forward]
    return _saved_among(graph, frontier, fixed, computed_forward)


def _saved_among(graph: Graph, frontier: list[int], fixed: Set[int], computed_forward: Set[int]) -> list[int]:
    types: list[ResultTypes] = [node.types if node.op.several else node.types[0] for node in graph.nodes]
    saved, seen = set[int](), set[int]()
    while frontier:
        i = frontier.pop()
        if i in seen or i in fixed or graph.nodes[i].is_leaf:
            continue
        seen.add(i)
        if i in computed_forward and _is_costly(graph.nodes[i], types):
            saved.add(i)
        else:
            frontier += graph.nodes[i].operands
    return sorted(saved)


def _is_costly(node: Node, types: Sequence[ResultTypes]) -> bool:
    # A view costs nothing to recompute.
    if node.op.is_view or node.op.several or not node.op.is_kernel or not node.type.is_differentiable:
        return False
    return node.work(types).flops >= _COSTLY * max(1, node.type.size)


def _with_inputs(body: Body, nodes: Sequence[int]) -> Body:
    """Return the body with the values of these nodes as further inputs."""
    graph, positions = body.graph, {i: len(body.inputs) + position for position, i in enumerate(nodes)}
    registry = graph.registry
    rewritten = [
        Node(registry.ops["input"], (), {"feed": positions[i]}, node.types, node.origin) if i in positions else node
        for i, node in enumerate(graph.nodes)
    ]
    types = [*body.inputs, *[graph.nodes[i].type for i in nodes]]
    return derive_body(body, graph.with_nodes(rewritten, graph.outputs), types)
