"""Batching: a graph written for one example, on N examples at once."""

from __future__ import annotations

from collections.abc import Hashable, Set

from engine.ir import Builder, Graph, Node, Value
from engine.limits import NO_DEADLINE, Deadline, Limits
from engine.tensor_type import TensorType

Mapped = tuple[Value, bool]


def vmap(
    graph: Graph,
    mapped: Set[Hashable],
    size: int,
    limits: Limits | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> Graph:
    """`graph` with a leading axis of extent `size` on the leaves fed under `mapped`, and on every output.

    Nodes that do not depend on a mapped leaf are computed once. `grad` nodes must have been expanded.
    """
    builder = Builder(limits or Limits(), deadline)
    values: list[Mapped] = []
    for node in graph.nodes:
        builder.origin = node.origin
        values.append(_map_node(builder, node, [values[i] for i in node.operands], mapped, size))
    return builder.graph([_with_axis(*values[i], size) for i in graph.outputs])


def _map_node(builder: Builder, node: Node, operands: list[Mapped], mapped: Set[Hashable], size: int) -> Mapped:
    if node.is_leaf and node.attrs["feed"] in mapped:
        type = TensorType((size, *node.type.shape), node.type.dtype)
        return builder.leaf(type, node.attrs["feed"], node.op.name), True
    flags = [m for _, m in operands]
    if any(flags):
        return node.op.batch(flags, *(x for x, _ in operands), **node.attrs), True
    return builder.copy(node, [x for x, _ in operands]), False


def _with_axis(x: Value, mapped: bool, size: int) -> Value:
    return x if mapped else x.broadcast_to(shape=(size, *x.shape))
