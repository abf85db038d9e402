"""Descriptions of ops for the code generators of the clients, taken from the registry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine import Registry, describe


@dataclass(frozen=True)
class Operand:
    """An operand of an op. A variadic operand is a list, which some ops allow to be empty."""

    name: str
    optional: bool
    variadic: bool


@dataclass(frozen=True)
class Attribute:
    """An attribute of an op.

    `kind` is the catalogue's type: int, ints, float, bool, string, dtype, tensor or function; a printer must tolerate
    others. `default` is the value of an unstated attribute, or None if only `doc` describes it. `since` is the first
    opset with the attribute, which may be later than that of its op.
    """

    name: str
    kind: str
    required: bool
    doc: str
    default: Any
    choices: tuple[str, ...]
    since: int


@dataclass(frozen=True)
class OpDescription:
    """An op. `fed` is true for leaves, whose tensors come with a call. `several` is true if it has several results.

    `since` is the first opset with the op. Graphs must state it unless it is 1.
    """

    name: str
    doc: str
    gradient: str
    operands: tuple[Operand, ...]
    attributes: tuple[Attribute, ...]
    fed: bool
    several: bool
    since: int

    @property
    def is_of_a_node(self) -> bool:
        """Whether the op is a method of its first operand.

        Ops without operands, or on a list, are methods of the graph.
        """
        return bool(self.operands) and not any(operand.variadic for operand in self.operands)


def described(registry: Registry) -> list[OpDescription]:
    """Return descriptions of all ops, by name."""
    return [_described(row, fed=registry.ops[row["name"]].is_leaf) for row in describe(registry)]


def later(ops: Iterable[OpDescription]) -> dict[str, int]:
    """Return the ops and attributes that opset 1 lacks, with their first opset.

    Keys are names of ops, and `op.attribute` for attributes.
    """
    since: dict[str, int] = {}
    for op in ops:
        since |= {op.name: op.since} if op.since > 1 else {}
        since |= {f"{op.name}.{each.name}": each.since for each in op.attributes if each.since > op.since}
    return since


def _described(row: dict[str, Any], *, fed: bool) -> OpDescription:
    return OpDescription(
        name=row["name"],
        doc=row["doc"] if row["since"] == 1 else f"{row['doc']}\n\nSince opset {row['since']}.",
        gradient=row["gradient"],
        operands=tuple(_operand(name) for name in row["operands"]),
        attributes=tuple(_attribute(stated, row["since"]) for stated in row["attributes"]),
        fed=fed,
        several=row["several_outputs"],
        since=row["since"],
    )


def _operand(stated: str) -> Operand:
    variadic = "..." in stated
    return Operand(stated.rstrip("?."), optional="?" in stated and not variadic, variadic=variadic)


def _attribute(stated: dict[str, Any], op_since: int) -> Attribute:
    return Attribute(
        name=stated["name"],
        kind=stated["type"],
        required=stated["required"],
        doc=stated["doc"] if stated["since"] == op_since else f"{stated['doc']}; since opset {stated['since']}",
        default=stated.get("default"),
        choices=tuple(stated.get("choices", ())),
        since=stated["since"],
    )
