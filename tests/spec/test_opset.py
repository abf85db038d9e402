"""The registry against the frozen specifications opset1.toml and opset2.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from engine import LATEST, OPSET, registry
from engine.ir.tensor_type import ELEMENT_TYPES
from tests.sampling import together

FROZEN = [
    tomllib.loads(Path(__file__).with_name(f"opset{opset}.toml").read_text(encoding="utf-8"))
    for opset in range(OPSET, LATEST + 1)
]
PROMISED = {name: op for frozen in FROZEN for name, op in frozen["op"].items()}
FIRST_PART = sorted(name for name, op in PROMISED.items() if op.get("part", 1) == 1)
PRESENT = sorted(name for name in PROMISED if name in registry().ops)


def toml_default(default: Any) -> Any:
    """Return a default in the notation of the frozen file: lists for tuples, names for dtypes."""
    return list(default) if isinstance(default, tuple) else getattr(default, "name", default)


def attribute_entry(attr: Any) -> dict[str, Any]:
    """Return one attribute in the notation of the frozen file."""
    choices = {"choices": list(attr.choices)} if attr.kind == "dtype" and attr.choices else {}
    if attr.required:
        return {"required": True} | choices
    return choices if attr.default is None else {"default": toml_default(attr.default)} | choices


def attribute_entries(op: Any) -> dict[str, dict[str, Any]]:
    """Return all attributes of an op in the notation of the frozen file."""
    return {name: attribute_entry(attr) for name, attr in op.attrs.items()}


def gained_attributes(name: str) -> dict[str, dict[str, Any]]:
    """Return the attributes that a later opset adds to an op."""
    return {k: v for frozen in FROZEN for k, v in frozen.get("gained", {}).get(name, {}).items()}


def fold_aliases(aliases: Iterable[tuple[str, Iterable[str]]]) -> dict[str, set[str]]:
    """Map each spelling in lower case to its systems."""
    systems_by_spelling: dict[str, set[str]] = {}
    for spelling, systems in aliases:
        systems_by_spelling.setdefault(spelling.lower(), set()).update(systems)
    return systems_by_spelling


def registry_aliases(name: str) -> dict[str, set[str]]:
    """Return the aliases of an op in the registry."""
    return fold_aliases((alias, systems.split(", ")) for alias, systems in registry().ops[name].aliases.items())


def spec_aliases(name: str) -> dict[str, set[str]]:
    """Return the aliases of an op in the specification."""
    return fold_aliases(PROMISED[name].get("aliases", {}).items())


def test_registry_contains_first_part() -> None:
    missing = sorted(set(FIRST_PART) - set(registry().ops))
    assert not missing, f"{len(missing)} ops that were promised are missing: {', '.join(missing)}"


def test_later_ops_are_in_spec() -> None:
    assert {name for name, op in registry().ops.items() if op.since > OPSET} <= {*PRESENT}


def test_op_names_do_not_clash_across_opsets() -> None:
    spellings = [
        spelling.lower() for op in PROMISED.values() for spelling in fold_aliases(op.get("aliases", {}).items())
    ]
    assert not {name for frozen in FROZEN[1:] for name in frozen["op"]} & {*FROZEN[0]["op"], *spellings}


@together
@pytest.mark.parametrize("name", PRESENT)
def test_operands_match_spec(name: str) -> None:
    assert list(registry().ops[name].operands) == PROMISED[name]["operands"]


@together
@pytest.mark.parametrize("name", PRESENT)
def test_attributes_and_defaults_match_spec(name: str) -> None:
    expected = PROMISED[name].get("attrs", {}) | gained_attributes(name)
    actual = attribute_entries(registry().ops[name])
    assert actual == expected
    types = {attribute: type(entry.get("default")) for attribute, entry in actual.items()}
    assert types == {attribute: type(entry.get("default")) for attribute, entry in expected.items()}, (
        "1, 1.0 and true are equal in Python and different to a client"
    )


@together
@pytest.mark.parametrize("name", PRESENT)
def test_choices_match_spec(name: str) -> None:
    choices = {attribute: words for frozen in FROZEN for attribute, words in frozen.get("choices", {}).items()}
    for attribute, attr in registry().ops[name].attrs.items():
        if attr.kind != "dtype":  # each op defines its own dtype choices
            assert list(attr.choices) == choices.get(attribute, []), attribute


@together
@pytest.mark.parametrize("name", PRESENT)
def test_aliases_match_spec(name: str) -> None:
    assert set(registry_aliases(name)) == set(spec_aliases(name))


@together
@pytest.mark.parametrize("name", PRESENT)
def test_alias_systems_match_spec(name: str) -> None:
    """Allow the registry to be more specific: the specification lists systems for a group of spellings."""
    actual, expected = registry_aliases(name), spec_aliases(name)
    assert all(actual[spelling] <= expected[spelling] for spelling in actual), (actual, expected)
    assert set().union(*actual.values()) == set().union(*expected.values())


@together
@pytest.mark.parametrize("name", PRESENT)
def test_aliases_are_case_insensitive(name: str) -> None:
    op = registry().ops[name]
    for spelling in (name, *PROMISED[name].get("aliases", {})):
        assert registry().find(spelling) is op, spelling
        assert registry().find(spelling.upper()) is op, spelling.upper()
        assert registry().find(spelling.lower()) is op, spelling.lower()


@together
@pytest.mark.parametrize("name", PRESENT)
def test_output_counts_match_spec(name: str) -> None:
    assert registry().ops[name].several is PROMISED[name].get("several_outputs", False)


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda frozen: str(frozen["opset"]))
def test_attribute_kinds_match_spec(frozen: dict[str, Any]) -> None:
    kinds = registry().attributes
    expected = {name: kind for name, kind in frozen["attributes"].items() if name in kinds}
    assert {name: kinds[name].spelling for name in expected} == expected


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda frozen: str(frozen["opset"]))
def test_dtypes_match_spec(frozen: dict[str, Any]) -> None:
    assert [element.name for element in ELEMENT_TYPES if element.since == frozen["opset"]] == frozen["dtypes"]


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda frozen: str(frozen["opset"]))
def test_op_opsets_match_spec(frozen: dict[str, Any]) -> None:
    present = [name for name in frozen["op"] if name in registry().ops]
    assert {name: registry().ops[name].since for name in present} == dict.fromkeys(present, frozen["opset"])


@together
@pytest.mark.parametrize("name", PRESENT)
def test_attribute_opsets_match_spec(name: str) -> None:
    stated = {attribute: registry().ops[name].since for attribute in PROMISED[name].get("attrs", {})}
    later = {k: frozen["opset"] for frozen in FROZEN for k in frozen.get("gained", {}).get(name, {})}
    actual = {
        attribute: max(attr.since, registry().ops[name].since) for attribute, attr in registry().ops[name].attrs.items()
    }
    assert actual == stated | later
