"""Batching: turns a graph written for one example into a graph for N examples."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set

from engine.ir.graph import Builder, Graph, Node, Value, ancestors
from engine.ir.run_context import NO_DEADLINE, Deadline, Limits
from engine.ir.tensor_type import TensorType
from engine.ir.verify import MalformedGraph

#: a value, and whether it has the leading axis
Mapped = tuple[Value, bool]


def vmap(
    graph: Graph,
    mapped: Set[Hashable],
    size: int,
    limits: Limits | None = None,
    deadline: Deadline = NO_DEADLINE,
    mapped_outputs: Sequence[bool] | None = None,
) -> Graph:
    """Return `graph` with a leading axis of extent `size` on the leaves fed under `mapped`, and on every output.

    Nodes that do not depend on a mapped leaf are computed once. An output among them gets the axis only if
    `mapped_outputs` says so (None: all do). `grad` nodes must have been expanded.
    """
    builder = Builder(graph.registry, limits or Limits(), deadline)
    values: list[Mapped] = []
    for i, node in enumerate(graph.nodes):
        builder.origin = node.origin
        # The batched node keeps the origin, so that messages still name the client's node.
        values.append(_map_node(builder, graph, i, [values[j] for j in node.operands], mapped, size))
    outputs = zip(graph.outputs, mapped_outputs or (True,) * len(graph.outputs), strict=True)
    return builder.graph([_with_axis(*values[i], size) if is_mapped else values[i][0] for i, is_mapped in outputs])


def vmap_onto(builder: Builder, outputs: Sequence[Value], mapped: Mapping[Value, Value], size: int) -> list[Value]:
    """Append a batched copy of `outputs`, with the nodes `mapped` replaced by values with a leading axis `size`.

    Every result has the leading axis. Nodes that do not depend on a mapped node are reused, not copied.
    """
    # Only the part that depends on `mapped` is copied, and the copy is appended to the same graph. So several copies,
    # such as the chunks of a Jacobian, share everything else.
    values: dict[int, Mapped] = {x.index: (batched, True) for x, batched in mapped.items()}
    origin = builder.origin
    for index in dependents(builder.nodes, [y.index for y in outputs], set(values)):
        node = builder.nodes[index]
        builder.origin = node.origin
        operands = [values.get(i) or (builder.value(i), False) for i in node.operands]
        values[index] = _batch(index, node, operands, size)
    builder.origin = origin
    return [_with_axis(*(values.get(y.index) or (y, False)), size) for y in outputs]


def dependents(nodes: Sequence[Node], roots: Iterable[int], on: Set[int]) -> list[int]:
    """Return the ancestors of `roots` (themselves included) that depend on a node in `on`, in ascending order."""
    # Operands precede their readers, so no node before the first of `on` depends on it: the walk stops there.
    first = min(on, default=len(nodes))
    candidates = ancestors(
        (i for i in roots if i > first),
        lambda index: () if index in on else [i for i in nodes[index].operands if i > first],
    )
    reached = set(on)
    for index in candidates:
        if not reached.isdisjoint(nodes[index].operands):
            reached.add(index)
    return sorted(reached - on)


def _map_node(
    builder: Builder, graph: Graph, index: int, operands: list[Mapped], mapped: Set[Hashable], size: int
) -> Mapped:
    node = graph.nodes[index]
    if node.is_leaf and node.attrs["feed"] in mapped:
        type = TensorType((size, *node.type.shape), node.type.dtype)
        return builder.leaf(type, node.attrs["feed"], node.op.name), True
    if any(m for _, m in operands):
        return _batch(index, node, operands, size)
    return builder.copy(node, [x for x, _ in operands]), False


def _batch(index: int, node: Node, operands: Sequence[Mapped], size: int) -> Mapped:
    """Apply the batching rule of a node, some of whose operands are mapped.

    Raises MalformedGraph for an invalid result.
    """
    batched = node.rules.batch([m for _, m in operands], *(x for x, _ in operands), **node.attrs)
    if not isinstance(batched, Value):
        raise MalformedGraph(f"its batching rule gives a {type(batched).__name__}, not a value", index, node)
    # A wrong batching rule would give wrong numbers without an error, so its type is always checked.
    expected = tuple(t.with_shape((size, *t.shape)) for t in node.types)
    if batched.node.types != expected:
        raise MalformedGraph(f"its batching rule gives {batched.type} for {size} examples", index, node)
    return batched, True


def _with_axis(x: Value, mapped: bool, size: int) -> Value:
    return x if mapped else x.broadcast_to(shape=(size, *x.shape))
