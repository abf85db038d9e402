"""The registry keeps what opsets 1 and 2 promise: see opset1.toml and opset2.toml, which are frozen."""

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


def plain(default: Any) -> Any:
    """A default as the frozen file writes it: lists for tuples, names for dtypes."""
    return list(default) if isinstance(default, tuple) else getattr(default, "name", default)


def written(attr: Any) -> dict[str, Any]:
    """One attribute in the notation of the frozen file."""
    choices = {"choices": list(attr.choices)} if attr.kind == "dtype" and attr.choices else {}
    if attr.required:
        return {"required": True} | choices
    return choices if attr.default is None else {"default": plain(attr.default)} | choices


def attributes_of(op: Any) -> dict[str, dict[str, Any]]:
    """All attributes of the op in that notation."""
    return {name: written(attr) for name, attr in op.attrs.items()}


def gained(name: str) -> dict[str, dict[str, Any]]:
    """The attributes that a later opset promises of an op."""
    return {k: v for frozen in FROZEN for k, v in frozen.get("gained", {}).get(name, {}).items()}


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
    return folded(PROMISED[name].get("aliases", {}).items())


def test_the_first_part_is_complete() -> None:
    missing = sorted(set(FIRST_PART) - set(registry().ops))
    assert not missing, f"{len(missing)} ops that were promised are missing: {', '.join(missing)}"


def test_nothing_later_is_there_that_was_not_promised() -> None:
    assert {name for name, op in registry().ops.items() if op.since > OPSET} <= {*PRESENT}


def test_no_name_is_a_spelling_for_an_op_of_another_opset() -> None:
    spellings = [spelling.lower() for op in PROMISED.values() for spelling in folded(op.get("aliases", {}).items())]
    assert not {name for frozen in FROZEN[1:] for name in frozen["op"]} & {*FROZEN[0]["op"], *spellings}


@together
@pytest.mark.parametrize("name", PRESENT)
def test_operands(name: str) -> None:
    assert list(registry().ops[name].operands) == PROMISED[name]["operands"]


@together
@pytest.mark.parametrize("name", PRESENT)
def test_attributes_and_defaults(name: str) -> None:
    expected = PROMISED[name].get("attrs", {}) | gained(name)
    found = attributes_of(registry().ops[name])
    assert found == expected
    types = {attribute: type(entry.get("default")) for attribute, entry in found.items()}
    assert types == {attribute: type(entry.get("default")) for attribute, entry in expected.items()}, (
        "1, 1.0 and true are equal in Python and different to a client"
    )


@together
@pytest.mark.parametrize("name", PRESENT)
def test_choices(name: str) -> None:
    choices = {attribute: words for frozen in FROZEN for attribute, words in frozen.get("choices", {}).items()}
    for attribute, attr in registry().ops[name].attrs.items():
        if attr.kind != "dtype":  # which each op states for itself
            assert list(attr.choices) == choices.get(attribute, []), attribute


@together
@pytest.mark.parametrize("name", PRESENT)
def test_aliases(name: str) -> None:
    assert set(found_aliases(name)) == set(promised_aliases(name))


@together
@pytest.mark.parametrize("name", PRESENT)
def test_the_systems_behind_the_aliases(name: str) -> None:
    """The promise names systems for a group of spellings; the registry may say which of them has which."""
    found, promised = found_aliases(name), promised_aliases(name)
    assert all(found[spelling] <= promised[spelling] for spelling in found), (found, promised)
    assert set().union(*found.values()) == set().union(*promised.values())


@together
@pytest.mark.parametrize("name", PRESENT)
def test_every_spelling_is_found_whatever_its_case(name: str) -> None:
    op = registry().ops[name]
    for spelling in (name, *PROMISED[name].get("aliases", {})):
        assert registry().find(spelling) is op, spelling
        assert registry().find(spelling.upper()) is op, spelling.upper()
        assert registry().find(spelling.lower()) is op, spelling.lower()


@together
@pytest.mark.parametrize("name", PRESENT)
def test_number_of_outputs(name: str) -> None:
    assert registry().ops[name].several is PROMISED[name].get("several_outputs", False)


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda frozen: str(frozen["opset"]))
def test_attribute_kinds(frozen: dict[str, Any]) -> None:
    kinds = registry().attributes
    expected = {name: kind for name, kind in frozen["attributes"].items() if name in kinds}
    assert {name: kinds[name].spelling for name in expected} == expected


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda frozen: str(frozen["opset"]))
def test_dtypes(frozen: dict[str, Any]) -> None:
    assert [element.name for element in ELEMENT_TYPES if element.since == frozen["opset"]] == frozen["dtypes"]


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda frozen: str(frozen["opset"]))
def test_ops_are_of_the_opset_that_has_promised_them(frozen: dict[str, Any]) -> None:
    present = [name for name in frozen["op"] if name in registry().ops]
    assert {name: registry().ops[name].since for name in present} == dict.fromkeys(present, frozen["opset"])


@together
@pytest.mark.parametrize("name", PRESENT)
def test_attributes_are_of_the_opset_that_has_promised_them(name: str) -> None:
    stated = {attribute: registry().ops[name].since for attribute in PROMISED[name].get("attrs", {})}
    later = {k: frozen["opset"] for frozen in FROZEN for k in frozen.get("gained", {}).get(name, {})}
    found = {
        attribute: max(attr.since, registry().ops[name].since) for attribute, attr in registry().ops[name].attrs.items()
    }
    assert found == stated | later
