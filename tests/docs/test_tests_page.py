"""tests/README.md: every package folder is listed with its tests, and every test folder is linked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.marked import ROOT, text_of


def _words(text: str) -> list[str]:
    return re.findall(r"[\w/]+", text)


PAGE: Final = text_of("tests/README.md")
#: first column of the table of package folders
SOURCES: Final = {name for row in PAGE.splitlines() if row.startswith("|") for name in _words(row.split("|")[1])}
PACKAGE_FOLDERS: Final = [
    path.parent for package in ("engine", "service") for path in sorted((ROOT / package).glob("*/__init__.py"))
]
TEST_FOLDERS: Final = [
    path for path in sorted((ROOT / "tests").iterdir()) if path.is_dir() and any(path.glob("**/*.py"))
]


@pytest.mark.parametrize("room", PACKAGE_FOLDERS, ids=lambda room: f"{room.parent.name}/{room.name}")
def test_every_package_folder_is_listed(room: Path) -> None:
    parts = room.relative_to(ROOT).parts
    assert {"/".join(parts), parts[-1]} & SOURCES


@pytest.mark.parametrize("folder", TEST_FOLDERS, ids=lambda folder: folder.name)
def test_every_test_folder_is_linked(folder: Path) -> None:
    assert f"]({folder.name}/" in PAGE


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE))
    assert set(re.findall(r"`make ([\w-]+)`", PAGE)) <= targets
