"""Verifier, as compilers run it between passes: checks that a graph is one that the rest of the engine may rely on.

It compares everything that a node states with its op. The tests run it on every graph; no request runs it. Graphs
repeat the same few statements, so a statement that was verified once is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, MutableSet, Sequence
from typing import Any, Final, NamedTuple

from engine.ir.errors import EngineError
from engine.ir.graph import Graph, KeyedAttributes, Node
from engine.ir.kinds import key
from engine.ir.op import Composite, Kernel
from engine.ir.tensor_type import element_type
from engine.ir.text import print_node, print_outputs


class MalformedGraph(Exception):
    """A bug in the engine: in a pass, a transform or a rule, never in a client's graph.

    `node` is the index of the node, and `op` its op; None if the outputs are wrong.
    """

    def __init__(self, detail: str, index: int | None = None, node: Node | None = None) -> None:
        super().__init__(detail if index is None or node is None else f"{print_node(index, node)}: {detail}")
        self.node = index
        self.op = None if node is None else node.op.name


def verify(graph: Graph, expanded: bool = False, verified: MutableSet[Hashable] | None = None) -> None:
    """Raise MalformedGraph for the first defect of `graph`.

    If it is `expanded`, it may have no `grad` nodes. `verified` is a cache of statements that were found correct, in
    any graph: they are not compared with the op again, and correct statements of this graph are added.
    """
    verified = set() if verified is None else verified
    fed: dict[Any, int] = {}
    for index, node in enumerate(graph.nodes):
        if not _is_verified(graph, index, node, verified) and (
            detail := _first_defect(_Context(graph, index, node), verified)
        ):
            raise MalformedGraph(detail, index, node)
        op = node.op
        if expanded and not (op.is_leaf or isinstance(op, Kernel)):
            raise MalformedGraph("it should have been written out", index, node)
        if op.is_leaf and fed.setdefault(node.attrs["feed"], index) != index:
            raise MalformedGraph(f"%{fed[node.attrs['feed']]} is fed under the same key", index, node)
    if not all(_is_node_index(i, len(graph.nodes)) for i in graph.outputs):
        raise MalformedGraph(f"{print_outputs(graph.outputs)}: there are {len(graph.nodes)} nodes")


class _Context(NamedTuple):
    graph: Graph
    position: int
    node: Node

    @property
    def operands(self) -> list[Any]:
        """Types of the operands: one type each, or a tuple for an op with several results."""
        operands = map(self.graph.nodes.__getitem__, self.node.operands)
        return [x.types if x.op.several else x.types[0] for x in operands]

    @property
    def statement(self) -> Hashable | None:
        """Cache key of the node's statement, independent of the graph."""
        return _statement(self.node, self.operands)


def _statement(node: Node, operands: Sequence[Any]) -> Hashable | None:
    """Return the op and everything it is compared with; None if that is large, or specific to one graph."""
    op, _, attrs, types, _ = node
    if op.is_leaf:
        return op, tuple(operands), tuple(attrs), types  # without the feed key
    attrs_key = (attrs if isinstance(attrs, KeyedAttributes) else KeyedAttributes(attrs)).key
    if attrs_key is None or op.internal:
        return None
    return op, tuple(operands), attrs_key, types


def _is_verified(graph: Graph, index: int, node: Node, verified: MutableSet[Hashable]) -> bool:
    """Return whether a node is valid at its position and its statement is cached.

    Nearly all are, so this must be fast.
    """
    op, operands, _, _, origin = node
    nodes, ops = graph.nodes, graph.registry.ops
    types, is_projection = [], op.name == "get_output"
    for operand in operands:
        if not _is_node_index(operand, index):
            return False
        operand_node = nodes[operand]
        if operand_node.op.several != is_projection:
            return False
        types.append(operand_node.types if is_projection else operand_node.types[0])
    if origin is not None and (origin.node < 0 or origin.op not in ops):
        return False
    for result in node.types:
        for extent in result.shape:
            if type(extent) is not int:  # NumPy integers would hash alike
                return False
    return ops.get(op.name) is op and _statement(node, types) in verified


