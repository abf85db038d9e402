"""Reverse mode: cotangents travel from outputs back to the nodes asked for, each op emitting its own rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from engine.graph.errors import counted
from engine.graph.ir import Builder, Node, Origin, Value, ancestors
from engine.graph.tensor_type import TensorType
from engine.graph.verify import MalformedGraph
from engine.transforms.tape import tape_of

Cotangents = dict[tuple[int, int], Value]
#: whether a node depends differentiably on one of those that gradients are taken by, as far as that was asked
Dependence = dict[int, bool]


def vjp(
    builder: Builder, seeds: Iterable[tuple[Value, Value]], wrt: Sequence[Value], known: Dependence | None = None
) -> list[Value | None]:
    """Append the gradient of Σ sum(output · cotangent) over `seeds` with respect to each node of `wrt`.

    Every node counts as itself: paths through another node that computes the same do not contribute. A node without
    a path to any output has None; the others a value of their own type. Nodes on no path cost nothing: they are looked
    at once, and where several sweeps by the same `wrt` share what is `known`, once for all of them.
    """
    builder.deadline.check()
    cotangents: Cotangents = {}
    for output, cotangent in seeds:
        _accumulate(cotangents, (output.index, 0), cotangent)
    targets = {x.index for x in wrt}
    found: dict[int, Value] = {}
    origin = builder.origin
    for index in reversed(_paths(builder.nodes, [i for i, _ in cotangents], targets, {} if known is None else known)):
        if index in targets and (index, 0) in cotangents:
            found[index] = cotangents[index, 0]
        _pull_back(builder, index, cotangents)
    builder.origin = origin
    return [found.get(x.index) for x in wrt]


def vjp_or_zeros(builder: Builder, seeds: Iterable[tuple[Value, Value]], wrt: Sequence[Value]) -> list[Value]:
    """As `vjp`, with zeros for nodes without a path."""
    return or_zeros(wrt, vjp(builder, seeds, wrt))


def or_zeros(like: Sequence[Value], found: Sequence[Value | None]) -> list[Value]:
    """What was found, with zeros like the node where there is no path."""
    return [x.full_like(0.0) if g is None else g for x, g in zip(like, found, strict=True)]


def _paths(nodes: Sequence[Node], outputs: Sequence[int], targets: set[int], known: Dependence) -> list[int]:
    """Nodes between `targets` and `outputs`, both included, in ascending order. Writes into `known`."""
    first = min(targets, default=len(nodes))
    for index in _ancestors(nodes, outputs, lambda i: i >= first and i not in known):
        known[index] = index in targets or any(known.get(i, False) for i in _differentiable_operands(nodes[index]))
    return _ancestors(nodes, outputs, lambda i: known.get(i, False))


def _ancestors(nodes: Sequence[Node], roots: Iterable[int], follow: Callable[[int], bool]) -> list[int]:
    """What `roots` depend on differentiably, themselves included, through nodes that one is to `follow`."""
    return ancestors(filter(follow, roots), lambda i: filter(follow, _differentiable_operands(nodes[i])))


def _differentiable_operands(node: Node) -> Sequence[int]:
    if not node.operands or not node.op.is_differentiable:
        return ()
    return node.operands if any(t.is_float for t in node.types) else ()


def _pull_back(builder: Builder, index: int, cotangents: Cotangents) -> None:
    """Move the cotangents of a node to its operands."""
    node = builder.nodes[index]
    arrived = [cotangents.pop((index, k), None) for k in range(len(node.types))]
    if not _differentiable_operands(node) or all(g is None for g in arrived):
        return
    builder.origin = node.origin and Origin(node.origin.node, node.origin.op, backward=True)
    for i, g in zip(node.operands, _gradients(builder, index, node, arrived), strict=True):
        if g is not None:
            types = builder.nodes[i].types
            for k, part in _parts(g):
                if types[k].is_float:
                    _accumulate(cotangents, (i, k), part, index)


def _gradients(builder: Builder, index: int, node: Node, arrived: Sequence[Value | None]) -> Sequence[Any]:
    """What the rule of a node writes: copied, where that is known."""
    g = arrived[0]
    if not node.op.several and g is not None and g.type == node.types[0]:
        types = [builder.nodes[i].types[0] for i in node.operands]
        tape = tape_of(node.op, (builder.registry, node.op.vjp, node.types[0], *types), node.attrs)
        if tape is not None and tape.is_admitted(builder):
            return tape.write(builder, (g.index, index, *node.operands))
    y, operands = builder.value(index), [builder.value(i) for i in node.operands]
    gradients = node.rules.vjp(tuple(arrived) if node.op.several else g, y, *operands, **node.attrs)
    _check_rule(gradients, index, node)
    return gradients


def _check_rule(gradients: Any, index: int, node: Node) -> None:
    """Raise MalformedGraph unless the rule of a node gives a value, several of them or None for each operand."""
    if not isinstance(gradients, (tuple, list, Sequence)):  # the first two, since these are quick to tell
        raise MalformedGraph(f"its rule gives a {type(gradients).__name__}, not a sequence of values", index, node)
    if len(gradients) != len(node.operands):
        given, wanted = counted(len(gradients), "cotangent"), counted(len(node.operands), "operand")
        raise MalformedGraph(f"its rule gives {given} for {wanted}", index, node)
    for i, g in enumerate(gradients):
        if g is not None and not isinstance(g, (Value, Mapping)):
            raise MalformedGraph(f"its rule gives operand {i} a {type(g).__name__}, not a value", index, node)


def _parts(g: Value | Mapping[int, Value | None] | None) -> Iterable[tuple[int, Value]]:
    """What a rule gives for an operand, by the operand's results."""
    if g is None:
        return ()
    return ((0, g),) if isinstance(g, Value) else [(k, part) for k, part in g.items() if part is not None]


def _accumulate(cotangents: Cotangents, key: tuple[int, int], g: Value, by: int | None = None) -> None:
    """Add `g`, in the dtype of what it belongs to. Raises MalformedGraph where the rule of node `by` errs in shape."""
    type = g.builder.nodes[key[0]].types[key[1]]
    if g.type is not type:
        if g.type.shape != type.shape:
            raise _misshapen(g, key[0], type, by)
        g = g if g.dtype == type.dtype else g.cast(dtype=type.dtype)
    before = cotangents.get(key)
    cotangents[key] = g if before is None else before + g


def _misshapen(g: Value, of: int, type: TensorType, by: int | None) -> MalformedGraph:
    nodes = g.builder.nodes
    if by is None:
        return MalformedGraph(f"it is given a cotangent of {g.type}", of, nodes[of])
    return MalformedGraph(f"its rule gives %{of} : {type} a cotangent of {g.type}", by, nodes[by])
