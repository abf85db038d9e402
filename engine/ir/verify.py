"""A verifier, as compilers run it between their passes: is this a graph that the rest of the engine may believe?

Everything that a node states is compared with what its op says. The tests run it on every graph that is made; nothing
in an answer's way calls it. Graphs say the same few things over and over: what was found to be sound need not be
looked at again.
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
    """A mistake of the engine's own: of a pass, a transform or a rule, never of a client.

    `node` is the number of the node, and `op` its op; None where the outputs are wrong.
    """

    def __init__(self, wrong: str, index: int | None = None, node: Node | None = None) -> None:
        super().__init__(wrong if index is None or node is None else f"{print_node(index, node)}: {wrong}")
        self.node = index
        self.op = None if node is None else node.op.name


def verify(graph: Graph, expanded: bool = False, sound: MutableSet[Hashable] | None = None) -> None:
    """Raise MalformedGraph for the first thing that is wrong with `graph`.

    Where it is `expanded`, there may be no `grad` nodes any more. `sound` holds what has been said before and was
    right, whatever the graph: it is not compared with the op again, and what is right here joins it.
    """
    sound = set() if sound is None else sound
    fed: dict[Any, int] = {}
    for index, node in enumerate(graph.nodes):
        if not _is_known(graph, index, node, sound) and (wrong := _mistake(_Place(graph, index, node), sound)):
            raise MalformedGraph(wrong, index, node)
        op = node.op
        if expanded and not (op.is_leaf or isinstance(op, Kernel)):
            raise MalformedGraph("it should have been written out", index, node)
        if op.is_leaf and fed.setdefault(node.attrs["feed"], index) != index:
            raise MalformedGraph(f"%{fed[node.attrs['feed']]} is fed under the same key", index, node)
    if not all(_names(i, len(graph.nodes)) for i in graph.outputs):
        raise MalformedGraph(f"{print_outputs(graph.outputs)}: there are {len(graph.nodes)} nodes")


class _Place(NamedTuple):
    graph: Graph
    number: int
    node: Node

    @property
    def operands(self) -> list[Any]:
        """Types of the operands: one each, or several."""
        operands = map(self.graph.nodes.__getitem__, self.node.operands)
        return [x.types if x.op.several else x.types[0] for x in operands]

    @property
    def statement(self) -> Hashable | None:
        """Statement of the node, whatever the graph."""
        return _statement(self.node, self.operands)


def _statement(node: Node, operands: Sequence[Any]) -> Hashable | None:
    """Return the op and all that it is compared with; None if that is long, or of one graph alone."""
    op, _, stated, types, _ = node
    if op.is_leaf:
        return op, tuple(operands), tuple(stated), types  # whatever it is fed under
    attrs = (stated if isinstance(stated, KeyedAttributes) else KeyedAttributes(stated)).key
    if attrs is None or op.internal:
        return None
    return op, tuple(operands), attrs, types


def _is_known(graph: Graph, number: int, node: Node, sound: MutableSet[Hashable]) -> bool:
    """Whether a node stands where it may, and says what has been said before: nearly all do, so this is to be quick."""
    op, operands, _, _, origin = node
    nodes, ops = graph.nodes, graph.registry.ops
    types, reads_one_of_several = [], op.name == "get_output"
    for operand in operands:
        if not _names(operand, number):
            return False
        read = nodes[operand]
        if read.op.several != reads_one_of_several:
            return False
        types.append(read.types if reads_one_of_several else read.types[0])
    if origin is not None and (origin.node < 0 or origin.op not in ops):
        return False
    for result in node.types:
        for extent in result.shape:
            if type(extent) is not int:  # but equal to one
                return False
    return ops.get(op.name) is op and _statement(node, types) in sound


def _mistake(at: _Place, sound: MutableSet[Hashable]) -> str | None:
    for check in (*_OF_THE_NODE, *_OF_THE_STATEMENT):
        if wrong := check(at):
            return wrong
    if (statement := at.statement) is not None:
        sound.add(statement)
    return None


def _names(operand: object, before: int) -> bool:
    return type(operand) is int and 0 <= operand < before


def _definition(at: _Place) -> str | None:
    """An op of the registry, and none that is only a spelling for others."""
    op = at.node.op
    if not op.internal and at.graph.registry.ops.get(op.name) is not op:
        return "the registry has no such op"
    return "it is a composite, which should have been written out" if isinstance(op, Composite) else None


def _operands(at: _Place) -> str | None:
    """Earlier nodes; of several results, one at a time."""
    reads_one_of_several = at.node.op.name == "get_output"
    for operand in at.node.operands:
        if not _names(operand, at.number):
            return f"operand %{operand} is no earlier node"
        if at.graph.nodes[operand].op.several != reads_one_of_several:
            several = "one result" if reads_one_of_several else "several results, and is not read through get_output"
            return f"operand %{operand} has {several}"
    return None


def _origin(at: _Place) -> str | None:
    """Check that it is None, or a client's node with an op of the registry."""
    origin = at.node.origin
    if origin is None or (origin.node >= 0 and origin.op in at.graph.registry.ops):
        return None
    return f"its origin is node {origin.node} ({origin.op})"


