"""A statement: one node as a client wrote it, the checks that need no types, and where its value is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.graph.errors import BadAttribute, BadReference, EngineError
from engine.graph.faults import Faults
from engine.graph.op import Definition


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
