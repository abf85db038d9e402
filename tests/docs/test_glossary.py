"""The glossary of CONTRIBUTING.md: its words are the ones in use, and those that they have replaced are not."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source import ROOT, files, name, parsed

ROWS = re.findall(
    r"^\| ([^|]+) \| \[(\w+)\]\(([\w/]+\.py)\) \| [^|]+ \|$",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Glossary")[2],
    re.MULTILINE,
)
#: names that stood for what the glossary has now
REPLACED = {
    "Bound",
    "Rebound",
    "Leases",
    "Residence",
    "Handout",
    "Twin",
    "Tier",
    "Crew",
    "Boss",
    "Staff",
    "Desk",
    "Turn",
    "Cell",
    "Passage",
    "Prison",
    "Shelf",
    "Slab",
    "Experience",
    "Line",
    "Guest",
    "Front",
    "Pace",
    "Keeper",
    "Behind",
    "Told",
    "Lifted",
    "Repeated",
    "Asked",
}


def test_there_is_a_glossary() -> None:
    assert len(ROWS) >= 40


@pytest.mark.parametrize(("defined", "path"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_term_is_where_the_glossary_says(defined: str, path: str) -> None:
    assert defined in definitions(path)


def definitions(path: str) -> set[str]:
    kinds = ast.ClassDef | ast.FunctionDef
    return {node.name for node in parsed(ROOT / path).body if isinstance(node, kinds)}


@pytest.mark.slow
def test_what_was_replaced_is_gone() -> None:
    found = {
        f"{name(path)}: {node.name}"
        for path in files("engine", "service")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and node.name.removeprefix("_") in REPLACED
    }
    stems = {name(path) for path in files("engine", "service") if path.stem.title() in REPLACED}
    assert not found | stems
