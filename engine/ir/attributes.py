"""Attributes of ops: their declarations, and the check of what a client sent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.ir.errors import BadAttribute, Faults, OverBudget, counted, printable
from engine.ir.kinds import ATTRIBUTE_KINDS, key
from engine.ir.kinds.kind import AttributeKind
from engine.ir.opset import LATEST, admit_attribute
from engine.ir.spellings import familiar_attributes, nearest, plain

REQUIRED: Final = object()


@dataclass(frozen=True)
class Attr:
    """One attribute of an op.

    `kind` is one of ATTRIBUTE_KINDS and, for one attribute name, the same in every op. A `default` of None means that
    absence has a meaning of its own, which `doc` states; REQUIRED means that there is none. `minimum` bounds an
    int and every entry of ints; `longest` the number of entries: a few for each axis, unless they stand for elements.
    `typed_by` names the attribute that says of which dtype a number is, where the operands do not. Graphs have it
    `since` an opset, and those of older ones its default. It may stand `instead_of` another, which is not stated then.
    """

    kind: str
    default: Any = REQUIRED
    doc: str = ""
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    longest: int = 128
    typed_by: str = ""
    since: int = 1
    instead_of: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ATTRIBUTE_KINDS:
            raise ValueError(f"there is no kind of attributes called {self.kind} (known: {', '.join(ATTRIBUTE_KINDS)})")

    @property
    def definition(self) -> AttributeKind:
        """Its kind."""
        return ATTRIBUTE_KINDS[self.kind]

    @property
    def required(self) -> bool:
        """Whether a node must state it."""
        return self.default is REQUIRED

    def check(self, name: str, value: Any) -> Any:
        """`value` in the form that rules receive. Raises BadAttribute."""
        kind = ATTRIBUTE_KINDS[self.kind]
        if not kind.admits(value):
            raise _bad(name, kind.wanted, value)
        if kind.is_list and len(value) > self.longest:
            got = counted(len(value), "entry", "entries")
            raise OverBudget(
                f"attribute {name} has {got}, and may have at most {self.longest}",
                expected=f"at most {counted(self.longest, 'entry', 'entries')}",
                got=got,
            )
        if self.choices and value not in self.choices:
            raise _bad(name, "one of " + ", ".join(self.choices), value)
        if self.minimum is not None and np.min(value, initial=self.minimum) < self.minimum:
            entries = "whole numbers" if kind.is_list else "a whole number"
            raise _bad(name, f"{entries} of at least {self.minimum}", value)
        return kind.bound(value)

    def absent(self, name: str) -> Any:
        """Return the value for a node that does not state it. Raises BadAttribute."""
        if self.required:
            raise BadAttribute(f"attribute {name} is required", expected=name, got="nothing")
        return self.default


def _bad(name: str, wanted: str, value: Any) -> BadAttribute:
    is_list = isinstance(value, (list, tuple))  # of which the first entries are shown
    got = printable(f"[{', '.join(map(_shown, value[:64]))}]") if is_list else _shown(value)
    return BadAttribute(f"attribute {name} must be {wanted}, but is {got}", expected=wanted, got=got)


def _shown(value: Any) -> str:
    """A value, or an entry of a list, as a message shows it: at a cost that does not grow with it."""
    if isinstance(value, (list, tuple)):
        return "[…]"
    if isinstance(value, str):
        return printable(f"“{value[:64]}”")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{…}"
    try:
        return printable(str(value))
    except ValueError:  # Python writes out no number of more than 4,300 digits
        return "a number of thousands of digits"


def bind(declared: Mapping[str, Attr], given: Mapping[str, Any], opset: int = LATEST) -> dict[str, Any]:
    """The attributes of one node in a graph of `opset`, checked and completed by defaults.

    Raises BadAttribute for all that are wrong.
    """
    if not declared and not given:
        return {}
    faults = Faults()
    for name in given:
        with faults:
            if name not in declared:
                raise _unknown(name, [known for known, attr in declared.items() if attr.since <= opset])
            admit_attribute(name, declared[name].since, opset)
            _check_alone(name, declared[name].instead_of, given)
    bound = {}
    for name, attr in declared.items():
        with faults:
            stated = name in given and attr.since <= opset
            bound[name] = attr.check(name, given[name]) if stated else attr.absent(name)
    faults.report()
    for name, attr in declared.items():
        if attr.typed_by:
            bound[name] = attr.definition.typed(bound[name], bound[attr.typed_by])
    return bound


def _check_alone(name: str, other: str, given: Mapping[str, Any]) -> None:
    if other and other in given:
        raise BadAttribute(
            f"attribute {name} stands in place of {other}, but both are stated",
            expected=f"{name} or {other}",
            got="both",
        )


def complete(op: str, declared: Mapping[str, Attr], stated: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that a rule states for a node of `op`, completed by defaults.

    Raises TypeError, as Python for keyword arguments: that a name is wrong is the rule's mistake, not the client's.
    """
    if stated.keys() != declared.keys():
        _check_names(op, declared, stated)
    return {name: stated.get(name, attr.default) for name, attr in declared.items()}


def _check_names(op: str, declared: Mapping[str, Attr], stated: Mapping[str, Any]) -> None:
    unknown = [name for name in stated if name not in declared]
    if unknown:
        known = ", ".join(declared) or "none"
        raise TypeError(f"{op} has no attribute {', '.join(unknown)} (known: {known})")
    missing = [name for name, attr in declared.items() if attr.required and name not in stated]
    if missing:
        raise TypeError(f"{op} needs the attribute {', '.join(missing)}")


def _unknown(name: str, declared: Sequence[str]) -> BadAttribute:
    known = ", ".join(declared) or "none"
    # The attribute that another system calls by this name, or else the nearest.
    names, spelled = {plain(ours): ours for ours in declared}, plain(name)
    others = next((ours for theirs, ours in familiar_attributes().items() if plain(theirs) == spelled), ())
    meant = next((plain(ours) for ours in (name, *others) if plain(ours) in names), None) or nearest(spelled, names)
    hint = f"; did you mean {names[meant]}?" if meant else ""
    shown = printable(name)
    return BadAttribute(
        f"there is no attribute {shown} here (known: {known}){hint}", expected=f"one of: {known}", got=shown
    )


def keyed(attrs: Mapping[str, Any]) -> tuple[tuple[str, Hashable], ...]:
    """Return a key that tells attributes apart: their names, in order, and the keys of their values."""
    return tuple([(name, key(value)) for name, value in attrs.items()])
