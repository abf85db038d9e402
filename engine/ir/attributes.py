"""Attributes of ops: their declarations, and the check of the attributes that a client sent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.ir.errors import BadAttribute, Faults, OverBudget, counted, printable
from engine.ir.kinds import ATTRIBUTE_KINDS, key
from engine.ir.kinds.kind import AttributeKind
from engine.ir.opset import LATEST, admit_attribute
from engine.ir.spellings import choice_hint, familiar_attributes, join_hint, nearest, plain

REQUIRED: Final = object()


@dataclass(frozen=True)
class Attr:
    """One attribute of an op.

    `kind` is one of ATTRIBUTE_KINDS, and is the same in all ops that use the attribute's name. A `default` of None
    means that absence has a meaning of its own, which `doc` states; REQUIRED means that there is no default. `minimum`
    bounds an int and every entry of ints; `max_length` bounds the number of entries, by default to a few per axis.
    `typed_by` names the attribute that holds a number's dtype, if the operands do not determine it. Graphs may state
    the attribute `since` an opset; older ones get its default. It may be stated `instead_of` another one, but not
    together with it.
    """

    kind: str
    default: Any = REQUIRED
    doc: str = ""
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    max_length: int = 128
    typed_by: str = ""
    since: int = 1
    instead_of: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ATTRIBUTE_KINDS:
            raise ValueError(f"there is no kind of attributes called {self.kind} (known: {', '.join(ATTRIBUTE_KINDS)})")

    @property
    def definition(self) -> AttributeKind:
        """The attribute's kind."""
        return ATTRIBUTE_KINDS[self.kind]

    @property
    def required(self) -> bool:
        """Whether a node must state it."""
        return self.default is REQUIRED

    def check(self, name: str, value: Any) -> Any:
        """Return `value` in the form that rules receive. Raises BadAttribute."""
        kind = ATTRIBUTE_KINDS[self.kind]
        if not kind.admits(value):
            raise _bad(name, kind.expected, value, kind.hint(value))
        if kind.is_list and len(value) > self.max_length:
            received = counted(len(value), "entry", "entries")
            raise OverBudget(
                f"attribute {name} has {received}, but may have at most {self.max_length}",
                attribute=name,
                expected=f"at most {counted(self.max_length, 'entry', 'entries')}",
                got=received,
            )
        if self.choices and value not in self.choices:
            raise _bad(name, "one of " + ", ".join(self.choices), value, choice_hint(value, self.choices))
        if self.minimum is not None and np.min(value, initial=self.minimum) < self.minimum:
            entries = "whole numbers" if kind.is_list else "a whole number"
            raise _bad(name, f"{entries} of at least {self.minimum}", value)
        return kind.bound(value)

    def default_value(self, name: str) -> Any:
        """Return the value for a node that does not state the attribute. Raises BadAttribute."""
        if self.required:
            raise BadAttribute(f"attribute {name} is required", attribute=name, expected=name, got="nothing")
        return self.default


def _bad(name: str, expected: str, value: Any, advice: str = "") -> BadAttribute:
    is_list = isinstance(value, (list, tuple))  # show the first entries only
    received = printable(f"[{', '.join(map(_shown, value[:64]))}]") if is_list else _shown(value)
    detail = join_hint(f"attribute {name} must be {expected}, but is {received}", advice)
    return BadAttribute(detail, attribute=name, expected=expected, got=received)


def _shown(value: Any) -> str:
    """Format a value, or an entry of a list, for a message. The cost does not grow with the value's size."""
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
    except ValueError:  # Python refuses to convert integers of more than 4,300 digits
        return "a number with thousands of digits"


def bind(declared: Mapping[str, Attr], stated: Mapping[str, Any], opset: int = LATEST) -> dict[str, Any]:
    """Return the attributes of a node in a graph of `opset`, checked and completed with defaults.

    Raises BadAttribute, with all faults attached.
    """
    if not declared and not stated:
        return {}
    faults = Faults()
    for name in stated:
        with faults:
            if name not in declared:
                raise _unknown(name, [valid for valid, attr in declared.items() if attr.since <= opset])
            admit_attribute(name, declared[name].since, opset)
            _check_not_both(name, declared[name].instead_of, stated)
    bound = {}
    for name, attr in declared.items():
        with faults:
            is_stated = name in stated and attr.since <= opset
            bound[name] = attr.check(name, stated[name]) if is_stated else attr.default_value(name)
    faults.report()
    for name, attr in declared.items():
        if attr.typed_by:
            bound[name] = attr.definition.typed(bound[name], bound[attr.typed_by])
    return bound


def _check_not_both(name: str, alternative: str, stated: Mapping[str, Any]) -> None:
    if alternative and alternative in stated:
        raise BadAttribute(
            f"attribute {name} replaces {alternative}: state only one of them",
            attribute=name,
            expected=f"{name} or {alternative}",
            got="both",
        )


def complete(op: str, declared: Mapping[str, Attr], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that a rule states for a node of `op`, completed with defaults.

    Raises TypeError for a wrong name, as Python does for keyword arguments: it is an error of the rule, not of the
    client.
    """
    if stated.keys() != declared.keys():
        _check_names(op, declared, stated)
    return {name: stated.get(name, attr.default) for name, attr in declared.items()}


def _check_names(op: str, declared: Mapping[str, Attr], stated: Mapping[str, Any]) -> None:
    unknown = [name for name in stated if name not in declared]
    if unknown:
        valid = ", ".join(declared) or "none"
        raise TypeError(f"{op} has no attribute {', '.join(unknown)} (known: {valid})")
    missing = [name for name, attr in declared.items() if attr.required and name not in stated]
    if missing:
        raise TypeError(f"{op} needs the attribute {', '.join(missing)}")


def _unknown(name: str, declared: Sequence[str]) -> BadAttribute:
    valid = ", ".join(declared) or "none"
    # Suggest the attribute that another system calls by this name, or else the closest one.
    our_names, plain_name = {plain(ours): ours for ours in declared}, plain(name)
    candidates = next((ours for theirs, ours in familiar_attributes().items() if plain(theirs) == plain_name), ())
    suggestion = next((plain(ours) for ours in (name, *candidates) if plain(ours) in our_names), None) or nearest(
        plain_name, our_names
    )
    hint = f"; did you mean {our_names[suggestion]}?" if suggestion else ""
    shown = printable(name)
    return BadAttribute(
        f"there is no attribute {shown} here (known: {valid}){hint}",
        attribute=shown,
        expected=f"one of: {valid}",
        got=shown,
    )


def make_attributes_key(attrs: Mapping[str, Any]) -> tuple[tuple[str, Hashable], ...]:
    """Return a hashable key of attributes: their names, in order, and the keys of their values."""
    return tuple([(name, key(value)) for name, value in attrs.items()])