def _first_defect(context: _Context, verified: MutableSet[Hashable]) -> str | None:
    for check in (*_NODE_CHECKS, *_STATEMENT_CHECKS):
        if detail := check(context):
            return detail
    if (statement := context.statement) is not None:
        verified.add(statement)
    return None


def _is_node_index(operand: object, end: int) -> bool:
    return type(operand) is int and 0 <= operand < end


def _definition(context: _Context) -> str | None:
    """Check that the op is in the registry, and not merely another name for other ops."""
    op = context.node.op
    if not op.internal and context.graph.registry.ops.get(op.name) is not op:
        return "the registry has no such op"
    return "it is a composite, which should have been written out" if isinstance(op, Composite) else None


def _operands(context: _Context) -> str | None:
    """Check that operands are earlier nodes, and that get_output projects those with several results."""
    is_projection = context.node.op.name == "get_output"
    for operand in context.node.operands:
        if not _is_node_index(operand, context.position):
            return f"operand %{operand} is no earlier node"
        if context.graph.nodes[operand].op.several != is_projection:
            several = "one result" if is_projection else "several results, and is not read through get_output"
            return f"operand %{operand} has {several}"
    return None


def _origin(context: _Context) -> str | None:
    """Check that the origin is None, or a client's node with an op of the registry."""
    origin = context.node.origin
    if origin is None or (origin.node >= 0 and origin.op in context.graph.registry.ops):
        return None
    return f"its origin is node {origin.node} ({origin.op})"


def _types(context: _Context) -> str | None:
    """Check that the types belong to the opset."""
    for result in context.node.types:
        are_extents = all(type(extent) is int and extent >= 0 for extent in result.shape)
        if not are_extents or element_type(result.dtype) is None:
            return f"{result} is no type of the opset"
    return None


def _signature(context: _Context) -> str | None:
    """Check the number and dtypes of the operands."""
    try:
        context.node.op.check_operands(context.operands)
    except EngineError as error:
        return str(error)
    return None


def _attributes(context: _Context) -> str | None:
    """Check that all attributes are present, in the op's order and bound; for a leaf, only the feed key."""
    node = context.node
    expected = ["feed"] if node.is_leaf else list(node.op.attrs)
    if list(node.attrs) != expected:
        return f"its attributes are {', '.join(node.attrs) or 'none'}, but the op has {', '.join(expected) or 'none'}"
    for name, attr in {} if node.is_leaf else node.op.attrs.items():
        value = node.attrs[name]
        if value is None:
            is_of_kind = attr.default is None
        else:
            is_of_kind = attr.definition.is_bound(value) and (not attr.choices or value in attr.choices)
        if not is_of_kind:
            return f"attribute {name} is no {attr.kind} in the form that rules receive: {value!r:.64}"
    return None


def _canonical(context: _Context) -> str | None:
    """Check that the op's `canonical` leaves the attributes unchanged."""
    if context.node.is_leaf:
        return None
    try:
        canonical = context.node.op.canonical(dict(context.node.attrs), *context.operands)
    except EngineError as error:
        return f"its attributes are refused: {error}"
    for name, value in canonical.items():
        if value is not context.node.attrs[name] and key(value) != key(context.node.attrs[name]):
            return f"attribute {name} is {context.node.attrs[name]!r:.64}, whose canonical form is {value!r:.64}"
    return None


def _inference(context: _Context) -> str | None:
    """Check the types against what the op infers; a leaf has any one type."""
    node = context.node
    try:
        inferred = node.type if node.is_leaf else node.op.infer(*context.operands, **node.attrs)
    except EngineError as error:
        return f"no type can be inferred: {error}"
    results = inferred if isinstance(inferred, tuple) else (inferred,)
    try:
        node.op.check_connection(context.operands, results)
    except TypeError as error:
        return str(error)
    is_stated = results == node.types and isinstance(inferred, tuple) == node.op.several
    return None if is_stated else f"the op infers {', '.join(map(str, results))}"


_Check = Callable[[_Context], str | None]

#: checks of a node at its position; each may rely on the previous ones
_NODE_CHECKS: Final[tuple[_Check, ...]] = (_definition, _operands, _origin, _types)

#: checks of a statement, independent of the graph
_STATEMENT_CHECKS: Final[tuple[_Check, ...]] = (_signature, _attributes, _canonical, _inference)
