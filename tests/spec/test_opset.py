"""The registry keeps what opset 1 promises: see opset1.toml, which is frozen."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
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


def folded(aliases: Iterable[tuple[str, Iterable[str]]]) -> dict[str, set[str]]:
    """Spelling → systems, case aside: a spelling that differs from another only by case is the same one."""
    found: dict[str, set[str]] = {}
    for spelling, systems in aliases:
        found.setdefault(spelling.lower(), set()).update(systems)
    return found


def found_aliases(name: str) -> dict[str, set[str]]:
    """What the registry says."""
    return folded((alias, systems.split(", ")) for alias, systems in registry().ops[name].aliases.items())


def promised_aliases(name: str) -> dict[str, set[str]]:
    """What was promised."""
    return folded(FROZEN["op"][name].get("aliases", {}).items())


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
    assert set(found_aliases(name)) == set(promised_aliases(name))


@pytest.mark.parametrize("name", PRESENT)
def test_the_systems_behind_the_aliases(name: str) -> None:
    """The promise names systems for a group of spellings; the registry may say which of them has which."""
    found, promised = found_aliases(name), promised_aliases(name)
    assert all(found[spelling] <= promised[spelling] for spelling in found), (found, promised)
    assert set().union(*found.values()) == set().union(*promised.values())


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
    assert {name: kinds[name].spelling for name in expected} == expected


def test_dtypes() -> None:
    assert list(DTYPES) == FROZEN["dtypes"]


def test_the_ops_are_of_opset_1() -> None:
    assert {name: registry().ops[name].since for name in PRESENT} == dict.fromkeys(PRESENT, FROZEN["opset"])
