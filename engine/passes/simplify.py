"""Algebraic simplification: what differentiation writes down mechanically, said shorter.

Every rule keeps the value, but for the sign of a zero (x + 0 becomes x, also where x is −0.0) and, where a factor is
put together from several, a sum is taken before a product or a product is transposed, for the last digits. None drops a
factor that could be infinite or NaN: x · 0 stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_END, Limits
from engine.graph.op import Definition
from engine.oplib.elementwise import Elementwise
from engine.passes import arithmetic, movement, products, spans
from engine.passes.allowance import UNBOUNDED, Allowance
from engine.passes.matching import Rule, needed_operands

# The graph has been admitted; what it comes down to is no larger.
_ADMITTED = Limits(nodes=NO_END, rank=NO_END, bytes=NO_END, flops=NO_END)


def simplify(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """`graph` with the rules applied once, in order, each on operands that are simplified already.

    Raises DeadlineExceeded.
    """
    builder = Builder(graph.registry, _ADMITTED)
    nodes = builder.nodes
    renamed: list[int] = []
    shared, outputs = set[int](), frozenset(graph.outputs)
    several = _read_by_several(graph)
    telling = {op: _telling(op) for op in {node.op for node in graph.nodes}}
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


def _read_by_several(graph: Graph) -> set[int]:
    """The nodes that are read more than once, by nodes or as outputs."""
    reads = Counter(chain(graph.outputs, chain.from_iterable([node.operands for node in graph.nodes])))
    return {i for i, count in reads.items() if count > 1}


def _telling(op: Definition) -> frozenset[str] | None:
    """What an operand of `op` must be for a rule to find anything; None where all depends on the node itself."""
    own = _TELLING.get(op.name, _NOTHING)
    return own if own is None or not isinstance(op, Elementwise) else own | _OF_ELEMENTS


def _rewritten(node: Node, operands: Sequence[Value], shared: set[int], *, is_output: bool) -> Value | None:
    for rule in RULES.get(node.op.name, ()):
        found = rule(node, operands)
        if found is not None and found.type == node.type:
            return found
    for position, rule in ALONE.get(node.op.name, ()):
        found = None if operands[position].index in shared else rule(node, operands)
        if found is not None and found.type == node.type:
            return found
    if not isinstance(node.op, Elementwise):
        return None
    alike = movement.broadcast_in_place(node, operands) if len(operands) > 1 else None
    # An output lies densely: after a transpose, it would have to be copied.
    return alike if alike or is_output else movement.transposed_last(node, operands)


def _same(_: Node, operands: Sequence[Value]) -> Value | None:
    """The operand itself, where the op changes nothing: identity, reshape or cast to what it is, a pad of no width."""
    return operands[0]


RULES: dict[str, tuple[Rule, ...]] = {
    "identity": (_same,),
    "copy_to_device": (_same,),
    "stop_gradient": (_same,),
    "cast": (_same,),
    "pad": (_same,),
    "reshape": (movement.reshape_of_reshape,),
    "broadcast_to": (movement.broadcast_of_broadcast,),
    "transpose": (movement.transpose_in_place, movement.transpose_of_transpose),
    "neg": (arithmetic.twice("neg"), arithmetic.negated_scalar),
    "add": (arithmetic.without(0.0, either=True), arithmetic.sum_with_negated, spans.sum_of_spans),
    "sub": (arithmetic.without(0.0, either=False),),
    "mul": (arithmetic.without(1.0, either=True), arithmetic.by_a_number),
    "div": (arithmetic.without(1.0, either=False),),
    "add_scalar": (arithmetic.without_scalar(0.0),),
    "sub_scalar": (arithmetic.without_scalar(0.0),),
    "mul_scalar": (arithmetic.without_scalar(1.0), arithmetic.scalar_of_negated, arithmetic.scalars_together),
    "div_scalar": (arithmetic.without_scalar(1.0),),
    "sum": (movement.sum_of_broadcast, movement.sum_of_transpose),
}

#: rules on the operand at `position`, which save nothing where another node reads it, too
ALONE: dict[str, tuple[tuple[int, Rule], ...]] = {
    "mul": ((0, arithmetic.sign_out(0)), (1, arithmetic.sign_out(1))),
    "reshape": ((0, movement.kept_sum),),
    "sum": ((0, products.sum_of_product),),
    "transpose": ((0, products.transposed_product),),
}

#: what an operand must be for a rule of the op to find anything; None where one is to be tried always
_TELLING: Final[Mapping[str, frozenset[str] | None]] = {
    op: needed_operands(*RULES.get(op, ()), *(rule for _, rule in ALONE.get(op, ()))) for op in {*RULES, *ALONE}
}
_NOTHING: Final[frozenset[str]] = frozenset()
#: and for what is tried on all elementwise ops
_OF_ELEMENTS: Final = frozenset({"broadcast_to", "transpose"})