def _types(at: _Place) -> str | None:
    """Types of the opset."""
    for result in at.node.types:
        are_extents = all(type(extent) is int and extent >= 0 for extent in result.shape)
        if not are_extents or element_type(result.dtype) is None:
            return f"{result} is no type of the opset"
    return None


def _signature(at: _Place) -> str | None:
    """Check number and dtypes of the operands."""
    try:
        at.node.op.check_operands(at.operands)
    except EngineError as error:
        return str(error)
    return None


def _attributes(at: _Place) -> str | None:
    """Check that there are all attributes, in the op's order and the form that rules receive; for a leaf, its feed."""
    node = at.node
    wanted = ["feed"] if node.is_leaf else list(node.op.attrs)
    if list(node.attrs) != wanted:
        return f"its attributes are {', '.join(node.attrs) or 'none'}, but the op has {', '.join(wanted) or 'none'}"
    for name, attr in {} if node.is_leaf else node.op.attrs.items():
        value = node.attrs[name]
        if value is None:
            is_of_kind = attr.default is None
        else:
            is_of_kind = attr.definition.is_bound(value) and (not attr.choices or value in attr.choices)
        if not is_of_kind:
            return f"attribute {name} is no {attr.kind} in the form that rules receive: {value!r:.64}"
    return None


def _canonical(at: _Place) -> str | None:
    """Attributes that the op leaves as they are."""
    if at.node.is_leaf:
        return None
    try:
        again = at.node.op.canonical(dict(at.node.attrs), *at.operands)
    except EngineError as error:
        return f"its attributes are refused: {error}"
    for name, value in again.items():
        if value is not at.node.attrs[name] and key(value) != key(at.node.attrs[name]):
            return f"attribute {name} is {at.node.attrs[name]!r:.64}, whose canonical form is {value!r:.64}"
    return None


def _inference(at: _Place) -> str | None:
    """Check the types against what the op infers anew; a leaf has any one type."""
    node = at.node
    try:
        inferred = node.type if node.is_leaf else node.op.infer(*at.operands, **node.attrs)
    except EngineError as error:
        return f"no type can be inferred: {error}"
    results = inferred if isinstance(inferred, tuple) else (inferred,)
    try:
        node.op.check_connection(at.operands, results)
    except TypeError as error:
        return str(error)
    is_stated = results == node.types and isinstance(inferred, tuple) == node.op.several
    return None if is_stated else f"the op infers {', '.join(map(str, results))}"


_Check = Callable[[_Place], str | None]

#: of the node where it stands; each looks at what the ones before it have found to be sound
_OF_THE_NODE: Final[tuple[_Check, ...]] = (_definition, _operands, _origin, _types)

#: of what it says, wherever that is said
_OF_THE_STATEMENT: Final[tuple[_Check, ...]] = (_signature, _attributes, _canonical, _inference)
