"""The glossary of CONTRIBUTING.md: each term links to the class or function that it names."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source import ROOT, parsed

ROWS = re.findall(
    r"^\| ([^|]+) \| \[(\w+)\]\(([\w/]+\.py)\) \| [^|]+ \|$",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Glossary")[2],
    re.MULTILINE,
)


def test_glossary_has_at_least_40_terms() -> None:
    assert len(ROWS) >= 40


@pytest.mark.parametrize(("defined", "path"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_glossary_link_defines_term(defined: str, path: str) -> None:
    assert defined in top_level_definitions(path)


def top_level_definitions(path: str) -> set[str]:
    kinds = ast.ClassDef | ast.FunctionDef
    return {node.name for node in parsed(ROOT / path).body if isinstance(node, kinds)}
