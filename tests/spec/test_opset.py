"""The registry keeps what opset 1 promises: see opset1.toml, which is frozen."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from engine import DTYPES, registry

FROZEN = tomllib.loads(Path(__file__).with_name("opset1.toml").read_text(encoding="utf-8"))
FIRST_PART = sorted(name for name, op in FROZEN["op"].items() if op.get("part", 1) == 1)
PRESENT = sorted(name for name in FROZEN["op"] if name in registry().ops)


def plain(default: Any) -> Any:
    """A default as the frozen file writes it: lists for tuples, names for dtypes."""
    return list(default) if isinstance(default, tuple) else getattr(default, "name", default)


def written(attr: Any) -> dict[str, Any]:
    """One attribute in the notation of the frozen file."""
    if attr.required:
        return {"required": True}
    return {} if attr.default is None else {"default": plain(attr.default)}


def attributes_of(op: Any) -> dict[str, dict[str, Any]]:
    """All attributes of the op in that notation."""
    return {name: written(attr) for name, attr in op.attrs.items()}


def aliases_of(op: Any) -> dict[str, list[str]]:
    """Spelling → systems, in the notation of the frozen file."""
    return {spelling: sorted(systems.replace(",", " ").split()) for spelling, systems in op.aliases.items()}


def test_the_first_part_is_complete() -> None:
    missing = sorted(set(FIRST_PART) - set(registry().ops))
    assert not missing, f"{len(missing)} ops of opset 1 are missing: {', '.join(missing)}"


@pytest.mark.parametrize("name", PRESENT)
def test_operands(name: str) -> None:
    assert list(registry().ops[name].operands) == FROZEN["op"][name]["operands"]


@pytest.mark.parametrize("name", PRESENT)
def test_attributes_and_defaults(name: str) -> None:
    expected = FROZEN["op"][name].get("attrs", {})
    found = attributes_of(registry().ops[name])
    assert found == expected
    types = {attribute: type(entry.get("default")) for attribute, entry in found.items()}
    assert types == {attribute: type(entry.get("default")) for attribute, entry in expected.items()}, (
        "1, 1.0 and true are equal in Python and different to a client"
    )


@pytest.mark.parametrize("name", PRESENT)
def test_choices(name: str) -> None:
    for attribute, attr in registry().ops[name].attrs.items():
        assert list(attr.choices) == FROZEN["choices"].get(attribute, []), attribute


@pytest.mark.parametrize("name", PRESENT)
def test_aliases(name: str) -> None:
    expected = {
        spelling: sorted(systems) for spelling, systems in FROZEN["op"][name].get("aliases", {}).items()
    }
    assert aliases_of(registry().ops[name]) == expected


@pytest.mark.parametrize("name", PRESENT)
def test_every_spelling_is_found_whatever_its_case(name: str) -> None:
    op = registry().ops[name]
    for spelling in (name, *FROZEN["op"][name].get("aliases", {})):
        assert registry().find(spelling) is op, spelling
        assert registry().find(spelling.upper()) is op, spelling.upper()
        assert registry().find(spelling.lower()) is op, spelling.lower()


@pytest.mark.parametrize("name", PRESENT)
def test_number_of_outputs(name: str) -> None:
    assert registry().ops[name].several is FROZEN["op"][name].get("several_outputs", False)


def test_attribute_kinds() -> None:
    kinds = registry().attributes
    expected = {name: kind for name, kind in FROZEN["attributes"].items() if name in kinds}
    assert {name: kinds[name] for name in expected} == expected


def test_dtypes() -> None:
    assert list(DTYPES) == FROZEN["dtypes"]


def test_the_ops_are_of_opset_1() -> None:
    assert {name: registry().ops[name].since for name in PRESENT} == dict.fromkeys(PRESENT, FROZEN["opset"])
