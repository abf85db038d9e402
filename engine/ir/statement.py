"""A statement: one node as a client wrote it, the checks that need no types, and where its value is written."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.ir.errors import BadAttribute, BadReference, EngineError, Faults
from engine.ir.graph import Builder, Node, Origin, Value
from engine.ir.op import Definition


@dataclass(slots=True, unsafe_hash=True)  # frozen, making one would take four times as long
class Statement:
    """One node of a client's graph: its id is its position. `attrs` holds what the client stated, unchecked.

    Never changed once made.
    """

    op: Definition
    operands: tuple[int, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None

    def located(self, error: EngineError, node: int) -> EngineError:
        """`error`, said to have happened here."""
        return error.at(node, self.op.name, self.name)


def count_operands(statements: Iterable[tuple[int, Statement]], faults: Faults) -> None:
    """Look for operands too few or too many, as `Program.build` would, which a program with faults never comes to."""
    for node, statement in statements:
        with faults.at(node, statement.op.name, statement.name):
            statement.op.check_count(len(statement.operands))


def check_references(statements: Sequence[Statement | None], node: int, statement: Statement) -> None:
    """Raise BadReference for an operand of a node that is no earlier node, or one of several results, unprojected."""
    for position, operand in enumerate(statement.operands):
        if not 0 <= operand < node:
            wanted = f"an earlier node, 0 to {node - 1}" if node else "absent: node 0 has no earlier nodes"
            raise BadReference(
                f"operand {position} must be {wanted}, but is {operand}",
                operand=position,
                expected=wanted,
                got=str(operand),
            )
        producer = statements[operand]
        if producer is not None and producer.op.several != (statement.op.name == "get_output"):
            raise _projection_error(position, operand, producer.op)


def _projection_error(position: int, operand: int, producer: Definition) -> BadReference:
    if producer.several:
        detail = f"node {operand} ({producer.name}) has several outputs: read one of them through get_output"
    else:
        detail = f"get_output reads an op with several outputs, but node {operand} is {producer.name}"
    return BadReference(f"operand {position}: {detail}", operand=position, got=f"node {operand} ({producer.name})")


def check_functions(op: Definition, attrs: Mapping[str, Any], count: int) -> None:
    """Raise BadAttribute for an attribute that names none of the `count` functions that may be named."""
    for name in op.functions:
        index = attrs.get(name)
        if index is not None and index >= count:
            wanted = f"the index of an earlier function, 0 to {count - 1}" if count else "absent: there is no function"
            raise BadAttribute(f"attribute {name} must be {wanted}, but is {index}", expected=wanted, got=str(index))


class WrittenValues(Mapping[int, Value]):
    """The values of a program's nodes, as far as these are written; what is kept of each is a number in the builder."""

    def __init__(self, builder: Builder, count: int) -> None:
        """Start with none of so many nodes written."""
        self.builder = builder
        self.numbers = [-1] * count

    def put(self, node: int, value: Value) -> None:
        """Record the value of a node."""
        self.numbers[node] = value.index

    def __getitem__(self, node: int) -> Value:
        number = self.numbers[node] if 0 <= node < len(self.numbers) else -1
        if number < 0:
            raise KeyError(node)
        return self.builder.value(number)

    def __iter__(self) -> Iterator[int]:
        return (node for node, number in enumerate(self.numbers) if number >= 0)

    def __len__(self) -> int:
        return len(self.numbers) - self.numbers.count(-1)


class Repeats:
    """Writer of statements that repeat an earlier one: the same op and attributes, on operands of the same types.

    Types are compared by identity, since repeated nodes share them. Leaves, composites and statements with large
    attributes are never repeats.
    """

    def __init__(self, values: WrittenValues, function: int | None = None) -> None:
        """`function` is the index of the function whose statements they are."""
        self._builder, self._numbers, self._function = values.builder, values.numbers, function
        self._known: dict[Hashable, Node] = {}

    def write_node(self, node: int, statement: Statement, attrs: Hashable) -> bool:
        """Write a statement that repeats one, and return whether it did. `attrs` is the key of its attributes."""
        builder, op = self._builder, statement.op
        read = tuple([self._numbers[i] for i in statement.operands])
        nodes = builder.nodes
        like = self._known.get((op, attrs, *[id(nodes[i].types) for i in read]))
        if like is None or not builder.may_repeat:
            return False
        self._numbers[node] = builder.repeat(like, read, Origin(node, op.name, function=self._function))
        return True

    def keep(self, node: int, statement: Statement, attrs: Hashable) -> None:
        """Remember the node of a statement, if it is one node of its op, on its operands."""
        op, nodes = statement.op, self._builder.nodes
        made = nodes[self._numbers[node]]
        if attrs is None or op.is_leaf or op.is_composite or made.op is not op:
            return
        self._known[op, attrs, *[id(nodes[i].types) for i in made.operands]] = made
