"""Tapes: rules of derivatives, run once for operands of the same types, and from then on copied node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from engine.graph.errors import EngineError
from engine.graph.ir import Builder, Node, Value
from engine.graph.limits import NO_LIMITS
from engine.graph.memory import Memory, is_small
from engine.graph.op import Definition, Op
from engine.graph.registry import Registry

#: nodes that a rule writes, beyond which it is run each time
LONGEST_TAPE: Final = 64


class Tape(NamedTuple):
    """Writing of a rule, its operands numbered from 0: the cotangent, the result, what the op reads, the nodes before.

    `gradients` are the numbers of those by the operands, None where there is none. `rank` and `span` are the largest
    of what is written.
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
        """Append it, on the cotangent, result and operands that are the nodes `read`; the gradients by the operands."""
        nodes, origin, at = builder.nodes, builder.origin, [*read]
        for op, operands, attrs, types, _ in self.nodes:
            at.append(len(nodes))
            nodes.append(Node._make((op, tuple(map(at.__getitem__, operands)), attrs, types, origin)))
        return [None if i is None else builder.value(at[i]) for i in self.gradients]


def _record(op: Definition, told: tuple[Any, ...], attrs: Mapping[str, Any]) -> Tape | None:
    """The tape of an op's rule; None where the rule is to be run itself: what it writes is large, or it fails."""
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
tape_of: Final = Memory(_record)


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
