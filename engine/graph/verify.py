"""A verifier, as compilers run it between their passes: is this a graph that the rest of the engine may believe?

Everything that a node states is compared with what its op says. The tests run it on every graph that is made; nothing
in an answer's way calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.errors import EngineError
from engine.graph.ir import Graph, Node
from engine.graph.kinds import key
from engine.graph.op import Composite, Kernel
from engine.graph.tensor_type import TensorType
from engine.graph.text import print_node, print_outputs


class MalformedGraph(Exception):
    """A mistake of the engine's own: of a pass, a transform or a rule, never of a client.

    `node` is the number of the node, and `op` its op; None where the outputs are wrong.
    """

    def __init__(self, wrong: str, index: int | None = None, node: Node | None = None) -> None:
        super().__init__(wrong if index is None or node is None else f"{print_node(index, node)}: {wrong}")
        self.node = index
        self.op = None if node is None else node.op.name


def verify(graph: Graph, expanded: bool = False) -> None:
    """Raise MalformedGraph for the first thing that is wrong with `graph`.

    Where it is `expanded`, there may be no `grad` nodes any more.
    """
    fed: dict[Any, int] = {}
    for index, node in enumerate(graph.nodes):
        for check in _CHECKS:
            for wrong in check(_Place(graph, index, node)):
                raise MalformedGraph(wrong, index, node)
        if expanded and not (node.is_leaf or isinstance(node.op, Kernel)):
            raise MalformedGraph("it should have been written out", index, node)
        if node.is_leaf and fed.setdefault(node.attrs["feed"], index) != index:
            raise MalformedGraph(f"%{fed[node.attrs['feed']]} is fed under the same key", index, node)
    if not all(_names(i, len(graph.nodes)) for i in graph.outputs):
        raise MalformedGraph(f"{print_outputs(graph.outputs)}: there are {len(graph.nodes)} nodes")


class _Place(NamedTuple):
    graph: Graph
    number: int
    node: Node

    @property
    def operands(self) -> list[Any]:
        """What rules are told of the operands: a type each, or several."""
        operands = [self.graph.nodes[i] for i in self.node.operands]
        return [x.types if x.op.several else x.type for x in operands]


def _names(operand: object, before: int) -> bool:
    return type(operand) is int and 0 <= operand < before


def _operands(at: _Place) -> Iterator[str]:
    """Earlier nodes, as many and of the dtypes that the op takes; of several results, one at a time."""
    for operand in at.node.operands:
        if not _names(operand, at.number):
            yield f"operand %{operand} is no earlier node"
        elif at.graph.nodes[operand].op.several and at.node.op.name != "get_output":
            yield f"operand %{operand} has several results, and is not read through get_output"
        elif at.node.op.name == "get_output" and not at.graph.nodes[operand].op.several:
            yield f"operand %{operand} has one result"
    try:
        at.node.op.check_operands(at.operands)
    except EngineError as error:
        yield str(error)


def _definition(at: _Place) -> Iterator[str]:
    """An op of the registry, and none that is only a spelling for others."""
    if not at.node.op.internal and at.graph.registry.ops.get(at.node.op.name) is not at.node.op:
        yield "the registry has no such op"
    if isinstance(at.node.op, Composite):
        yield "it is a composite, which should have been written out"


def _origin(at: _Place) -> Iterator[str]:
    """None, or a client's node with an op of the registry."""
    origin = at.node.origin
    if origin is not None and (origin.node < 0 or origin.op not in at.graph.registry.ops):
        yield f"its origin is node {origin.node} ({origin.op})"


def _attributes(at: _Place) -> Iterator[str]:
    """All that the op has, in its order, in the form that rules receive; for a leaf, where its value comes from."""
    wanted = ["feed"] if at.node.is_leaf else list(at.node.op.attrs)
    if list(at.node.attrs) != wanted:
        yield f"its attributes are {', '.join(at.node.attrs) or 'none'}, but the op has {', '.join(wanted) or 'none'}"
    for name, attr in {} if at.node.is_leaf else at.node.op.attrs.items():
        if not _is_of_kind(attr, at.node.attrs[name]):
            yield f"attribute {name} is no {attr.kind} in the form that rules receive: {at.node.attrs[name]!r:.64}"


def _is_of_kind(attr: Attr, value: Any) -> bool:
    if value is None:
        return attr.default is None
    return attr.definition.is_bound(value) and (not attr.choices or value in attr.choices)


def _canonical(at: _Place) -> Iterator[str]:
    """Attributes that the op leaves as they are."""
    if at.node.is_leaf:
        return
    try:
        again = at.node.op.canonical(dict(at.node.attrs), *at.operands)
    except EngineError as error:
        yield f"its attributes are refused: {error}"
        return
    for name, value in again.items():
        if value is not at.node.attrs[name] and key(value) != key(at.node.attrs[name]):
            yield f"attribute {name} is {at.node.attrs[name]!r:.64}, whose canonical form is {value!r:.64}"


def _types(at: _Place) -> Iterator[str]:
    """What the op infers anew; for a leaf, any one type of the opset."""
    for type in at.node.types:
        if not _is_type(type):
            yield f"{type} is no type of the opset"
    try:
        inferred = at.node.type if at.node.is_leaf else at.node.op.infer(*at.operands, **at.node.attrs)
    except EngineError as error:
        yield f"no type can be inferred: {error}"
        return
    results = inferred if isinstance(inferred, tuple) else (inferred,)
    try:
        at.node.op.check_connection(at.operands, results)
    except TypeError as error:
        yield str(error)
    if results != at.node.types or isinstance(inferred, tuple) != at.node.op.several:
        yield f"the op infers {', '.join(map(str, results))}"


def _is_type(found: TensorType) -> bool:
    return all(type(extent) is int and extent >= 0 for extent in found.shape) and found.dtype.name in DTYPES


#: each looks at what the ones before it have found to be sound
_CHECKS: Final[tuple[Callable[[_Place], Iterator[str]], ...]] = (
    _definition,
    _operands,
    _origin,
    _attributes,
    _canonical,
    _types,
)
