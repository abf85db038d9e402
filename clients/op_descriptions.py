"""What an op is to a client, in whatever language: its operands, attributes and words, from the registry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine import Registry, describe


@dataclass(frozen=True)
class Operand:
    """An earlier node that an op works on. A variadic one stands for a list, which some ops take empty."""

    name: str
    optional: bool
    variadic: bool


@dataclass(frozen=True)
class Attribute:
    """What else an op is told.

    `kind` is the word of the catalogue: int, ints, float, bool, string, dtype, tensor or function; it may be one
    that a printer does not know. `default` says what holds where it is not stated; None: what `doc` says. Graphs
    have it `since` an opset, which may be later than that of its op.
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
    """One op. `fed` ones are leaves, whose tensors come with a call; of `several` results, one is read at a time.

    Graphs have it `since` an opset, which they have to state where it is not the first.
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
        """Whether it is a method of its first operand; else of the graph, having none, or a list of equal ones."""
        return bool(self.operands) and not any(operand.variadic for operand in self.operands)


def described(known: Registry) -> list[OpDescription]:
    """All ops, by name."""
    return [_described(row, fed=known.ops[row["name"]].is_leaf) for row in describe(known)]


def later(ops: Iterable[OpDescription]) -> dict[str, int]:
    """What graphs of the first opset lack, and the opset that each is of: ops by name, attributes as `op.attribute`."""
    found: dict[str, int] = {}
    for op in ops:
        found |= {op.name: op.since} if op.since > 1 else {}
        found |= {f"{op.name}.{each.name}": each.since for each in op.attributes if each.since > op.since}
    return found


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
